package service

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

// What can be wrong with cluster IPs.
var clusterIPFaults = []wrong{
	// These make the addresses of a new Service fit that validation is to refuse.
	{fault.FamilyIgnored, mendNew(func(r *Rules, svc *corev1.Service) {
		svc.Spec.IPFamilies = slices.DeleteFunc(slices.Clone(svc.Spec.IPFamilies), func(f corev1.IPFamily) bool { return !slices.Contains(r.families, f) })
	})},
	{fault.ClusterIPLenient, mendNew(func(_ *Rules, svc *corev1.Service) {
		spec := &svc.Spec
		spec.ClusterIPs = slices.DeleteFunc(slices.Clone(spec.ClusterIPs), func(s string) bool { _, ok := parseIP(s); return !ok && s != corev1.ClusterIPNone })
		if i := slices.Index(spec.ClusterIPs, corev1.ClusterIPNone); i >= 0 && len(spec.ClusterIPs) > 1 {
			spec.ClusterIPs = slices.Delete(spec.ClusterIPs, max(i, 1), len(spec.ClusterIPs))
		}
		if _, ok := parseIP(spec.ClusterIP); !ok && spec.ClusterIP != corev1.ClusterIPNone {
			spec.ClusterIP = ""
		}
	})},
	{fault.ClusterIPsContradiction, mendNew(func(_ *Rules, svc *corev1.Service) {
		if len(svc.Spec.ClusterIPs) > 0 {
			svc.Spec.ClusterIP = svc.Spec.ClusterIPs[0]
		}
	})},
	{fault.ClusterIPsTruncated, mendNew(func(_ *Rules, svc *corev1.Service) {
		if len(svc.Spec.ClusterIPs) > 2 {
			svc.Spec.ClusterIPs = svc.Spec.ClusterIPs[:2]
		}
	})},
	{fault.ClusterIPsOfOneFamily, mendNew(func(_ *Rules, svc *corev1.Service) {
		if len(svc.Spec.ClusterIPs) != 2 {
			return
		}
		first, _ := parseIP(svc.Spec.ClusterIPs[0])
		if second, ok := parseIP(svc.Spec.ClusterIPs[1]); ok && familyOf(first) == familyOf(second) {
			svc.Spec.ClusterIPs = svc.Spec.ClusterIPs[:1]
		}
	})},
	{fault.ClusterIPsEmptyEntry, func(b *book) {
		b.create.Wrap(func(right creating) creating {
			return func(r *Rules, svc *corev1.Service, dryRun bool) (*Transaction, error) {
				if blank := []string{""}; slices.Equal(svc.Spec.ClusterIPs, blank) {
					svc.Spec.ClusterIPs = nil
					defer func() { svc.Spec.ClusterIPs = blank }()
				}
				return right(r, svc, dryRun)
			}
		})
	}},

	{fault.ClusterIPNotKept, func(b *book) { at(b.keeps, clusterIPsKept).Off() }},
	{fault.ClusterIPsNotShown, func(b *book) { b.views = append(b.views, bug(func(svc *corev1.Service) { svc.Spec.ClusterIPs = nil })) }},

	{fault.ClusterIPNotAssigned, func(b *book) {
		b.addressPerFamily.Wrap(func(right allocating) allocating {
			return func(t *Transaction, svc, old *corev1.Service) error {
				if len(svc.Spec.ClusterIPs) == 0 {
					return nil
				}
				return right(t, svc, old)
			}
		})
	}},
	{fault.HeadlessAssigned, func(b *book) {
		b.addressPerFamily.Wrap(func(right allocating) allocating {
			return func(t *Transaction, svc, old *corev1.Service) error {
				if isHeadless(svc) {
					svc.Spec.ClusterIP, svc.Spec.ClusterIPs = "", nil
				}
				return right(t, svc, old)
			}
		})
	}},
	{fault.ClusterIPReplaced, func(b *book) {
		b.clusterIPTaken.Wrap(func(right clusterIPTaking) clusterIPTaking {
			return func(t *Transaction, svc *corev1.Service, family corev1.IPFamily, chosen string) (string, error) {
				ip, err := right(t, svc, family, chosen)
				if err != nil && chosen != "" {
					return right(t, svc, family, "")
				}
				return ip, err
			}
		})
	}},
	{fault.ClusterIPIgnored, func(b *book) {
		b.clusterIPTaken.Wrap(func(right clusterIPTaking) clusterIPTaking {
			return func(t *Transaction, svc *corev1.Service, family corev1.IPFamily, _ string) (string, error) {
				return right(t, svc, family, "")
			}
		})
	}},
	{fault.FailureUnexplained, func(b *book) {
		b.addressPerFamily.Wrap(unexplained)
		at(b.addressChanges, secondaryClusterIPGained).Wrap(unexplained)
	}},

	{fault.TypeChangeNotHeld, func(b *book) {
		at(b.addressChanges, fromAliasGetsClusterIPs).Wrap(func(right allocating) allocating {
			return func(t *Transaction, svc, old *corev1.Service) error {
				err := right(t, svc, old)
				if !hasClusterIP(old) {
					t.freedIPs = append(t.freedIPs, t.takenIPs...)
				}
				return err
			}
		})
	}},
	{fault.TypeChangeLeaksClusterIPs, func(b *book) { at(b.addressChanges, toAliasFreesClusterIPs).Off() }},
	{fault.DualStackUpgradeNoAddress, func(b *book) { at(b.addressChanges, secondaryClusterIPGained).Off() }},
	{fault.DualStackDowngradeLeaks, func(b *book) { at(b.addressChanges, secondaryClusterIPFreed).Off() }},
	{fault.TypeChangeFreesClusterIPs, func(b *book) {
		b.addressChanges = after(b.addressChanges, secondaryClusterIPFreed, func(t *Transaction, svc, old *corev1.Service) error {
			if mayChangeSecondary(svc, old) && !gainsSecondary(svc, old) && !losesSecondary(svc, old) {
				freeClusterIPs(t, old)
			}
			return nil
		})
	}},
	{fault.TypeChangeReassigns, func(b *book) {
		for i := range b.addressChanges {
			b.addressChanges[i].Wrap(func(right allocating) allocating {
				return func(t *Transaction, svc, old *corev1.Service) error {
					if svc.Spec.Type != old.Spec.Type && mayChangeSecondary(svc, old) {
						return nil
					}
					return right(t, svc, old)
				}
			})
		}
		b.addressChanges = append(b.addressChanges, bug(func(t *Transaction, svc, old *corev1.Service) error {
			if svc.Spec.Type == old.Spec.Type || !mayChangeSecondary(svc, old) {
				return nil
			}
			freeClusterIPs(t, old)
			svc.Spec.ClusterIP, svc.Spec.ClusterIPs = "", nil
			return t.rules.addressPerFamily.Do(t, svc, old)
		}))
		changesType := unless(func(svc, old *corev1.Service) bool { return svc.Spec.Type != old.Spec.Type })
		at(b.updateChecks, clusterIPsImmutable).Wrap(changesType)
		at(b.updateChecks, secondaryClusterIPGoesWithPolicy).Wrap(changesType)
	}},
	{fault.TypeChangeKeepsClusterIPs, func(b *book) {
		at(b.clears, clusterIPsCleared).Off()
		at(b.clears, familiesCleared).Off()
	}},

	{fault.ClusterIPNotStrict, func(b *book) { b.clusterIPsStrict.Off() }},
	{fault.ClusterIPsOtherFamilies, func(b *book) { at(b.clusterIPFamilyChecks, clusterIPsMatchFamilies).Off() }},
	{fault.ClusterIPMutable, func(b *book) {
		at(b.updateChecks, clusterIPsImmutable).Off()
		at(b.updateChecks, secondaryClusterIPGoesWithPolicy).Off()
	}},
}

