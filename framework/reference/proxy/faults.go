package proxy

import (
	"slices"

	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/framework/reference/rule"
)

// New makes the rules with the deliberate bugs that are switched on. A book with faults is of one cluster: what a fault
// remembers, it remembers of that cluster.
func New(faults fault.Set) *Rules {
	return &Rules{fault.Apply(newBook(), wrongs, faults)}
}

// wrong is a fault and what it changes in the book of rules.
type wrong fault.Edit[book]

// wrongs are all faults of this package.
var wrongs = slices.Concat(
	serviceFaults, announceFaults, healthPortFaults, endpointFaults,
	decideFaults, nodePortFaults, policyFaults, selectFaults, hintFaults, affinityFaults, scheduleFaults, seenFaults, flowFaults,
	rememberedFaults, startFaults, syncFaults, healthCheckFaults, healthFaults,
)

// bug is a rule that a fault adds. It follows no requirement.
func bug[F any](do F) rule.Rule[F] { return rule.New("a bug", do) }
