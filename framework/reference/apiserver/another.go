package apiserver

import (
	"fmt"
	"maps"
	"slices"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/reference/service"
	"github.com/service-conformance/conformance/framework/spec"
)

// Feature gates of Kubernetes that a second server may be started with.
const (
	// strictIPGate decides whether sloppy forms of addresses are refused (KEP-4858).
	strictIPGate = "StrictIPCIDRValidation"
	// ipAddressGate decides whether allocated addresses are kept in IPAddress objects or in a bitmap (KEP-1880). The reference keeps one record for both.
	ipAddressGate = "MultiCIDRServiceAllocator"
)

// Another makes a server on the storage of this one, with the feature gates that are named set as given. It does not listen yet. The error names a gate that the
// reference does not have.
func (s *Server) Another(gates map[string]bool) (*Server, error) {
	options := s.options
	options.Address = "127.0.0.1:0"
	a := &Server{options: options, store: s.store, snapshots: s.snapshots, minor: s.minor, endpointRules: s.endpointRules}
	a.cluster, a.serviceBook, a.otherBook = s.cluster, s.serviceBook, s.otherBook
	for _, gate := range slices.Sorted(maps.Keys(gates)) {
		switch gate {
		case strictIPGate:
			a.loose = !gates[gate]
		case ipAddressGate:
		default:
			return nil, fmt.Errorf("the reference has no feature gate %s", gate)
		}
	}
	var err error
	if options.TLS {
		if a.tls, err = newServerTLS(options.Address); err != nil {
			return nil, err
		}
	}
	s.shared.Store(true)
	a.shared.Store(true)
	rules, err := s.cluster.recordShared.Do(s, a, gates)
	if err != nil {
		return nil, err
	}
	a.rules.Store(rules)
	return a, nil
}

// All API servers of a cluster know what is in use, whatever they keep it in, and none frees what a Service has.
var recordShared = rule.New("record-shared", func(s, another *Server, _ map[string]bool) (*service.Rules, error) {
	config := another.rulesConfig()
	config.Beside = s.rules.Load()
	return service.New(config)
}, spec.AllocRecordShared, spec.AllocNodePortRecordShared, spec.AllocRecordMigrates, spec.AllocRepairKeepsUsed)
