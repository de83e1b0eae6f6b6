package service

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/allocator"
	"github.com/service-conformance/conformance/framework/reference/fault"
)

// What can be wrong with node ports.
var nodePortFaults = []wrong{
	{fault.BalancerNodePortsAlways, func(b *book) { b.nodePortsWanted.Replace(hasNodePorts) }},
	{fault.NodePortReassigned, func(b *book) { at(b.keeps, nodePortsKept).Off() }},

	{fault.TypeChangeNewNodePorts, forgetNodePorts(func(_ *Rules, svc, old *corev1.Service, _ int) bool {
		return old != nil && svc.Spec.Type != old.Spec.Type
	})},
	{fault.NodePortIgnored, forgetNodePorts(func(_ *Rules, svc, old *corev1.Service, i int) bool {
		return hasNodePorts(svc) && !slices.Contains(nodePortsHeld(old), int(svc.Spec.Ports[i].NodePort))
	})},
	{fault.BalancerNodePortsDropped, forgetNodePorts(func(r *Rules, svc, _ *corev1.Service, _ int) bool {
		return isLoadBalancer(svc) && !r.nodePortsWanted.Do(svc)
	})},

	{fault.NodePortServerError, func(b *book) {
		b.nodePortRefused.Replace(func(_ *corev1.Service, _ int, err error) error { return apierrors.NewInternalError(err) })
	}},
	{fault.NodePortAnyNumber, acceptNodePort(isOutOfPortRange)},
	{fault.NodePortTwice, acceptNodePort(isInUse)},
	{fault.NodePortNotShared, func(b *book) {
		at(b.checks, nodePortsDistinct).Replace(func(_ *Rules, svc, _ *corev1.Service) (errs field.ErrorList) {
			for i := range svc.Spec.Ports {
				number := svc.Spec.Ports[i].NodePort
				if number != 0 && slices.ContainsFunc(svc.Spec.Ports[:i], func(p corev1.ServicePort) bool { return p.NodePort == number }) {
					errs = append(errs, field.Duplicate(nodePortPath(i), number))
				}
			}
			return errs
		})
	}},
	{fault.NodePortForTwo, func(b *book) {
		b.nodePortShared.Wrap(func(right sharing) sharing {
			return func(svc *corev1.Service, i int, _ bool) bool { return right(svc, i, false) }
		})
		at(b.checks, nodePortsDistinct).Off()
	}},
	{fault.UpdateDrawsNodePortFirst, func(b *book) {
		at(b.portsTaken, namedNodePortsTaken).Wrap(inOrder(false, func(t *Transaction, svc, old *corev1.Service, i int, _ int32) error {
			return t.rules.nodePortAssigned.Do(t, svc, old, i)
		}))
	}},
	{fault.DryRunNextNodePort, func(b *book) {
		at(b.portsTaken, namedNodePortsTaken).Wrap(inOrder(true, func(t *Transaction, svc, _ *corev1.Service, i int, highest int32) error {
			if highest > 0 && t.takePort(int(highest+1)) == nil {
				svc.Spec.Ports[i].NodePort = highest + 1
			}
			return nil
		}))
	}},
	{fault.NodePortFirstOnly, func(b *book) {
		b.nodePortAssigned.Wrap(func(right nodePortAssigning) nodePortAssigning {
			return func(t *Transaction, svc, old *corev1.Service, i int) error {
				if i > 0 {
					return nil
				}
				return right(t, svc, old, i)
			}
		})
	}},
	{fault.TypeNoNodePorts, func(b *book) { at(b.portsTaken, missingNodePortsAssigned).Off() }},

	{fault.TypeChangeLeaksNodePorts, func(b *book) {
		at(b.portsFreed, droppedNodePortsFreed).Wrap(func(right allocating) allocating {
			return func(t *Transaction, svc, old *corev1.Service) error {
				if !hasNodePorts(svc) {
					return nil
				}
				return right(t, svc, old)
			}
		})
	}},
	{fault.NodePortLeaks, func(b *book) { at(b.portsFreed, droppedNodePortsFreed).Off() }},

	{fault.NodePortOnClusterIP, func(b *book) {
		at(b.checks, nodePortsByType).Wrap(unless(func(svc, _ *corev1.Service) bool { return hasClusterIP(svc) }))
	}},
	{fault.NodePortOnAlias, func(b *book) {
		at(b.checks, nodePortsByType).Wrap(unless(func(svc, _ *corev1.Service) bool { return !hasClusterIP(svc) }))
		b.nodePortsOwned.Replace(nodePortsOf)
	}},
	{fault.NodePortNotCleared, func(b *book) {
		at(b.checks, nodePortsByType).Off()
		at(b.clears, nodePortsCleared).Off()
		b.nodePortsOwned.Replace(nodePortsOf)
	}},
	{fault.PortRangeDeleteKeeps, func(b *book) { at(b.releases, deletedNodePortsFreed).Off() }},
}

