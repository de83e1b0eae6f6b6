package service

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilnet "k8s.io/utils/net"

	"github.com/service-conformance/conformance/framework/reference/allocator"
	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

var clusterIPsPath = specPath.Child("clusterIPs")

// parseIP reads an address that has passed validation. Older versions let leading zeros and IPv4-mapped addresses pass.
func parseIP(s string) (netip.Addr, bool) {
	ip, ok := netip.AddrFromSlice(utilnet.ParseIPSloppy(s))
	return ip.Unmap(), ok
}

// clusterIPsOf returns the addresses that a stored Service holds.
func clusterIPsOf(svc *corev1.Service) []netip.Addr {
	if !hasClusterIP(svc) || isHeadless(svc) {
		return nil
	}
	ips := make([]netip.Addr, 0, len(svc.Spec.ClusterIPs))
	for _, s := range svc.Spec.ClusterIPs {
		if ip, ok := parseIP(s); ok {
			ips = append(ips, ip)
		}
	}
	return ips
}

// Rules that keep clusterIP and clusterIPs in step for a client that knows, or changes, only one of them. A contradiction between
// the two is left for validation.
var (
	clusterIPsFromClusterIP = rule.New("cluster-ips-from-cluster-ip", func(_ *Rules, svc, _ *corev1.Service) {
		if svc.Spec.ClusterIP != "" && len(svc.Spec.ClusterIPs) == 0 {
			svc.Spec.ClusterIPs = []string{svc.Spec.ClusterIP}
		}
	}, spec.APIClusterIPsFromClusterIP)

	clusterIPsFollowClusterIP = rule.New("cluster-ips-follow-cluster-ip", func(_ *Rules, svc, old *corev1.Service) {
		spec := &svc.Spec
		samePlural := slices.Equal(spec.ClusterIPs, old.Spec.ClusterIPs)
		switch spec.ClusterIP {
		case old.Spec.ClusterIP:
			if len(spec.ClusterIPs) == 0 {
				spec.ClusterIPs = slices.Clone(old.Spec.ClusterIPs)
			}
		case "":
			if samePlural {
				spec.ClusterIPs = nil
			}
		default:
			if samePlural {
				spec.ClusterIPs = []string{spec.ClusterIP}
			}
		}
	}, spec.APIClusterIPKept, spec.APIClusterIPsFromClusterIP)
)

// An update that leaves the addresses out keeps them.
var clusterIPsKept = rule.New("cluster-ips-kept", func(_ *Rules, svc, old *corev1.Service) {
	if !hasClusterIP(old) || !hasClusterIP(svc) {
		return
	}
	if svc.Spec.ClusterIP == "" {
		svc.Spec.ClusterIP = old.Spec.ClusterIP
	}
	if len(svc.Spec.ClusterIPs) == 0 {
		svc.Spec.ClusterIPs = slices.Clone(old.Spec.ClusterIPs)
	}
}, spec.APIClusterIPKept, spec.AllocWellKnownStays)

// How a Service gets its addresses.
var (
	addressPerFamily = rule.New("address-per-family", func(t *Transaction, svc, _ *corev1.Service) error {
		r := t.rules
		if !r.typeHasClusterIPs.Do(svc) || isHeadless(svc) {
			return nil
		}
		ips := make([]string, 0, 2)
		for i, family := range svc.Spec.IPFamilies {
			chosen := ""
			if i < len(svc.Spec.ClusterIPs) {
				chosen = svc.Spec.ClusterIPs[i]
			}
			ip, err := r.clusterIPTaken.Do(t, svc, family, chosen)
			if err != nil {
				return err
			}
			ips = append(ips, ip)
		}
		svc.Spec.ClusterIPs, svc.Spec.ClusterIP = ips, ips[0]
		return nil
	}, spec.APIClusterIPAssigned, spec.APIClusterIPsAssigned, spec.APIClusterIPNone, spec.AllocClusterIPAssigned, spec.AllocDualStackEachFamily)

	// The address is the chosen one, kept as it is written, or any of the family.
	clusterIPTaken = rule.New("cluster-ip-taken", func(t *Transaction, svc *corev1.Service, family corev1.IPFamily, chosen string) (string, error) {
		if chosen != "" {
			return chosen, takeChosenClusterIP(t, svc, chosen)
		}
		ip, err := t.takeNextIP(family)
		if errors.Is(err, allocator.ErrFull) {
			return "", exhausted(svc, "cluster IP", err)
		}
		if err != nil {
			return "", refuseClusterIP(svc, "failed to allocate IP: %v", err)
		}
		return ip.String(), nil
	}, spec.APIClusterIPChosen, spec.APIClusterIPsChosen, spec.APIClusterIPOutOfRange, spec.APIClusterIPInUse,
		spec.AllocStaticExact, spec.AllocDynamicAssigned, spec.AllocFailureNamed)
)

