package kubelet

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/rule"
)

// The kinds of rules.
type (
	// A telling rule says whether a pod is told of a Service.
	telling = func(pod *candidate.Pod, svc *corev1.Service) bool
	// A writing rule adds variables of a Service, whose ports there is at least one of.
	writing = func(r *Rules, v variables, svc *corev1.Service, ports []corev1.ServicePort)
	// A merging rule adds a variable of the pod itself to those of Services.
	merging = func(v variables, name, value string)
	// A naming rule turns a name of the API into that of a variable, or a part of it.
	naming = func(name string) string
	// A replacing rule replaces the references in a value of the pod's own variables.
	replacing = func(r *Rules, value string, own map[string]string, ofServices variables) string
)

// book is the rules of environment variables. It is read only once it is in use.
type book struct {
	// Which Services a pod is told of.
	currentServices  rule.Rule[func([]*corev1.Service) []*corev1.Service]
	apiServerTold    rule.Rule[telling]
	serviceLinksOn   rule.Rule[func(*candidate.Pod) bool]
	ownNamespaceTold rule.Rule[telling]
	virtualIPNeeded  rule.Rule[func(*corev1.Service) bool]

	// What it is told of each.
	portsTold     rule.Rule[func(*corev1.Service) []corev1.ServicePort]
	writes        []rule.Rule[writing]
	portOfService rule.Rule[func([]corev1.ServicePort) corev1.ServicePort]
	hostAndPort   rule.Rule[func(ip, port string) string]
	variableName  rule.Rule[naming]

	// What becomes of the variables of the pod itself.
	ownWins            rule.Rule[merging]
	referencesReplaced rule.Rule[replacing]
	escapeKept         rule.Rule[func(afterDollar string) (rest string, escaped bool)]
}

// newBook is the right rules.
func newBook() *book {
	return &book{
		currentServices:  currentServices,
		apiServerTold:    apiServerTold,
		serviceLinksOn:   serviceLinksOn,
		ownNamespaceTold: ownNamespaceTold,
		virtualIPNeeded:  virtualIPNeeded,

		portsTold:     portsTold,
		writes:        []rule.Rule[writing]{hostWritten, portWritten, namedPortsWritten, containerLinksWritten},
		portOfService: portOfService,
		hostAndPort:   hostAndPort,
		variableName:  variableName,

		ownWins:            ownWins,
		referencesReplaced: referencesReplaced,
		escapeKept:         escapeKept,
	}
}

// Book returns the rules of environment variables with the requirements that they follow, sorted by name.
func Book() []rule.Entry { return rule.Entries(newBook()) }