// forgetNodePorts is a fault: some node ports of a request are forgotten before any is taken.
func forgetNodePorts(forgotten func(r *Rules, svc, old *corev1.Service, i int) bool) func(*book) {
	return func(b *book) {
		b.portsTaken = before(b.portsTaken, namedNodePortsTaken, func(t *Transaction, svc, old *corev1.Service) error {
			for i := range svc.Spec.Ports {
				if forgotten(t.rules, svc, old, i) {
					svc.Spec.Ports[i].NodePort = 0
				}
			}
			return nil
		})
	}
}

// acceptNodePort is a fault: a node port that cannot be had, for this reason, is stored even so.
func acceptNodePort(reason func(error) bool) func(*book) {
	return func(b *book) {
		b.nodePortRefused.Wrap(func(right nodePortRefusing) nodePortRefusing {
			return func(svc *corev1.Service, i int, err error) error {
				if reason(err) {
					return nil
				}
				return right(svc, i, err)
			}
		})
	}
}

func isInUse(err error) bool { return errors.Is(err, allocator.ErrAllocated) }

func isOutOfPortRange(err error) bool {
	return errors.As(err, new(*allocator.PortNotInRangeError))
}

// What can be wrong with health check node ports.
var healthCheckFaults = []wrong{
	{fault.HealthCheckAlways, func(b *book) { b.healthCheckNeeded.Replace(isLoadBalancer) }},
	{fault.HealthCheckNever, func(b *book) { b.healthCheckNeeded.Replace(never) }},
	{fault.HealthCheckNotKept, func(b *book) { at(b.keeps, healthCheckPortKept).Off() }},

	{fault.HealthCheckServerError, func(b *book) {
		b.healthCheckPortRefused.Replace(func(_ *corev1.Service, err error) error { return apierrors.NewInternalError(err) })
	}},
	{fault.HealthCheckAnyNumber, func(b *book) {
		b.healthCheckPortRefused.Wrap(func(right func(*corev1.Service, error) error) func(*corev1.Service, error) error {
			return func(svc *corev1.Service, err error) error {
				if isOutOfPortRange(err) {
					return nil
				}
				return right(svc, err)
			}
		})
	}},
	{fault.HealthCheckNotReserved, func(b *book) {
		at(b.portsTaken, namedHealthCheckPortTaken).Off()
		at(b.portsTaken, missingHealthCheckPortAssigned).Wrap(func(right allocating) allocating {
			return func(t *Transaction, svc, old *corev1.Service) error {
				named := svc.Spec.HealthCheckNodePort
				err := right(t, svc, old)
				if port := svc.Spec.HealthCheckNodePort; port != named {
					t.freePort(int(port))
				}
				return err
			}
		})
	}},
	{fault.TypeChangeLeaksHealthPort, func(b *book) {
		at(b.portsFreed, uselessHealthCheckPortFreed).Wrap(func(right allocating) allocating {
			return func(t *Transaction, svc, old *corev1.Service) error {
				if svc.Spec.Type != old.Spec.Type {
					return nil
				}
				return right(t, svc, old)
			}
		})
	}},
	{fault.HealthCheckUpdateLeaks, func(b *book) { at(b.portsFreed, uselessHealthCheckPortFreed).Off() }},
	{fault.HealthCheckDeletionLeaks, func(b *book) { at(b.releases, deletedHealthCheckPortFreed).Off() }},

	{fault.HealthCheckNotCleared, func(b *book) { at(b.clears, healthCheckPortCleared).Off() }},
	{fault.HealthCheckUnneeded, func(b *book) { at(b.checks, healthCheckPortByType).Off() }},
	{fault.HealthCheckMutable, func(b *book) { at(b.updateChecks, healthCheckPortImmutable).Off() }},
}

// inOrder is a fault: an update, or a dry run of one, gets its node ports in the order of its ports. draw is for one that it leaves to the server, after the
// highest one that came before it.
func inOrder(dryRuns bool, draw func(t *Transaction, svc, old *corev1.Service, i int, highest int32) error) func(right allocating) allocating {
	return func(right allocating) allocating {
		return func(t *Transaction, svc, old *corev1.Service) error {
			if old == nil || dryRuns && !t.dryRun || !t.rules.nodePortsWanted.Do(svc) {
				return right(t, svc, old)
			}
			held, highest := nodePortsHeld(old), int32(0)
			for i := range svc.Spec.Ports {
				port := &svc.Spec.Ports[i]
				if port.NodePort == 0 {
					if err := draw(t, svc, old, i, highest); err != nil {
						return err
					}
				} else if !slices.Contains(held, int(port.NodePort)) && !t.rules.nodePortShared.Do(svc, i, false) {
					if err := t.takePort(int(port.NodePort)); err != nil {
						return t.rules.nodePortRefused.Do(svc, i, err)
					}
				}
				highest = max(highest, port.NodePort)
			}
			return nil
		}
	}
}
