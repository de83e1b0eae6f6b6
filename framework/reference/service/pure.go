package service

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/reference/rule"
)

// pureKinds are the kinds of rules that are pure, with every edit that a fault makes of one.
var pureKinds = rule.Pure{
	Answers: []reflect.Type{
		reflect.TypeFor[checking](), reflect.TypeFor[portChecking](), reflect.TypeFor[numberChecking](), reflect.TypeFor[protocolChecking](),
		reflect.TypeFor[externalIPChecking](), reflect.TypeFor[portErrorChecking](), reflect.TypeFor[ingressChecking](),
		reflect.TypeFor[warning](), reflect.TypeFor[deciding](), reflect.TypeFor[sharing](), reflect.TypeFor[func(*Rules) bool](),
		reflect.TypeFor[func(*Rules) corev1.IPFamily](), reflect.TypeFor[func() (int32, int32)](), reflect.TypeFor[func([]string) []string](),
		reflect.TypeFor[func(*Rules) []string](), reflect.TypeFor[func(*corev1.Service) []int](),
	},
	Changes: []reflect.Type{reflect.TypeFor[adjusting](), reflect.TypeFor[defaulting](), reflect.TypeFor[portDefaulting](), reflect.TypeFor[inferring]()},
}