// mendNew is a fault: a new Service is changed before anybody looks at its addresses.
func mendNew(mend func(*Rules, *corev1.Service)) func(*book) {
	return func(b *book) {
		b.prepares = before(b.prepares, clusterIPsFromClusterIP, func(r *Rules, svc, _ *corev1.Service) { mend(r, svc) })
	}
}

// unexplained takes the reason out of a refusal.
func unexplained(right allocating) allocating {
	return func(t *Transaction, svc, old *corev1.Service) error {
		err := right(t, svc, old)
		var status *apierrors.StatusError
		if !errors.As(err, &status) {
			return err
		}
		status.ErrStatus.Message, status.ErrStatus.Details = "the request was refused", nil
		return status
	}
}

// What can be wrong with IP families and their policy.
var familyFaults = []wrong{
	// These make families fit that validation is to refuse.
	{fault.IPFamiliesIgnored, mendFamilies(func(_ *Rules, svc, old *corev1.Service) {
		if old == nil {
			svc.Spec.IPFamilies = nil
		}
	})},
	{fault.IPFamiliesUnknown, mendFamilies(func(r *Rules, svc, _ *corev1.Service) {
		svc.Spec.IPFamilies = slices.DeleteFunc(svc.Spec.IPFamilies, func(f corev1.IPFamily) bool { return !slices.Contains(r.families, f) })
	})},
	{fault.IPFamiliesMerged, mendFamilies(func(_ *Rules, svc, _ *corev1.Service) {
		var once []corev1.IPFamily
		for _, family := range svc.Spec.IPFamilies {
			if !slices.Contains(once, family) {
				once = append(once, family)
			}
		}
		svc.Spec.IPFamilies = once
	})},
	{fault.IPFamiliesRestored, mendFamilies(func(_ *Rules, svc, old *corev1.Service) {
		if old != nil && hasClusterIP(old) {
			svc.Spec.IPFamilies = slices.Clone(old.Spec.IPFamilies)
		}
	})},
	{fault.IPFamiliesNotShown, func(b *book) { b.views = append(b.views, bug(func(svc *corev1.Service) { svc.Spec.IPFamilies = nil })) }},

	{fault.IPFamilyPolicyReset, func(b *book) { at(b.policyDefaults, policyKept).Off() }},
	{fault.DualStackByDefault, func(b *book) {
		at(b.policyDefaults, policyDefault).Replace(defaultPolicyOf(corev1.IPFamilyPolicyPreferDualStack))
	}},
	{fault.IPFamilyPolicyNotValidated, func(b *book) { at(b.clusterIPChecks, policyKnown).Off() }},
	{fault.PreferDualStackUnknown, func(b *book) {
		at(b.clusterIPChecks, policyKnown).Wrap(refusing(func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
			if policyOf(svc) == corev1.IPFamilyPolicyPreferDualStack {
				return unknownPolicy(svc)
			}
			return nil
		}))
	}},

	{fault.DualStackRemovalIgnored, func(b *book) {
		at(b.familyChecks, dualStackKeepsSecondary).Wrap(func(right checking) checking {
			return func(r *Rules, svc, old *corev1.Service) field.ErrorList {
				if old != nil && policyOf(svc) != corev1.IPFamilyPolicySingleStack && len(old.Spec.IPFamilies) == 2 {
					svc.Spec.ClusterIPs, svc.Spec.IPFamilies = slices.Clone(old.Spec.ClusterIPs), slices.Clone(old.Spec.IPFamilies)
				}
				return right(r, svc, old)
			}
		})
	}},
	{fault.IPFamilyPolicyIgnored, func(b *book) { at(b.familyChecks, singleStackHasOneFamily).Off() }},
	{fault.ClusterIPOtherFamily, func(b *book) {
		b.familiesInferred.Wrap(func(right inferring) inferring {
			return func(r *Rules, svc *corev1.Service) field.ErrorList {
				known := len(svc.Spec.IPFamilies)
				for known < len(svc.Spec.ClusterIPs) && r.hasFamilyOf(svc.Spec.ClusterIPs[known]) {
					known++
				}
				if isHeadless(svc) || known >= len(svc.Spec.ClusterIPs) {
					return right(r, svc)
				}
				svc.Spec.ClusterIPs = svc.Spec.ClusterIPs[:known]
				errs := right(r, svc)
				svc.Spec.ClusterIP, svc.Spec.ClusterIPs = "", nil
				return errs
			}
		})
	}},
	{fault.ClusterIPsFamilyNotInferred, func(b *book) { b.familiesInferred.Off() }},
	{fault.IPFamiliesReordered, func(b *book) {
		b.familiesInferred.Wrap(func(right inferring) inferring {
			return func(r *Rules, svc *corev1.Service) field.ErrorList {
				errs := right(r, svc)
				if len(svc.Spec.IPFamilies) == 2 && svc.Spec.IPFamilies[0] != r.families[0] {
					slices.Reverse(svc.Spec.IPFamilies)
				}
				return errs
			}
		})
	}},
	{fault.RequireDualStackAsPrefer, func(b *book) { at(b.configuredChecks, dualStackConfigured).Off() }},
	{fault.PreferDualStackRefused, func(b *book) {
		at(b.configuredChecks, dualStackConfigured).Wrap(refusing(func(r *Rules, svc, _ *corev1.Service) field.ErrorList {
			if policyOf(svc) == corev1.IPFamilyPolicyPreferDualStack && len(r.families) < 2 {
				return noDualStack(svc)
			}
			return nil
		}))
	}},
	{fault.IPFamiliesDefaultLast, func(b *book) {
		b.familyDefault.Replace(func(r *Rules) corev1.IPFamily { return r.families[len(r.families)-1] })
	}},
	{fault.DualStackNotCompleted, func(b *book) { b.policyGetsBoth.Replace(never) }},
	{fault.SingleStackGetsBoth, func(b *book) { b.policyGetsBoth.Replace(always) }},

	{fault.DualStackPolicyFixed, func(b *book) {
		at(b.updateChecks, primaryFamilyImmutable).Wrap(refusing(func(_ *Rules, svc, old *corev1.Service) field.ErrorList {
			if keepsFamilies(svc, old) && policyOf(svc) != policyOf(old) && len(old.Spec.IPFamilies) == 2 && len(svc.Spec.IPFamilies) == 2 {
				return field.ErrorList{field.Invalid(ipFamilyPolicyPath, policyOf(svc), "may not change once set")}
			}
			return nil
		}))
	}},
	{fault.HeadlessFamiliesMutable, func(b *book) {
		at(b.keeps, headlessFamiliesKept).Off()
		headless := unless(func(svc, _ *corev1.Service) bool { return isHeadless(svc) })
		at(b.updateChecks, primaryFamilyImmutable).Wrap(headless)
		at(b.updateChecks, secondaryFamilyGoesWithPolicy).Wrap(headless)
	}},
}

// mendFamilies is a fault: the families of a Service are changed before anybody looks at them.
func mendFamilies(mend adjusting) func(*book) {
	return func(b *book) { b.policyDefaults = before(b.policyDefaults, policyKept, mend) }
}

// hasFamilyOf reports whether the cluster has the family of an address.
func (r *Rules) hasFamilyOf(address string) bool {
	ip, _ := parseIP(address)
	return slices.Contains(r.families, familyOf(ip))
}
