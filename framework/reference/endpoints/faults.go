package endpoints

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/framework/reference/rule"
)

// New makes the rules with the deliberate bugs that are switched on.
func New(faults fault.Set) *Rules { return &Rules{fault.Apply(newBook(), wrongs, faults)} }

// wrong is a fault and what it changes in the book of rules.
type wrong fault.Edit[book]

// wrongs are all faults of this package.
var wrongs = slices.Concat(selectorFaults, mirrorFaults, sliceFaults, conditionFaults, hintFaults, changeFaults)

// What can be wrong with which pods are selected.
var selectorFaults = []wrong{
	{fault.SelectorKeysOnly, func(b *book) {
		b.labelFits.Replace(func(labels map[string]string, key, _ string) bool {
			_, ok := labels[key]
			return ok
		})
	}},
	{fault.SelectorAnyLabel, func(b *book) {
		b.everyLabelFits.Replace(func(b *book, selector, labels map[string]string) bool {
			for key, value := range selector {
				if b.labelFits.Do(labels, key, value) {
					return true
				}
			}
			return len(selector) == 0
		})
	}},
	{fault.SelectorSticky, func(b *book) {
		b.podSelected.Wrap(func(right selecting) selecting {
			return func(t *task, pod *corev1.Pod) bool { return right(t, pod) || t.lists(pod) }
		})
	}},
	{fault.SelectorlessSelects, func(b *book) {
		b.selectorNeeded.Replace(func(*corev1.Service) bool { return true })
	}},
	{fault.SelectorlessEmptied, func(b *book) {
		b.selectorless.Wrap(func(right settling) settling {
			return func(t *task, c *Changes) {
				right(t, c)
				for _, slice := range t.Existing {
					if !Generated(slice) {
						c.Delete = append(c.Delete, slice)
					}
				}
			}
		})
	}},
	{fault.ExternalNameSelects, func(b *book) { b.aliasHasNothing.Off() }},
}

// lists reports whether an existing slice lists the pod.
func (t *task) lists(pod *corev1.Pod) bool {
	return slices.ContainsFunc(t.Existing, func(slice *discoveryv1.EndpointSlice) bool {
		return slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return e.TargetRef != nil && e.TargetRef.UID == pod.UID })
	})
}

// What can be wrong with the mirroring of Endpoints.
var mirrorFaults = []wrong{
	{fault.MirrorMissing, func(b *book) { b.mirrored.Off() }},
	{fault.MirrorSkipIgnored, func(b *book) { b.skipMirror.Off() }},
	{fault.MirrorAfterSelectorMissing, func(b *book) {
		b.mirroredGroups.Wrap(func(right func(*task) []*group) func(*task) []*group {
			return func(t *task) []*group {
				if len(t.generated) > 0 {
					return nil
				}
				return right(t)
			}
		})
	}},
	{fault.MirrorStale, func(b *book) {
		b.mirroredGroups.Wrap(func(right func(*task) []*group) func(*task) []*group {
			return func(t *task) (groups []*group) {
				for _, slice := range t.mirror {
					groups = append(groups, &group{addressType: slice.AddressType, ports: slice.Ports, endpoints: slice.Endpoints, capacity: maxMirrored})
				}
				if len(groups) == 0 {
					return right(t)
				}
				return groups
			}
		})
	}},
	{fault.MirrorUnlimited, func(b *book) {
		b.mirroredLimit.Replace(func(s *corev1.EndpointSubset) int { return len(s.Addresses) + len(s.NotReadyAddresses) })
	}},
}

// What can be wrong with generated slices and their ports.
var sliceFaults = []wrong{
	{fault.SliceWithoutServiceName, func(b *book) {
		rule.Find(b.form, serviceLabel.Name).Replace(func(_ *task, _ string, f *form) { delete(f.labels, discoveryv1.LabelServiceName) })
	}},
	{fault.SliceWithoutManager, func(b *book) {
		rule.Find(b.form, managerLabel.Name).Replace(func(_ *task, _ string, f *form) { delete(f.labels, discoveryv1.LabelManagedBy) })
		b.ownSlice.Wrap(func(right func(*corev1.Service, *discoveryv1.EndpointSlice) bool) func(*corev1.Service, *discoveryv1.EndpointSlice) bool {
			return func(svc *corev1.Service, slice *discoveryv1.EndpointSlice) bool {
				return right(svc, slice) || ownedBy(slice, svc)
			}
		})
	}},
	{fault.SliceWithoutOwner, func(b *book) { rule.Find(b.form, sliceOwned.Name).Off() }},
	{fault.SliceHeadlessCopied, func(b *book) { rule.Find(b.generatedForm, headlessLabel.Name).Off() }},
	{fault.SliceOversized, func(b *book) { b.sliceCapacity.Replace(func() int { return maxMirrored }) }},
	{fault.SlicePrimaryFamily, primaryFamilyOnly},
	{fault.SliceFamiliesMixed, func(b *book) {
		primaryFamilyOnly(b)
		b.addressFits.Wrap(func(right func(*corev1.Service, corev1.IPFamily, netip.Addr) bool) func(*corev1.Service, corev1.IPFamily, netip.Addr) bool {
			return func(svc *corev1.Service, family corev1.IPFamily, a netip.Addr) bool {
				return len(svc.Spec.IPFamilies) > 1 || right(svc, family, a)
			}
		})
	}},

	{fault.SlicePortsNamedByTarget, func(b *book) {
		b.portFields = rule.After(b.portFields, portNamed.Name, bug(func(_ *corev1.Service, p *corev1.ServicePort, port *discoveryv1.EndpointPort) {
			if p.TargetPort.Type == intstr.String {
				port.Name = &p.TargetPort.StrVal
			}
		}))
	}},
	{fault.SlicePortsUnnamed, func(b *book) {
		b.portFields = append(b.portFields, bug(func(svc *corev1.Service, _ *corev1.ServicePort, port *discoveryv1.EndpointPort) {
			if len(svc.Spec.Ports) == 1 {
				port.Name = new("")
			}
		}))
	}},
	{fault.SliceAppProtocolDropped, func(b *book) { rule.Find(b.portFields, appProtocolCopied.Name).Off() }},
	{fault.SliceTargetPortOfFirst, func(b *book) {
		b.namedTarget.Wrap(func(right numbering) numbering {
			return func(t *task, p *corev1.ServicePort, _ *corev1.Pod) int32 { return right(t, p, t.Pods[0]) }
		})
	}},
	{fault.NamedTargetNeverFound, func(b *book) { b.namedTarget.Off() }},
	{fault.NamedTargetOfFirst, func(b *book) {
		b.namedTarget.Wrap(func(right numbering) numbering {
			return func(t *task, p *corev1.ServicePort, pod *corev1.Pod) int32 {
				for _, c := range pod.Spec.Containers {
					if slices.ContainsFunc(c.Ports, func(port corev1.ContainerPort) bool { return port.Name == p.TargetPort.StrVal }) {
						alone := pod.DeepCopy()
						alone.Spec.Containers, alone.Spec.InitContainers = []corev1.Container{c}, nil
						return right(t, p, alone)
					}
				}
				return right(t, p, pod)
			}
		})
	}},
	{fault.SliceTargetPortUnread, func(b *book) {
		b.namedTarget.Replace(func(_ *task, p *corev1.ServicePort, _ *corev1.Pod) int32 { return p.Port })
	}},
}

