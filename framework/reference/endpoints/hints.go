package endpoints

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// hint gives the endpoints of one family the hints that the Service asks for.
func (t *task) hint(all []*discoveryv1.Endpoint) {
	if t.topologyModeFirst.Do(t.Service) {
		t.hintsByCPU.Do(t, all)
		return
	}
	var distribute distributing
	switch ptr.Deref(t.Service.Spec.TrafficDistribution, "") {
	case corev1.ServiceTrafficDistributionPreferClose:
		distribute = t.closeHints.Do
	case corev1.ServiceTrafficDistributionPreferSameZone:
		distribute = t.sameZoneHints.Do
	case corev1.ServiceTrafficDistributionPreferSameNode:
		distribute = t.sameNodeHints.Do
	default:
		return
	}
	for _, e := range all {
		if !*e.Conditions.Ready {
			continue
		}
		if hints := distribute(t, all, e); hints.ForZones != nil || hints.ForNodes != nil {
			e.Hints = &hints
		}
	}
}

// Rules for the hints that trafficDistribution asks for.
var (
	closeHints    = rule.New("endpoints-hints-of-prefer-close", zoneHints, spec.ProxyTrafficDistributionSameZone)
	sameZoneHints = rule.New("endpoints-hints-of-prefer-same-zone", zoneHints, spec.ProxyTrafficDistributionSameZone)

	// A hint for the node has one for the zone beside it, for clients whose node has no endpoint.
	sameNodeHints = rule.New("endpoints-hints-of-prefer-same-node", func(t *task, all []*discoveryv1.Endpoint, e *discoveryv1.Endpoint) discoveryv1.EndpointHints {
		return discoveryv1.EndpointHints{ForZones: zoneHints(t, all, e).ForZones, ForNodes: nodeHints(t, all, e).ForNodes}
	}, spec.ProxyTrafficDistributionSameNode, spec.ProxyTrafficDistributionNodeFallsBack)

	zoneOfHint = rule.New("endpoints-hint-for-own-zone", func(_ []*discoveryv1.Endpoint, e *discoveryv1.Endpoint) *string {
		return e.Zone
	}, spec.ProxyTrafficDistributionSameZone)
)

func zoneHints(t *task, all []*discoveryv1.Endpoint, e *discoveryv1.Endpoint) (hints discoveryv1.EndpointHints) {
	if zone := t.zoneOfHint.Do(all, e); zone != nil {
		hints.ForZones = []discoveryv1.ForZone{{Name: *zone}}
	}
	return hints
}

func nodeHints(_ *task, _ []*discoveryv1.Endpoint, e *discoveryv1.Endpoint) (hints discoveryv1.EndpointHints) {
	if e.NodeName != nil {
		hints.ForNodes = []discoveryv1.ForNode{{Name: *e.NodeName}}
	}
	return hints
}

// Rules for the hints that the annotation asks for (KEP-2433).
var (
	// The annotation asks for hints by the CPUs of zones, and outweighs trafficDistribution.
	topologyModeFirst = rule.New("endpoints-topology-mode-first", func(svc *corev1.Service) bool {
		mode, ok := svc.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]
		if !ok {
			mode = svc.Annotations[corev1.AnnotationTopologyMode]
		}
		return mode == "Auto" || mode == "auto"
	}, spec.ProxyTopologyModeFirst)

	hintsByCPU = rule.New("endpoints-hints-by-cpu", hintByCPU, spec.ProxyTopologyModeAuto)

	// There is an endpoint for each zone, and no zone is owed more than there are.
	enoughEndpoints = rule.New("endpoints-enough-for-hints", func(endpoints, zones, left int) bool {
		return endpoints >= zones && left >= 0
	}, spec.ProxyTopologyModeAuto)
)

// overload is how much more traffic than its share an endpoint may get before hints do more harm than good (KEP-2433).
const overload = 0.2

// hintByCPU gives each zone a share of the ready endpoints that fits its share of the CPUs. It takes endpoints of the zone and,
// where these are too few, of others. It gives no hints where a zone would be overloaded, or where something is not known.
func hintByCPU(t *task, all []*discoveryv1.Endpoint) {
	var ready []*discoveryv1.Endpoint
	for _, e := range all {
		if *e.Conditions.Ready {
			if e.Zone == nil {
				return
			}
			ready = append(ready, e)
		}
	}
	share := t.shareOfCPU()
	if len(share) < 2 {
		return
	}
	zones := make([]string, 0, len(share))
	for zone := range share {
		zones = append(zones, zone)
	}
	slices.Sort(zones)
	// What a zone needs at least goes first, and the rest to the neediest.
	owed, left := map[string]int{}, len(ready)
	for _, zone := range zones {
		owed[zone] = int(math.Ceil(share[zone] * float64(len(ready)) / (1 + overload)))
		left -= owed[zone]
	}
	if !t.enoughEndpoints.Do(len(ready), len(share), left) {
		return
	}
	for ; left > 0; left-- {
		neediest := slices.MaxFunc(zones, func(a, b string) int {
			lackA, lackB := share[a]*float64(len(ready))-float64(owed[a]), share[b]*float64(len(ready))-float64(owed[b])
			switch {
			case lackA < lackB:
				return -1
			case lackA > lackB:
				return 1
			}
			return 0
		})
		owed[neediest]++
	}
	var spare []*discoveryv1.Endpoint
	for _, e := range ready {
		if owed[*e.Zone] > 0 {
			owed[*e.Zone]--
			e.Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: *e.Zone}}}
		} else {
			spare = append(spare, e)
		}
	}
	for _, e := range spare {
		for _, zone := range zones {
			if owed[zone] > 0 {
				owed[zone]--
				e.Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: zone}}}
				break
			}
		}
	}
}

// shareOfCPU is the share of each zone in the allocatable CPUs of all ready nodes; nil if a node does not tell.
func (t *task) shareOfCPU() map[string]float64 {
	milli, total := map[string]float64{}, 0.0
	for _, node := range t.Nodes() {
		if !nodeReady(node) || hasControlPlaneLabel(node) {
			continue
		}
		zone, cpu := node.Labels[corev1.LabelTopologyZone], float64(node.Status.Allocatable.Cpu().MilliValue())
		if zone == "" || cpu == 0 {
			return nil
		}
		milli[zone] += cpu
		total += cpu
	}
	for zone := range milli {
		milli[zone] /= total
	}
	return milli
}

func nodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// hasControlPlaneLabel reports whether no workload is expected on the node.
func hasControlPlaneLabel(node *corev1.Node) bool {
	_, is := node.Labels["node-role.kubernetes.io/control-plane"]
	return is
}

// ConcernsTopology reports whether a change of a node can change zones or hints of endpoints.
func ConcernsTopology(before, after *corev1.Node) bool {
	return before.Labels[corev1.LabelTopologyZone] != after.Labels[corev1.LabelTopologyZone] || nodeReady(before) != nodeReady(after) ||
		hasControlPlaneLabel(before) != hasControlPlaneLabel(after) || !before.Status.Allocatable.Cpu().Equal(*after.Status.Allocatable.Cpu())
}
