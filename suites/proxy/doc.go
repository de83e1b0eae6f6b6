// Package proxy is the place of the checks of service proxying. It has none in this release: the catalogue holds the
// requirements (area proxy), each with the reason why no check decides it yet.
package proxy
