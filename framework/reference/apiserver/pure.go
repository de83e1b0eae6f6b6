package apiserver

import (
	"net/netip"
	"reflect"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/rule"
)

// requestKinds are the kinds of rules that are pure, with every edit that a fault makes of one.
var requestKinds = rule.Pure{
	Answers: []reflect.Type{
		reflect.TypeFor[negotiating](), reflect.TypeFor[warning](), reflect.TypeFor[seeing](), reflect.TypeFor[reading](),
		reflect.TypeFor[dryRunning](), reflect.TypeFor[func(string) bool](), reflect.TypeFor[func(string) string](),
		reflect.TypeFor[func(string) error](), reflect.TypeFor[func(error) error](), reflect.TypeFor[func(string) (uint64, error)](), reflect.TypeFor[func(string) (string, error)](), reflect.TypeFor[func(string) field.ErrorList](),
		reflect.TypeFor[func([]string) field.ErrorList](), reflect.TypeFor[func(string, []string) (string, error)](),
		reflect.TypeFor[func(object) bool](), reflect.TypeFor[func(obj, old object) bool](),
		reflect.TypeFor[func(*metav1.PatchOptions, types.PatchType) field.ErrorList](),
	},
	Changes: []reflect.Type{reflect.TypeFor[making](), reflect.TypeFor[identifying](), reflect.TypeFor[changing]()},
}

// clusterKinds are the kinds of rules that are pure, with every edit that a fault makes of one.
var clusterKinds = rule.Pure{
	Answers: []reflect.Type{
		reflect.TypeFor[ranging](), reflect.TypeFor[func(netip.Prefix) netip.Addr](), reflect.TypeFor[func(netip.Addr) map[string]string](),
		reflect.TypeFor[func(string) string](), reflect.TypeFor[func(string, bool) []string](),
	},
	Changes: []reflect.Type{reflect.TypeFor[func(*networkingv1.ServiceCIDR)]()},
}