// takeChosenClusterIP takes the chosen address if it is in a range and free, otherwise the request fails.
func takeChosenClusterIP(t *Transaction, svc *corev1.Service, chosen string) error {
	ip, ok := parseIP(chosen)
	if !ok {
		return refuseClusterIP(svc, "failed to parse IP %q", chosen)
	}
	if err := t.takeIP(ip); err != nil {
		return refuseClusterIP(svc, "failed to allocate IP %s: %v", chosen, err)
	}
	return nil
}

func refuseClusterIP(svc *corev1.Service, format string, args ...any) error {
	return refusal(svc, field.ErrorList{field.Invalid(clusterIPsPath, svc.Spec.ClusterIPs, fmt.Sprintf(format, args...))})
}

// What an update takes and gives back. A headless Service keeps having no addresses.
var (
	fromAliasGetsClusterIPs = rule.New("change-from-alias-gets-cluster-ips", func(t *Transaction, svc, old *corev1.Service) error {
		if hasClusterIP(old) {
			return nil
		}
		return t.rules.addressPerFamily.Do(t, svc, old)
	}, spec.APIClusterIPFromExternalName, spec.AllocUpdateToClusterIP, spec.APITypeChangeHoldsClusterIP)

	toAliasFreesClusterIPs = rule.New("change-to-alias-frees-cluster-ips", func(t *Transaction, svc, old *corev1.Service) error {
		if hasClusterIP(old) && !isHeadless(old) && !hasClusterIP(svc) {
			freeClusterIPs(t, old)
		}
		return nil
	}, spec.APIClusterIPCleared, spec.AllocExternalNameReleases)

	secondaryClusterIPGained = rule.New("secondary-cluster-ip-gained", func(t *Transaction, svc, old *corev1.Service) error {
		if !mayChangeSecondary(svc, old) || !gainsSecondary(svc, old) {
			return nil
		}
		return addSecondaryClusterIP(t, svc)
	}, spec.APIDualStackUpgrade, spec.AllocUpgradeSecondaryUnique)

	secondaryClusterIPFreed = rule.New("secondary-cluster-ip-freed", func(t *Transaction, svc, old *corev1.Service) error {
		if !mayChangeSecondary(svc, old) || !losesSecondary(svc, old) {
			return nil
		}
		for i, ip := range clusterIPsOf(old) {
			if i > 0 {
				t.freeIP(ip)
			}
		}
		return nil
	}, spec.APIDualStackDowngrade, spec.AllocDowngradeReleasesSecondary)
)

// mayChangeSecondary reports whether a Service that has virtual IPs, and goes on having them, may gain or lose the second one.
func mayChangeSecondary(svc, old *corev1.Service) bool {
	return hasClusterIP(old) && !isHeadless(old) && hasClusterIP(svc) && !keepsPreferDualStack(svc, old)
}

func gainsSecondary(svc, old *corev1.Service) bool {
	return len(old.Spec.IPFamilies) == 1 && len(svc.Spec.IPFamilies) == 2
}

func losesSecondary(svc, old *corev1.Service) bool {
	return len(old.Spec.IPFamilies) == 2 && len(svc.Spec.IPFamilies) == 1
}

