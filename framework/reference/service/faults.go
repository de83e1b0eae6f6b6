package service

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/framework/reference/rule"
)

// Faults are the deliberate bugs that are switched on.
type Faults = fault.Set

// wrong is a fault and what it changes in the book of rules.
type wrong fault.Edit[book]

// wrongs are all faults of this package.
func wrongs() []wrong {
	return slices.Concat(requestFaults, objectFaults, typeFaults, portFaults, affinityFaults, clusterIPFaults, familyFaults, externalFaults,
		trafficFaults, balancerFaults, nodePortFaults, healthCheckFaults, statusFaults, warningFaults, allocationFaults, addressFaults, historyFaults)
}

// edit makes the faults that are switched on part of the book.
func (b *book) edit(on Faults) { fault.Apply(b, wrongs(), on) }

// bug is a rule that a fault adds. It follows no requirement.
func bug[F any](do F) rule.Rule[F] { return rule.New("a bug", do) }

// at finds a rule in a list of the book.
func at[F any](list []rule.Rule[F], right rule.Rule[F]) *rule.Rule[F] {
	return rule.Find(list, right.Name)
}

// before adds a bug to a list, before a rule.
func before[F any](list []rule.Rule[F], right rule.Rule[F], do F) []rule.Rule[F] {
	return rule.Before(list, right.Name, bug(do))
}

// after adds a bug to a list, after a rule.
func after[F any](list []rule.Rule[F], right rule.Rule[F], do F) []rule.Rule[F] {
	return rule.After(list, right.Name, bug(do))
}

// refusing wraps a check: what the bug refuses is refused for that reason only.
func refusing(wrongly checking) func(checking) checking {
	return func(right checking) checking {
		return func(r *Rules, svc, old *corev1.Service) field.ErrorList {
			if errs := wrongly(r, svc, old); len(errs) > 0 {
				return errs
			}
			return right(r, svc, old)
		}
	}
}

// unless wraps a check: it accepts everything where the condition holds.
func unless(condition func(svc, old *corev1.Service) bool) func(checking) checking {
	return func(right checking) checking {
		return func(r *Rules, svc, old *corev1.Service) field.ErrorList {
			if condition(svc, old) {
				return nil
			}
			return right(r, svc, old)
		}
	}
}

// always and never are decisions that a fault has made.
func always(*corev1.Service) bool { return true }
func never(*corev1.Service) bool  { return false }
