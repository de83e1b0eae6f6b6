package report

import (
	"slices"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// usedKinds are the optional features that the failed cases of a check use and that none of its requirements is about.
// There is one list for each kind of case.
func (d *reds) usedKinds(r *check.Result) (kinds [][]string) {
	used := [][]string{r.Uses}
	if r.Failure != nil && len(r.Failure.Uses) > 0 {
		used = r.Failure.Uses
	}
	for _, kind := range used {
		kinds = append(kinds, slices.DeleteFunc(slices.Clone(kind), func(feature string) bool { return d.about(r, feature) }))
	}
	return kinds
}

// about reports whether one of the requirements of the check belongs to the feature.
func (d *reds) about(r *check.Result, feature string) bool {
	return slices.ContainsFunc(r.Requirements, func(id spec.ID) bool {
		known := d.c.Get(id)
		return known != nil && known.Feature == feature
	})
}

// noteFeature notes what the check violates, by the feature of the requirement.
func (d *reds) noteFeature(x *CheckVerdict) {
	for _, id := range x.Requirements {
		if r := d.c.Get(id); r != nil && x.Result.VerdictOn(id) == check.NonConformant {
			d.ofFeature[r.Feature] = append(d.ofFeature[r.Feature], violation{place{id, x.ServiceCIDR}, x})
		}
	}
}

// violation is a requirement that a check found not to be met.
type violation struct {
	place
	by *CheckVerdict
}

// stands reports whether a violation has a reason of its own. Nothing that it builds on blocks it, and some failed case
// uses no other feature with such a violation. Only such a one can explain failures of others that use its feature, so
// that two features never explain each other.
func (d *reds) stands(v violation) bool {
	return d.unblocked(v) && slices.ContainsFunc(d.usedKinds(&v.by.Result), func(kind []string) bool {
		return !slices.ContainsFunc(kind, func(feature string) bool { return slices.ContainsFunc(d.ofFeature[feature], d.unblocked) })
	})
}

// unblocked reports whether nothing that the requirement builds on explains the violation.
func (d *reds) unblocked(v violation) bool { return len(d.roots(v.place)) == 0 }

// featureRoots are the requirements by which the check may have failed on p because of an optional feature that it
// uses. They are those of the feature that are not met for a reason of their own. There are none unless every kind of
// failed case uses such a feature.
func (d *reds) featureRoots(x *CheckVerdict, p place) (roots []spec.ID) {
	weight := d.weight(p.id)
	for _, kind := range d.usedKinds(&x.Result) {
		explained := false
		for _, feature := range kind {
			for _, v := range d.ofFeature[feature] {
				if d.weight(v.id) >= weight && d.at(place{v.id, p.cidr}) && d.stands(v) {
					roots, explained = append(roots, v.id), true
				}
			}
		}
		if !explained {
			return nil
		}
	}
	slices.Sort(roots)
	return slices.Compact(roots)
}