// freeClusterIPs gives back all addresses of a stored Service.
func freeClusterIPs(t *Transaction, old *corev1.Service) {
	for _, ip := range clusterIPsOf(old) {
		t.freeIP(ip)
	}
}

// addSecondaryClusterIP: a Service that becomes dual-stack gets a second address, which the client may choose.
func addSecondaryClusterIP(t *Transaction, svc *corev1.Service) error {
	if isHeadless(svc) || len(svc.Spec.ClusterIPs) == 0 { // a change of the primary address, which validation refuses
		return nil
	}
	chosen := ""
	if len(svc.Spec.ClusterIPs) > 1 {
		chosen = svc.Spec.ClusterIPs[1]
	}
	ip, err := t.rules.clusterIPTaken.Do(t, svc, svc.Spec.IPFamilies[1], chosen)
	if err != nil {
		return err
	}
	svc.Spec.ClusterIPs = append(svc.Spec.ClusterIPs[:1:1], ip)
	return nil
}

// A change to ExternalName clears the addresses, unless the request changes them as well.
var clusterIPsCleared = rule.New("cluster-ips-cleared", func(_ *Rules, svc, old *corev1.Service) {
	if !hasClusterIP(old) || hasClusterIP(svc) {
		return
	}
	if svc.Spec.ClusterIP == old.Spec.ClusterIP && slices.Equal(svc.Spec.ClusterIPs, old.Spec.ClusterIPs) {
		svc.Spec.ClusterIP, svc.Spec.ClusterIPs = "", nil
	}
}, spec.APIClusterIPCleared, spec.APIUpdateClearsUnchanged, spec.APITypeChangeHeadless)

// validateClusterIPFields applies the rules for clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy that need no knowledge of
// the cluster. They are checked before anything is allocated.
func validateClusterIPFields(r *Rules, svc, old *corev1.Service) field.ErrorList {
	if !hasClusterIP(svc) {
		return nil
	}
	errs := r.refusals(nil, r.clusterIPChecks, svc, old)
	invalid := r.clusterIPSyntax.Do(r, svc, old)
	errs = append(errs, invalid...)
	errs = append(errs, r.clusterIPsAtMostTwo.Do(r, svc, old)...)
	if len(invalid) > 0 {
		return errs // the families of addresses that are none would be guesses
	}
	return r.refusals(errs, r.clusterIPFamilyChecks, svc, old)
}

