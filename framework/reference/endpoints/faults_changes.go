package endpoints

import (
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/framework/reference/rule"
)

// What can be wrong with pods, selectors and Endpoints objects that come, change and go.
var changeFaults = []wrong{
	{fault.EndedPodEndpoint, func(b *book) { b.podIsEndpoint.Replace(func(*corev1.Service, *corev1.Pod) bool { return true }) }},
	{fault.EndedPodPublished, func(b *book) {
		b.podIsEndpoint.Wrap(func(right func(*corev1.Service, *corev1.Pod) bool) func(*corev1.Service, *corev1.Pod) bool {
			return func(svc *corev1.Service, pod *corev1.Pod) bool {
				return right(svc, pod) || svc.Spec.PublishNotReadyAddresses
			}
		})
	}},
	{fault.AddresslessBlocks, blocking(func(t *task) bool {
		return slices.ContainsFunc(t.Pods, func(pod *corev1.Pod) bool { return len(podAddresses(pod)) == 0 })
	})},
	{fault.NodelessPodBlocks, blocking(func(t *task) bool {
		return slices.ContainsFunc(t.Pods, func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" && t.Node(pod.Spec.NodeName) == nil })
	})},
	{fault.ManyPortsIgnored, blocking(func(t *task) bool { return len(t.Service.Spec.Ports) > 100 })},
	{fault.AddressTwinWins, func(b *book) {
		b.podSelected.Wrap(func(right selecting) selecting {
			return func(t *task, pod *corev1.Pod) bool {
				return right(t, pod) && !slices.ContainsFunc(t.State.Pods, func(other *corev1.Pod) bool {
					return other.UID != pod.UID && right(t, other) && !isReady(other) && slices.ContainsFunc(podAddresses(pod), func(a string) bool { return slices.Contains(podAddresses(other), a) })
				})
			}
		})
	}},
	{fault.SelectorKeepsMirrored, func(b *book) {
		b.selected.Wrap(func(right settling) settling {
			return func(t *task, c *Changes) {
				right(t, c)
				c.Delete = slices.DeleteFunc(c.Delete, func(slice *discoveryv1.EndpointSlice) bool { return slices.Contains(t.mirror, slice) })
			}
		})
	}},
	{fault.MirrorNotReadyReady, mirroring(func(_ *task, groups []*group) []*group {
		for _, g := range groups {
			for i := range g.endpoints {
				g.endpoints[i].Conditions.Ready = new(true)
			}
		}
		return groups
	})},
	{fault.MirrorEarlyIgnored, mirroring(func(t *task, groups []*group) []*group {
		if versionOf(t.Endpoints) < versionOf(t.Service) {
			return nil
		}
		return groups
	})},
	{fault.MirrorFirstSubset, mirroring(func(_ *task, groups []*group) []*group {
		seen := map[string]bool{}
		for _, g := range groups {
			g.endpoints = slices.DeleteFunc(g.endpoints, func(e discoveryv1.Endpoint) bool {
				again := seen[e.Addresses[0]]
				seen[e.Addresses[0]] = true
				return again
			})
		}
		return groups
	})},
	{fault.TargetPortNameLent, func(b *book) {
		b.namedTarget.Wrap(func(right numbering) numbering {
			return func(t *task, p *corev1.ServicePort, pod *corev1.Pod) int32 {
				number := right(t, p, pod)
				for i := 0; number == 0 && i < len(t.Pods); i++ {
					number = right(t, p, t.Pods[i])
				}
				return number
			}
		})
	}},
	{fault.EndpointsObjectLags, func(b *book) {
		b.selected.Wrap(func(right settling) settling {
			return func(t *task, c *Changes) {
				right(t, c)
				if c.Endpoints == nil || t.Endpoints == nil || t.Service.Spec.PublishNotReadyAddresses {
					return
				}
				for i := range c.Endpoints.Subsets {
					subset := &c.Endpoints.Subsets[i]
					subset.Addresses = slices.DeleteFunc(slices.Clone(subset.Addresses), func(a corev1.EndpointAddress) bool {
						lags := wasNotReady(t.Endpoints, a.IP)
						if lags {
							subset.NotReadyAddresses = append(subset.NotReadyAddresses, a)
						}
						return lags
					})
				}
			}
		})
	}},
	{fault.QuickReadinessLost, func(b *book) {
		type history struct {
			version string
			ready   bool
			turns   []time.Time
			lost    bool
		}
		var mu sync.Mutex // of several API servers
		pods := map[types.UID]*history{}
		rule.Find(b.conditions, readyCondition.Name).Wrap(func(right conditioning) conditioning {
			return func(svc *corev1.Service, pod *corev1.Pod, c *discoveryv1.EndpointConditions) {
				right(svc, pod, c)
				mu.Lock()
				defer mu.Unlock()
				h := pods[pod.UID]
				if h == nil {
					h = &history{ready: *c.Ready}
					pods[pod.UID] = h
				}
				if h.version != pod.ResourceVersion && h.ready != *c.Ready {
					h.turns = append(h.turns, time.Now())
					h.lost = *c.Ready && len(h.turns) > manyTurns && time.Since(h.turns[len(h.turns)-manyTurns]) < time.Second
				}
				h.version, h.ready = pod.ResourceVersion, *c.Ready
				if h.lost {
					c.Ready = new(false)
				}
			}
		})
	}},
	{fault.HintsOfLateZoneMissing, func(b *book) {
		lost := map[types.UID]string{} // what a Service was like when a node without a zone took its hints
		b.hintsByCPU.Wrap(func(right func(*task, []*discoveryv1.Endpoint)) func(*task, []*discoveryv1.Endpoint) {
			return func(t *task, all []*discoveryv1.Endpoint) {
				state := t.Service.ResourceVersion
				for _, e := range all {
					state += " " + e.Addresses[0]
				}
				if len(t.shareOfCPU()) < 2 {
					lost[t.Service.UID] = state
				}
				if lost[t.Service.UID] != state {
					right(t, all)
				}
			}
		})
	}},
	{fault.SliceZoneOfFirst, func(b *book) {
		b.endpointZone.Wrap(func(right func(*task, *corev1.Pod) string) func(*task, *corev1.Pod) string {
			return func(t *task, pod *corev1.Pod) string {
				for _, slice := range t.Existing {
					for _, e := range slice.Endpoints {
						if e.TargetRef != nil && e.TargetRef.UID == pod.UID {
							return ptr.Deref(e.Zone, "")
						}
					}
				}
				return right(t, pod)
			}
		})
	}},
	{fault.EndpointsTruncatedSilently, func(b *book) { b.objectTruncated.Off() }},
}

// manyTurns is how often the readiness of a pod changes at least where a fault loses a change.
const manyTurns = 4

// blocking is a fault: in some states nothing of the Service is brought up to date.
func blocking(blocked func(*task) bool) func(*book) {
	return func(b *book) {
		b.selected.Wrap(func(right settling) settling {
			return func(t *task, c *Changes) {
				if !blocked(t) {
					right(t, c)
				}
			}
		})
	}
}

// mirroring is a fault: what is mirrored is changed.
func mirroring(change func(*task, []*group) []*group) func(*book) {
	return func(b *book) {
		b.mirroredGroups.Wrap(func(right func(*task) []*group) func(*task) []*group {
			return func(t *task) []*group { return change(t, right(t)) }
		})
	}
}

// versionOf is the resource version of an object as a number.
func versionOf(o metav1.Object) (n uint64) {
	n, _ = strconv.ParseUint(o.GetResourceVersion(), 10, 64) // the store writes it
	return n
}

// wasNotReady reports whether an Endpoints object lists the address among those that are not ready.
func wasNotReady(e *corev1.Endpoints, ip string) bool {
	return slices.ContainsFunc(e.Subsets, func(s corev1.EndpointSubset) bool {
		return slices.ContainsFunc(s.NotReadyAddresses, func(a corev1.EndpointAddress) bool { return a.IP == ip })
	})
}
