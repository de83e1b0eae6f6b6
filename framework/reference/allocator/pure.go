package allocator

import (
	"net/netip"
	"reflect"
)

// Answers implements fault.PureBook, of both books.
func (*bandRules) Answers() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[dividing](), reflect.TypeFor[admitting](), reflect.TypeFor[banding](),
		reflect.TypeFor[func(netip.Prefix, uint64) (netip.Addr, uint64)](), reflect.TypeFor[func(*addresses, uint64) netip.Addr](),
	}
}

// Changes implements fault.PureBook.
func (*bandRules) Changes() []reflect.Type { return nil }
