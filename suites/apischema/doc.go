// Package apischema holds the checks of the Service resource: defaulting, validation, update rules and requests.
package apischema
