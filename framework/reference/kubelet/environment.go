// Package kubelet is the reference's own reading of what a node tells the containers that it starts of Services: their environment variables
// (pkg/kubelet/envvars/envvars.go and pkg/kubelet/kubelet_pods.go, v1.37.1, say which).
package kubelet

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/fault"
)

// apiServer is the Service that every pod is told of, in namespace default.
const apiServer = "kubernetes"

// variables are environment variables by name.
type variables map[string]string

// Environment returns the variables that the process of a pod starts with, "NAME=value" and sorted, when these are the Services of all namespaces at that
// moment. It changes nothing that it is given and is safe for concurrent use.
func Environment(pod *candidate.Pod, services []*corev1.Service, faults fault.Set) []string {
	ofServices := variables{}
	for _, svc := range services {
		if isAPIServer(svc) && !hidden(pod, faults) { // a Service of the pod's own namespace with this name comes before it
			ofServices.add(svc, faults)
		}
	}
	for _, svc := range services {
		if linked(pod, svc, faults) {
			ofServices.add(svc, faults)
		}
	}
	all := maps.Clone(ofServices)
	for name, value := range pod.Variables {
		if _, taken := ofServices[name]; !taken || !faults.On(fault.EnvironmentServicesWin) {
			all[name] = expand(value, pod.Variables, ofServices, faults)
		}
	}
	environment := []string{}
	for name, value := range all {
		environment = append(environment, name+"="+value)
	}
	slices.Sort(environment)
	return environment
}

func isAPIServer(svc *corev1.Service) bool {
	return svc.Name == apiServer && svc.Namespace == corev1.NamespaceDefault
}

// hidden reports whether faults hide the Service of the API server from a pod.
func hidden(pod *candidate.Pod, faults fault.Set) bool {
	return faults.On(fault.EnvironmentWithoutAPIServer) || pod.WithoutServiceLinks && faults.On(fault.EnvironmentLinksOffForAll)
}

// linked reports whether a pod is told of a Service because of its namespace.
func linked(pod *candidate.Pod, svc *corev1.Service, faults fault.Set) bool {
	if pod.WithoutServiceLinks && !faults.On(fault.EnvironmentLinksForced) {
		return false
	}
	return svc.Namespace == pod.Namespace || faults.On(fault.EnvironmentAllNamespaces) && !isAPIServer(svc)
}

// add adds the variables of a Service, if it has a virtual address.
func (v variables) add(svc *corev1.Service, faults fault.Set) {
	ip := svc.Spec.ClusterIP
	switch {
	case len(svc.Spec.Ports) == 0 || ip == "":
		return
	case ip == corev1.ClusterIPNone && !faults.On(fault.EnvironmentHeadless):
		return
	case svc.Name[0] <= '9' && faults.On(fault.EnvironmentDigitHidden):
		return
	case strings.Contains(ip, ":") && faults.On(fault.EnvironmentIPv6Missing):
		return
	}
	ports := slices.Clone(svc.Spec.Ports)
	if faults.On(fault.EnvironmentTargetPort) {
		for i := range ports {
			ports[i].Port = ports[i].TargetPort.IntVal
		}
	}
	first := ports[0]
	if faults.On(fault.EnvironmentLastPort) {
		first = ports[len(ports)-1]
	}
	prefix := variableName(svc.Name, faults)
	v[prefix+"_SERVICE_HOST"] = ip
	v[prefix+"_SERVICE_PORT"] = strconv.Itoa(int(first.Port))
	for _, p := range ports {
		if p.Name != "" && !faults.On(fault.EnvironmentPortNamesMissing) {
			v[prefix+"_SERVICE_PORT_"+variableName(p.Name, faults)] = strconv.Itoa(int(p.Port))
		}
	}
	if !faults.On(fault.EnvironmentContainerLinksMissing) {
		v.link(prefix, ip, ports, faults)
	}
}

// link adds the variables that Docker gave a container for another one that it was linked with.
func (v variables) link(prefix, ip string, ports []corev1.ServicePort, faults fault.Set) {
	for i, p := range ports {
		number, protocol := strconv.Itoa(int(p.Port)), strings.ToLower(string(p.Protocol))
		to := net.JoinHostPort(ip, number)
		if faults.On(fault.EnvironmentUnbracketed) {
			to = ip + ":" + number
		}
		url := protocol + "://" + to
		if i == 0 {
			v[prefix+"_PORT"] = url
		}
		port := fmt.Sprintf("%s_PORT_%s_%s", prefix, number, p.Protocol)
		v[port], v[port+"_PROTO"], v[port+"_PORT"], v[port+"_ADDR"] = url, protocol, number, ip
	}
}

// variableName is a name of the API as it stands in the name of a variable.
func variableName(name string, faults fault.Set) string {
	switch {
	case faults.On(fault.EnvironmentNamesAsTheyAre):
		return name
	case faults.On(fault.EnvironmentNamesDashed):
		return strings.ToUpper(name)
	}
	return strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// expand replaces each reference $(NAME) to a variable of a Service in a value, unless the pod has one of its own of that name. $$ stands for $, and what is
// no reference stays as it is. (References among the pod's own variables depend on their order, which a candidate.Pod does not have.)
func expand(value string, own map[string]string, ofServices variables, faults fault.Set) string {
	if faults.On(fault.EnvironmentReferencesKept) {
		return value
	}
	var out strings.Builder
	for {
		before, after, found := strings.Cut(value, "$")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		if rest, escaped := strings.CutPrefix(after, "$"); escaped && !faults.On(fault.EnvironmentEscapesReplaced) {
			out.WriteByte('$')
			value = rest
			continue
		}
		name, rest, closed := strings.Cut(strings.TrimPrefix(after, "("), ")")
		known, ok := ofServices[name]
		if _, hides := own[name]; !closed || !strings.HasPrefix(after, "(") || !ok || hides {
			out.WriteByte('$')
			value = after
			continue
		}
		out.WriteString(known)
		value = rest
	}
}
