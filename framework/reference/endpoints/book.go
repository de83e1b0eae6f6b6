package endpoints

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/reference/rule"
)

// The kinds of rules.
type (
	// An asking rule is a question about a Service.
	asking = func(svc *corev1.Service) bool
	// A settling rule says what becomes of the EndpointSlices and the Endpoints object of a Service.
	settling = func(t *task, c *Changes)
	// A selecting rule says whether a pod is one of the Service.
	selecting = func(t *task, pod *corev1.Pod) bool
	// A conditioning rule sets a condition of the endpoint that a pod is.
	conditioning = func(svc *corev1.Service, pod *corev1.Pod, c *discoveryv1.EndpointConditions)
	// A porting rule fills in a field of the port of an endpoint from a port of the Service.
	porting = func(svc *corev1.Service, p *corev1.ServicePort, port *discoveryv1.EndpointPort)
	// A numbering rule returns the number of a Service port at a pod, 0 if the pod does not have the port.
	numbering = func(t *task, p *corev1.ServicePort, pod *corev1.Pod) int32
	// A distributing rule returns the hints of one of the ready endpoints for a value of trafficDistribution.
	distributing = func(t *task, all []*discoveryv1.Endpoint, e *discoveryv1.Endpoint) discoveryv1.EndpointHints
	// A forming rule adds to what all slices of one controller have in common.
	forming = func(t *task, manager string, f *form)
)

// book is the rules of endpoints. It is read only once it is in use.
type book struct {
	// Which pods a Service selects.
	selectorNeeded  rule.Rule[asking]
	everyLabelFits  rule.Rule[func(b *book, selector, labels map[string]string) bool]
	labelFits       rule.Rule[func(labels map[string]string, key, value string) bool]
	podSelected     rule.Rule[selecting]
	podIsEndpoint   rule.Rule[func(*corev1.Service, *corev1.Pod) bool]
	aliasHasNothing rule.Rule[asking]

	// What becomes of EndpointSlices.
	selectorless   rule.Rule[settling]
	selected       rule.Rule[settling]
	ownSlice       rule.Rule[func(svc *corev1.Service, slice *discoveryv1.EndpointSlice) bool]
	sliceFamilies  rule.Rule[func(*corev1.Service) []corev1.IPFamily]
	addressFits    rule.Rule[func(svc *corev1.Service, family corev1.IPFamily, a netip.Addr) bool]
	sliceCapacity  rule.Rule[func() int]
	endpointZone   rule.Rule[func(t *task, pod *corev1.Pod) string]
	conditions     []rule.Rule[conditioning]
	portFields     []rule.Rule[porting]
	numberedTarget rule.Rule[numbering]
	namedTarget    rule.Rule[numbering]
	generatedForm  []rule.Rule[forming]
	mirroredForm   []rule.Rule[forming]
	form           []rule.Rule[forming] // of both

	// Hints.
	topologyModeFirst rule.Rule[asking]
	hintsByCPU        rule.Rule[func(t *task, all []*discoveryv1.Endpoint)]
	enoughEndpoints   rule.Rule[func(endpoints, zones, left int) bool]
	closeHints        rule.Rule[distributing]
	sameZoneHints     rule.Rule[distributing]
	sameNodeHints     rule.Rule[distributing]
	zoneOfHint        rule.Rule[func(all []*discoveryv1.Endpoint, e *discoveryv1.Endpoint) *string]

	// The Endpoints object.
	mirrored         rule.Rule[func(*corev1.Endpoints) bool]
	skipMirror       rule.Rule[func(*corev1.Endpoints) bool]
	mirroredGroups   rule.Rule[func(t *task) []*group]
	mirroredLimit    rule.Rule[func(*corev1.EndpointSubset) int]
	objectOfNotReady rule.Rule[asking]
	objectTruncated  rule.Rule[func(e *corev1.Endpoints, truncated bool)]
}

// newBook is the right rules.
func newBook() *book {
	return &book{
		selectorNeeded:  selectorNeeded,
		everyLabelFits:  everyLabelFits,
		labelFits:       labelFits,
		podSelected:     podSelected,
		podIsEndpoint:   podIsEndpoint,
		aliasHasNothing: aliasHasNothing,

		selectorless:   selectorless,
		selected:       selected,
		ownSlice:       ownSlice,
		sliceFamilies:  sliceFamilies,
		addressFits:    addressFits,
		sliceCapacity:  sliceCapacity,
		endpointZone:   endpointZone,
		conditions:     []rule.Rule[conditioning]{servingCondition, terminatingCondition, readyCondition, publishedReady},
		portFields:     []rule.Rule[porting]{portNamed, appProtocolCopied},
		numberedTarget: numberedTarget,
		namedTarget:    namedTarget,
		generatedForm:  []rule.Rule[forming]{serviceMetadata, headlessLabel},
		mirroredForm:   []rule.Rule[forming]{objectMetadata},
		form:           []rule.Rule[forming]{sliceOwned, serviceLabel, managerLabel},

		topologyModeFirst: topologyModeFirst,
		hintsByCPU:        hintsByCPU,
		enoughEndpoints:   enoughEndpoints,
		closeHints:        closeHints,
		sameZoneHints:     sameZoneHints,
		sameNodeHints:     sameNodeHints,
		zoneOfHint:        zoneOfHint,

		mirrored:         mirrored,
		skipMirror:       skipMirror,
		mirroredGroups:   mirroredGroups,
		mirroredLimit:    mirroredLimit,
		objectOfNotReady: objectOfNotReady,
		objectTruncated:  objectTruncated,
	}
}

// Book returns the rules of endpoints with the requirements that they follow, sorted by name.
func Book() []rule.Entry { return rule.Entries(newBook()) }
