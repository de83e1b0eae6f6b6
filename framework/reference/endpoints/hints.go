package endpoints

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

// hint gives the endpoints of one family the hints that the Service asks for. The annotation outweighs the field.
func (s *State) hint(all []*discoveryv1.Endpoint) {
	if s.topologyAuto() && !(s.Faults.On(fault.HintsFieldFirst) && s.Service.Spec.TrafficDistribution != nil) {
		if !s.Faults.On(fault.HintsAutoMissing) {
			s.hintByCPU(all)
		}
		return
	}
	distribution := s.Service.Spec.TrafficDistribution
	if distribution == nil {
		return
	}
	forNodes := false
	switch *distribution {
	case corev1.ServiceTrafficDistributionPreferClose:
		if s.Faults.On(fault.HintsNotClose) {
			return
		}
	case corev1.ServiceTrafficDistributionPreferSameNode:
		forNodes = !s.Faults.On(fault.HintsZoneForNode)
		fallthrough
	case corev1.ServiceTrafficDistributionPreferSameZone:
		if s.Faults.On(fault.HintsCloseOnly) {
			return
		}
	default:
		return
	}
	for _, e := range all {
		if !*e.Conditions.Ready {
			continue
		}
		zone := e.Zone
		if s.Faults.On(fault.HintsOfFirstZone) {
			zone = all[0].Zone
		}
		var hints discoveryv1.EndpointHints
		if zone != nil && !(forNodes && s.Faults.On(fault.HintsNodeAlone)) {
			hints.ForZones = []discoveryv1.ForZone{{Name: *zone}}
		}
		if forNodes && e.NodeName != nil {
			hints.ForNodes = []discoveryv1.ForNode{{Name: *e.NodeName}}
		}
		if hints.ForZones != nil || hints.ForNodes != nil {
			e.Hints = &hints
		}
	}
}

// topologyAuto reports whether the annotation asks for hints by the CPUs of zones (KEP-2433).
func (s *State) topologyAuto() bool {
	mode, ok := s.Service.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]
	if !ok {
		mode = s.Service.Annotations[corev1.AnnotationTopologyMode]
	}
	return mode == "Auto" || mode == "auto"
}

// overload is how much more traffic than its share an endpoint may get before hints do more harm than good (KEP-2433).
const overload = 0.2

// hintByCPU gives each zone a share of the ready endpoints that fits its share of the CPUs: endpoints of its own and, where these are too
// few, of others. There are no hints where that cannot be done without overloading a zone, or something is not known.
func (s *State) hintByCPU(all []*discoveryv1.Endpoint) {
	var ready []*discoveryv1.Endpoint
	for _, e := range all {
		if *e.Conditions.Ready {
			if e.Zone == nil {
				return
			}
			ready = append(ready, e)
		}
	}
	share := s.shareOfCPU()
	if len(share) < 2 || len(ready) < len(share) && !s.Faults.On(fault.HintsAutoOverloaded) {
		return
	}
	zones := make([]string, 0, len(share))
	for zone := range share {
		zones = append(zones, zone)
	}
	slices.Sort(zones)
	// What a zone needs at least goes first, and the rest to whoever lacks most.
	owed, left := map[string]int{}, len(ready)
	for _, zone := range zones {
		owed[zone] = int(math.Ceil(share[zone] * float64(len(ready)) / (1 + overload)))
		left -= owed[zone]
	}
	if left < 0 && !s.Faults.On(fault.HintsAutoOverloaded) {
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
func (s *State) shareOfCPU() map[string]float64 {
	milli, total := map[string]float64{}, 0.0
	for _, node := range s.Nodes() {
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
