package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/spec"
)

// What decides a check that a run could not decide (Result.JudgedBy).
const (
	BySlow           = "--slow"
	ByLab            = "--tier lab"
	ByDisruptive     = "--allow-disruptive"
	ByImplementation = "a declaration in the file of --implementation"
	ByOutside        = "--outside"
	ByAnotherRange   = "another --service-cidr"
	ByFreeRange      = "a range with more that is free"
	ByZones          = "three nodes in two zones"
)

// byCapability is what decides a check that needs the capability. Those that are not here tell what an implementation is, such as kube-proxy in a mode: without one of
// them, a check does not bind the candidate.
var byCapability = map[spec.Capability]string{
	spec.ChosenServiceCIDR:     "--tier lab, or a cluster of that range",
	spec.ExhaustibleRange:      "--tier lab or kind, or --disposable for a test cluster",
	spec.DualStack:             "a cluster of both families, such as --service-cidr 10.96.0.0/16,fd00:10:96::/112",
	spec.SingleStack:           "a cluster of one family, such as --service-cidr 10.96.0.0/16",
	spec.ManageServiceCIDRs:    "--tier lab or kind, or --disposable for a test cluster",
	spec.ServiceCIDRController: "--tier lab or kind",
	spec.RestartControlPlane:   "--tier lab or kind",
	spec.SeveralAPIServers:     "--tier lab or kind",
	spec.EndpointControllers:   "a cluster with its controllers",
	spec.RestartControllers:    "--tier lab or kind",
	spec.DataPlane:             "a cluster with nodes, and --agent-image",
	spec.OwnNodes:              "--tier lab or kind",
	spec.ProxyConfiguration:    "--tier lab or kind",
	spec.ProxyStops:            "--tier kind",
	spec.ProxyMetrics:          "a proxy whose metrics can be read",
	spec.NarrowLinks:           "--tier lab or kind",
	spec.PodObjects:            ByLab,
	spec.OutsideBackends:       ByOutside,
	spec.VirtualClock:          "a candidate whose clock can be moved",
	spec.SCTP:                  "nodes whose kernel has SCTP",
	spec.LoadBalancer:          ByOutside,
	spec.ClusterDNS:            "a cluster with DNS",
	spec.Kubelet:               "--tier kind or cluster",
}

// SlowAsked reports whether the run asks for slow checks, so that this one may take minutes.
func SlowAsked() bool { return setup.Slow }

// DoesNotBind ends the check as not applicable: the requirement does not bind the candidate.
func DoesNotBind(format string, args ...any) {
	ginkgo.GinkgoHelper()
	ginkgo.Skip(fmt.Sprintf(format, args...))
}

// LeaveUnjudged ends the check as not judged: the requirement binds the candidate, and this run cannot decide it. by names what would, or is empty.
func LeaveUnjudged(by, format string, args ...any) {
	ginkgo.GinkgoHelper()
	if current != nil {
		current.unjudged, current.result.JudgedBy = true, by
	}
	ginkgo.Skip(fmt.Sprintf(format, args...))
}

// cannot ends the check for an error that says that the candidate cannot offer something (candidate.IsUnavailable).
func cannot(err error) {
	ginkgo.GinkgoHelper()
	u := candidate.AsUnavailable(err)
	if u.NotBound {
		DoesNotBind("%s", u.Reason)
	}
	LeaveUnjudged(u.JudgedBy, "%s", u.Reason)
}

// needed ends the check if the candidate lacks a capability that it needs.
func needed(what *candidate.Description, d *Declaration) {
	ginkgo.GinkgoHelper()
	missing := slices.DeleteFunc(slices.Clone(d.needs), what.Has)
	unbound := func(n spec.Capability) bool {
		_, binds := byCapability[n]
		// What is about a proxy as kube-proxy is does not bind another one, and nobody writes objects that the API server does not know.
		return !binds || n == spec.ProxyMetrics && !what.Has(spec.KubeProxy) || n == spec.ManageServiceCIDRs && !what.Has(spec.ServiceCIDRAPI)
	}
	// What does not bind the candidate is no matter of the tier. But without nodes nobody knows what their proxies are.
	if i := slices.IndexFunc(missing, unbound); i >= 0 && !slices.Contains(missing, spec.DataPlane) {
		DoesNotBind("%s does not offer the capability %s", what.Implementation, missing[i])
	}
	for _, n := range missing {
		if unbound(n) {
			DoesNotBind("%s does not offer the capability %s", what.Implementation, n)
		}
		LeaveUnjudged(byCapability[n], "%s does not offer the capability %s", what.Implementation, n)
	}
	if len(d.ServiceCIDRs) > 0 && len(setup.ServiceCIDRs) == 0 && !what.Has(spec.ChosenServiceCIDR) {
		LeaveUnjudged("--service-cidr "+strings.Join(d.ServiceCIDRs, " or "), "%s does not offer the capability %s", what.Implementation, spec.ChosenServiceCIDR)
	}
}
