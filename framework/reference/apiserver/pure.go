package apiserver

import (
	"net/netip"
	"reflect"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Answers implements fault.PureBook.
func (*requestBook) Answers() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[negotiating](), reflect.TypeFor[warning](), reflect.TypeFor[seeing](), reflect.TypeFor[reading](),
		reflect.TypeFor[dryRunning](), reflect.TypeFor[func(string) bool](), reflect.TypeFor[func(string) string](),
		reflect.TypeFor[func(string) error](), reflect.TypeFor[func(string) (string, error)](), reflect.TypeFor[func(string) field.ErrorList](),
		reflect.TypeFor[func([]string) field.ErrorList](), reflect.TypeFor[func(string, []string) (string, error)](),
		reflect.TypeFor[func(object) bool](), reflect.TypeFor[func(obj, old object) bool](),
		reflect.TypeFor[func(*metav1.PatchOptions, types.PatchType) field.ErrorList](),
	}
}

// Changes implements fault.PureBook.
func (*requestBook) Changes() []reflect.Type {
	return []reflect.Type{reflect.TypeFor[making](), reflect.TypeFor[identifying](), reflect.TypeFor[changing]()}
}

// Answers implements fault.PureBook.
func (*clusterBook) Answers() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[ranging](), reflect.TypeFor[func(netip.Prefix) netip.Addr](), reflect.TypeFor[func(netip.Addr) map[string]string](),
		reflect.TypeFor[func(string) string](), reflect.TypeFor[func(string, bool) []string](),
	}
}

// Changes implements fault.PureBook.
func (*clusterBook) Changes() []reflect.Type {
	return []reflect.Type{reflect.TypeFor[func(*networkingv1.ServiceCIDR)]()}
}
