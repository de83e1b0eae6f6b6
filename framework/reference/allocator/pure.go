package allocator

import (
	"net/netip"
	"reflect"

	"github.com/service-conformance/conformance/framework/reference/rule"
)

// pureKinds are the kinds of rules of both books that are pure, with every edit that a fault makes of one.
var pureKinds = rule.Pure{Answers: []reflect.Type{
	reflect.TypeFor[dividing](), reflect.TypeFor[admitting](), reflect.TypeFor[banding](),
	reflect.TypeFor[func(netip.Prefix, uint64) (netip.Addr, uint64)](), reflect.TypeFor[func(*addresses, uint64) netip.Addr](),
}}