// bug is a rule that a fault adds. It follows no requirement.
func bug[F any](do F) rule.Rule[F] { return rule.New("a bug", do) }

func ownedBy(slice *discoveryv1.EndpointSlice, svc *corev1.Service) bool {
	for _, o := range slice.OwnerReferences {
		if o.UID == svc.UID {
			return true
		}
	}
	return false
}

func primaryFamilyOnly(b *book) {
	b.sliceFamilies.Wrap(func(right func(*corev1.Service) []corev1.IPFamily) func(*corev1.Service) []corev1.IPFamily {
		return func(svc *corev1.Service) []corev1.IPFamily { return right(svc)[:1] }
	})
}

// What can be wrong with the conditions of endpoints.
var conditionFaults = []wrong{
	{fault.SliceTerminatingRemoved, remove(isTerminating)},
	{fault.SliceUnreadyRemoved, remove(func(pod *corev1.Pod) bool { return !isReady(pod) })},
	{fault.SliceTerminatingReady, func(b *book) {
		rule.Find(b.conditions, readyCondition.Name).Replace(func(_ *corev1.Service, pod *corev1.Pod, c *discoveryv1.EndpointConditions) {
			c.Ready = new(isReady(pod))
		})
	}},
	{fault.SliceTerminatingUnsaid, func(b *book) {
		rule.Find(b.conditions, terminatingCondition.Name).Replace(func(_ *corev1.Service, _ *corev1.Pod, c *discoveryv1.EndpointConditions) {
			c.Terminating = new(false)
		})
	}},
	{fault.SliceNotReadyUnpublished, func(b *book) { rule.Find(b.conditions, publishedReady.Name).Off() }},
	{fault.SliceServingIsReady, func(b *book) {
		b.conditions = append(b.conditions, bug(func(_ *corev1.Service, _ *corev1.Pod, c *discoveryv1.EndpointConditions) {
			c.Serving = new(*c.Ready)
		}))
	}},
	{fault.EndpointsNotReadyUnpublished, func(b *book) { b.objectOfNotReady.Off() }},
}

// remove is a fault: some pods are no endpoints.
func remove(some func(*corev1.Pod) bool) func(*book) {
	return func(b *book) {
		b.podIsEndpoint.Wrap(func(right func(*corev1.Service, *corev1.Pod) bool) func(*corev1.Service, *corev1.Pod) bool {
			return func(svc *corev1.Service, pod *corev1.Pod) bool { return right(svc, pod) && !some(pod) }
		})
	}
}

// What can be wrong with hints.
var hintFaults = []wrong{
	{fault.HintsNotClose, func(b *book) { b.closeHints.Off() }},
	{fault.HintsNodeAlone, func(b *book) { b.sameNodeHints.Replace(nodeHints) }},
	{fault.HintsZoneForNode, func(b *book) { b.sameNodeHints.Replace(zoneHints) }},
	{fault.HintsCloseOnly, func(b *book) {
		b.sameZoneHints.Off()
		b.sameNodeHints.Off()
	}},
	{fault.HintsOfFirstZone, func(b *book) {
		b.zoneOfHint.Wrap(func(right func(all []*discoveryv1.Endpoint, e *discoveryv1.Endpoint) *string) func([]*discoveryv1.Endpoint, *discoveryv1.Endpoint) *string {
			return func(all []*discoveryv1.Endpoint, _ *discoveryv1.Endpoint) *string { return right(all, all[0]) }
		})
	}},
	{fault.HintsFieldFirst, func(b *book) {
		b.topologyModeFirst.Wrap(func(right asking) asking {
			return func(svc *corev1.Service) bool { return right(svc) && svc.Spec.TrafficDistribution == nil }
		})
	}},
	{fault.HintsAutoMissing, func(b *book) { b.hintsByCPU.Off() }},
	{fault.HintsAutoOverloaded, func(b *book) {
		b.enoughEndpoints.Replace(func(_, _, _ int) bool { return true })
	}},
}
