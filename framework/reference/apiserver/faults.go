package apiserver

import (
	"slices"

	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// Faults are the deliberate bugs that are switched on.
type Faults = fault.Set

// What can be wrong with requests on Services, and with a control plane. Everything else is sound.
type (
	requestWrong fault.Edit[requestBook]
	clusterWrong fault.Edit[clusterBook]
)

var (
	requestWrongs = slices.Concat(answerFaults, bodyFaults, parameterFaults, createFaults, changeFaults, dryRunFaults, patchFaults, applyFaults,
		deleteFaults, listFaults, watchFaults)
	clusterWrongs = slices.Concat(startFaults, cidrFaults, ipAddressFaults, schemaFaults)
)

func (s *Server) loadBooks() {
	s.serviceBook, s.otherBook = fault.Apply(newRequestBook(), requestWrongs, s.options.Faults), newRequestBook()
	s.cluster = fault.Apply(newClusterBook(), clusterWrongs, s.options.Faults)
}

// faultsOfRules are those that the rules of Services are started with. Without the feature, a server behaves as if no load balancer
// needed a health check node port.
func (s *Server) faultsOfRules() Faults {
	if !s.lacks(spec.FeatureHealthCheckNodePort) {
		return s.options.Faults
	}
	return s.options.Faults.With(fault.HealthCheckNever)
}

// bug is a rule that a fault adds. It follows no requirement.
func bug[F any](do F) rule.Rule[F] { return rule.New("a bug", do) }

// removeKeys removes the entries of all maps in a document that the function chooses.
func removeKeys(document any, chosen func(key string, value any) bool) {
	switch d := document.(type) {
	case map[string]any:
		for k, v := range d {
			if chosen(k, v) {
				delete(d, k)
				continue
			}
			removeKeys(v, chosen)
		}
	case []any:
		for _, v := range d {
			removeKeys(v, chosen)
		}
	}
}
