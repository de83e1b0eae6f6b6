module github.com/service-conformance/conformance/docs/examples/allocator

go 1.26.0

require github.com/service-conformance/conformance v0.0.0

replace github.com/service-conformance/conformance => ../../..
