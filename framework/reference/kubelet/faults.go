package kubelet

import (
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/framework/reference/rule"
)

// New makes the rules with the deliberate bugs that are switched on.
func New(faults fault.Set) *Rules { return &Rules{fault.Apply(newBook(), wrongs, faults)} }

// wrong is a fault and what it changes in the book of rules.
type wrong fault.Edit[book]

// wrongs are all faults of this package.
var wrongs = []wrong{
	{fault.EnvironmentRemembered, func(b *book) { b.currentServices.Replace(remembering()) }},
	{fault.EnvironmentWithoutAPIServer, func(b *book) { b.apiServerTold.Off() }},
	{fault.EnvironmentLinksOffForAll, func(b *book) {
		b.apiServerTold.Wrap(func(right telling) telling {
			return func(pod *candidate.Pod, svc *corev1.Service) bool { return !pod.WithoutServiceLinks && right(pod, svc) }
		})
	}},
	{fault.EnvironmentLinksForced, func(b *book) {
		b.serviceLinksOn.Replace(func(*candidate.Pod) bool { return true })
	}},
	{fault.EnvironmentAllNamespaces, func(b *book) {
		b.ownNamespaceTold.Wrap(func(right telling) telling {
			return func(pod *candidate.Pod, svc *corev1.Service) bool { return right(pod, svc) || !isAPIServer(svc) }
		})
	}},

	{fault.EnvironmentHeadless, func(b *book) { b.virtualIPNeeded.Replace(hasPorts) }},
	{fault.EnvironmentDigitHidden, hide(func(svc *corev1.Service) bool { return svc.Name[0] <= '9' })},
	{fault.EnvironmentIPv6Missing, hide(func(svc *corev1.Service) bool { return strings.Contains(svc.Spec.ClusterIP, ":") })},

	{fault.EnvironmentTargetPort, func(b *book) {
		b.portsTold.Replace(func(svc *corev1.Service) []corev1.ServicePort {
			ports := slices.Clone(svc.Spec.Ports)
			for i := range ports {
				ports[i].Port = ports[i].TargetPort.IntVal
			}
			return ports
		})
	}},
	{fault.EnvironmentLastPort, func(b *book) {
		b.portOfService.Replace(func(ports []corev1.ServicePort) corev1.ServicePort { return ports[len(ports)-1] })
	}},
	{fault.EnvironmentPortNamesMissing, func(b *book) { rule.Find(b.writes, namedPortsWritten.Name).Off() }},
	{fault.EnvironmentContainerLinksMissing, func(b *book) { rule.Find(b.writes, containerLinksWritten.Name).Off() }},
	{fault.EnvironmentUnbracketed, func(b *book) {
		b.hostAndPort.Replace(func(ip, port string) string { return ip + ":" + port })
	}},
	{fault.EnvironmentNamesDashed, func(b *book) { b.variableName.Replace(strings.ToUpper) }},
	{fault.EnvironmentNamesAsTheyAre, func(b *book) { b.variableName.Replace(func(name string) string { return name }) }},

	{fault.EnvironmentServicesWin, func(b *book) {
		b.ownWins.Replace(func(v variables, name, value string) {
			if _, taken := v[name]; !taken {
				v[name] = value
			}
		})
	}},
	{fault.EnvironmentReferencesKept, func(b *book) {
		b.referencesReplaced.Replace(func(_ *Rules, value string, _ map[string]string, _ variables) string { return value })
	}},
	{fault.EnvironmentEscapesReplaced, func(b *book) { b.escapeKept.Off() }},
}

// remembering makes a rule: a Service that was there once is told of for ever, as it was then.
func remembering() func([]*corev1.Service) []*corev1.Service {
	var mu sync.Mutex
	told := map[string]*corev1.Service{}
	return func(services []*corev1.Service) []*corev1.Service {
		mu.Lock()
		defer mu.Unlock()
		for _, svc := range services {
			if key := svc.Namespace + "/" + svc.Name; told[key] == nil {
				told[key] = svc
			}
		}
		return slices.Collect(maps.Values(told))
	}
}

// hide is a fault: some Services have no variables.
func hide(some func(*corev1.Service) bool) func(*book) {
	return func(b *book) {
		b.virtualIPNeeded.Wrap(func(right func(*corev1.Service) bool) func(*corev1.Service) bool {
			return func(svc *corev1.Service) bool { return right(svc) && !some(svc) }
		})
	}
}