// Rules for clusterIP and clusterIPs.
var (
	clusterIPFieldsValid = rule.New("cluster-ip-fields-valid", validateClusterIPFields, spec.APIClusterIPSyntax, spec.APIClusterIPsValues)

	clusterIPsBeginWithClusterIP = rule.New("cluster-ips-begin-with-cluster-ip", func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
		ip, ips := svc.Spec.ClusterIP, svc.Spec.ClusterIPs
		switch {
		case ip == "" && len(ips) > 0:
			return field.ErrorList{field.Invalid(clusterIPsPath, ips, "must be empty when `clusterIP` is not specified")}
		case ip != "" && len(ips) == 0:
			return field.ErrorList{field.Required(clusterIPsPath, "")}
		case ip != "" && ips[0] != ip:
			return field.ErrorList{field.Invalid(clusterIPsPath, ips, "first value must match `clusterIP`")}
		}
		return nil
	}, spec.APIClusterIPsFirst)

	// Each of clusterIPs is an IP address, or the only one is None. A value that is stored may stay as it is.
	clusterIPSyntax = rule.New("cluster-ip-syntax", func(r *Rules, svc, old *corev1.Service) (errs field.ErrorList) {
		var stored []string
		if old != nil {
			stored = old.Spec.ClusterIPs
		}
		for i, ip := range svc.Spec.ClusterIPs {
			if i == 0 && ip == corev1.ClusterIPNone {
				if len(svc.Spec.ClusterIPs) > 1 {
					errs = append(errs, field.Invalid(clusterIPsPath, svc.Spec.ClusterIPs, "'None' must be the first and only value"))
				}
				continue
			}
			errs = append(errs, validation.IsValidIPForLegacyField(clusterIPsPath.Index(i), ip, r.clusterIPsStrict.Do(r), r.storedStays.Do(stored))...)
		}
		return errs
	}, spec.APIClusterIPSyntax, spec.APIClusterIPsValues, spec.APIClusterIPsEmptyEntry)

	clusterIPsStrict = rule.New("cluster-ips-strict", (*Rules).strictIPs, spec.APIClusterIPStrict)

	clusterIPsAtMostTwo = rule.New("cluster-ips-at-most-two", func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
		if len(svc.Spec.ClusterIPs) > 2 {
			return field.ErrorList{field.Invalid(clusterIPsPath, svc.Spec.ClusterIPs, "may only hold up to 2 values")}
		}
		return nil
	}, spec.APIClusterIPsAtMostTwo)

	clusterIPsOnePerFamily = rule.New("cluster-ips-one-per-family", func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
		families := map[corev1.IPFamily]bool{}
		for _, s := range svc.Spec.ClusterIPs {
			ip, _ := parseIP(s)
			if families[familyOf(ip)] {
				return field.ErrorList{field.Invalid(clusterIPsPath, svc.Spec.ClusterIPs, "may specify no more than one IP for each IP family")}
			}
			families[familyOf(ip)] = true
		}
		return nil
	}, spec.APIClusterIPsOnePerFamily)

	clusterIPsMatchFamilies = rule.New("cluster-ips-match-families", func(_ *Rules, svc, _ *corev1.Service) (errs field.ErrorList) {
		if isHeadless(svc) {
			return nil
		}
		for i, s := range svc.Spec.ClusterIPs {
			if i >= len(svc.Spec.IPFamilies) || !slices.Contains(ipFamilies, svc.Spec.IPFamilies[i]) {
				continue
			}
			want := svc.Spec.IPFamilies[i]
			if ip, ok := parseIP(s); ok && familyOf(ip) != want {
				errs = append(errs, field.Invalid(clusterIPsPath.Index(i), s, fmt.Sprintf("expected an %s value as indicated by `ipFamilies[%d]`", want, i)))
			}
		}
		return errs
	}, spec.APIClusterIPsMatchFamilies)

	// Only the secondary address may come, or go.
	clusterIPsImmutable = rule.New("cluster-ips-immutable", func(_ *Rules, svc, old *corev1.Service) (errs field.ErrorList) {
		if !keepsClusterIPs(svc, old) {
			return nil
		}
		now, before := svc.Spec.ClusterIPs, old.Spec.ClusterIPs
		switch {
		case len(now) == 0 && len(before) > 0:
			errs = append(errs, field.Invalid(clusterIPsPath.Index(0), now, "primary clusterIP can not be unset"))
		case len(now) == len(before):
			for i := range now {
				if now[i] != before[i] {
					errs = append(errs, field.Invalid(clusterIPsPath.Index(i), now, "may not change once set"))
				}
			}
		case len(before) > 0 && now[0] != before[0]:
			errs = append(errs, field.Invalid(clusterIPsPath.Index(0), now, "may not change once set"))
		}
		return errs
	}, spec.APIClusterIPImmutable, spec.APIClusterIPsSecondaryImmutable, spec.APITypeChangeKeepsClusterIP)

	secondaryClusterIPGoesWithPolicy = rule.New("secondary-cluster-ip-goes-with-policy", func(_ *Rules, svc, old *corev1.Service) field.ErrorList {
		if keepsClusterIPs(svc, old) && len(svc.Spec.ClusterIPs) == 1 && len(old.Spec.ClusterIPs) == 2 && policyOf(svc) != corev1.IPFamilyPolicySingleStack {
			return field.ErrorList{field.Invalid(ipFamilyPolicyPath, policyOf(svc), "must be set to 'SingleStack' when releasing the secondary clusterIP")}
		}
		return nil
	}, spec.APIIPFamiliesRemovalNeedsSingleStack)
)

// keepsClusterIPs reports whether an update has to leave the addresses as they are.
func keepsClusterIPs(svc, old *corev1.Service) bool {
	return hasClusterIP(svc) && hasClusterIP(old) && !(isHeadless(svc) && isHeadless(old))
}
