// Package kubelet is the reference's own reading of what a node tells the containers that it starts of Services: their
// environment variables. The source is pkg/kubelet/envvars/envvars.go and pkg/kubelet/kubelet_pods.go of v1.37.1.
package kubelet

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// apiServer is the Service that every pod is told of, in namespace default.
const apiServer = "kubernetes"

// variables are environment variables by name.
type variables map[string]string

// Rules are the rules of environment variables. They are safe for concurrent use.
type Rules struct{ *book }

// Environment returns the variables that the process of a pod starts with, "NAME=value" and sorted. The Services are those of
// all namespaces at that moment. It changes nothing that it is given.
func (r *Rules) Environment(pod *candidate.Pod, services []*corev1.Service) []string {
	services = r.currentServices.Do(services)
	ofServices := variables{}
	for _, svc := range services {
		if r.apiServerTold.Do(pod, svc) { // a Service of the pod's own namespace with this name comes before it
			r.write(ofServices, svc)
		}
	}
	for _, svc := range services {
		if r.serviceLinksOn.Do(pod) && r.ownNamespaceTold.Do(pod, svc) {
			r.write(ofServices, svc)
		}
	}
	all := maps.Clone(ofServices)
	for name, value := range pod.Variables {
		r.ownWins.Do(all, name, r.referencesReplaced.Do(r, value, pod.Variables, ofServices))
	}
	environment := []string{}
	for name, value := range all {
		environment = append(environment, name+"="+value)
	}
	slices.Sort(environment)
	return environment
}

// write adds the variables of a Service.
func (r *Rules) write(v variables, svc *corev1.Service) {
	if !r.virtualIPNeeded.Do(svc) {
		return
	}
	ports := r.portsTold.Do(svc)
	for i := range r.writes {
		r.writes[i].Do(r, v, svc, ports)
	}
}

// Rules for which Services a pod is told of.
var (
	// A container is told of the Services that there are when it starts.
	currentServices = rule.New("environment-of-current-services", func(services []*corev1.Service) []*corev1.Service {
		return services
	}, spec.ProxyEnvironmentCurrent)

	// Every pod is told of the API server, whether it wants service links or not.
	apiServerTold = rule.New("environment-of-api-server", func(_ *candidate.Pod, svc *corev1.Service) bool {
		return isAPIServer(svc)
	}, spec.ProxyEnvironmentNamespace, spec.ProxyEnvironmentDisabled)

	serviceLinksOn = rule.New("environment-with-service-links", func(pod *candidate.Pod) bool {
		return !pod.WithoutServiceLinks
	}, spec.ProxyEnvironmentDisabled)

	ownNamespaceTold = rule.New("environment-of-own-namespace", func(pod *candidate.Pod, svc *corev1.Service) bool {
		return svc.Namespace == pod.Namespace
	}, spec.ProxyEnvironmentNamespace)

	// A Service without a virtual address has no variables. One with an address has them, whatever its name begins with.
	virtualIPNeeded = rule.New("environment-needs-virtual-ip", func(svc *corev1.Service) bool {
		return hasPorts(svc) && svc.Spec.ClusterIP != corev1.ClusterIPNone
	}, spec.ProxyEnvironmentHeadless, spec.ProxyEnvironmentClusterIP, spec.ProxyEnvironmentNameLeadingDigit)
)

func isAPIServer(svc *corev1.Service) bool {
	return svc.Name == apiServer && svc.Namespace == corev1.NamespaceDefault
}

// hasPorts reports whether a Service has ports and a cluster IP, be it None.
func hasPorts(svc *corev1.Service) bool { return len(svc.Spec.Ports) > 0 && svc.Spec.ClusterIP != "" }

// Rules for the variables of the pod itself.
var (
	ownWins = rule.New("environment-own-variable-wins", func(v variables, name, value string) {
		v[name] = value
	}, spec.ProxyEnvironmentOwnFirst)

	referencesReplaced = rule.New("environment-references-replaced", replaceReferences, spec.ProxyEnvironmentReferences)
)
