package reference

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/proxy"
	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// carriage is a shot with content on its way between a client and a backend.
type carriage struct {
	protocol corev1.Protocol
	payload  int
	// reversed says that the last of its packets comes first.
	reversed bool
	// served says that a Service redirects it; away, that its backend is on another node than the one that it entered.
	served, away bool
	// outward says that a client outside sent it to a load-balancer address.
	outward bool
	// toNarrow and fromNarrow say that the backend or the client is behind a narrow link.
	toNarrow, fromNarrow bool
}

// What a Service redirects arrives as what is sent straight to a pod does (document "Virtual IPs": clients need not know).
var payloadCarried = rule.New("payload-carried", func(*carriage) bool { return true },
	spec.ProxyLargeDatagrams, spec.ProxyLargeStreams, spec.ProxyNarrowLinks)

// Endpoints need be neither pods nor nodes (document "Service": Services without selectors).
var outsideReached = rule.New("outside-backends-reached", func(*sender) bool { return true }, spec.ProxyOutsideBackends)

// carried is the outcome of a shot on a flow: that of its answer, or silence where its content is lost.
func (d *dataPlane) carried(f *flow, p *candidate.Probe) candidate.Outcome {
	if p.Payload > 0 {
		c := carriage{
			protocol: p.Protocol, payload: p.Payload, reversed: p.Reversed, served: f.decision.Answer == proxy.Forward, away: f.backend.host != f.node, outward: f.decision.Kind == proxy.LoadBalancer && p.From.Gateway != "", toNarrow: f.backend.Narrow,
			fromNarrow: p.From.Gateway != "" && p.From.Address == candidate.NarrowAddress,
		}
		if sender := d.pods[p.From.Pod]; sender != nil {
			c.fromNarrow = sender.Narrow
		}
		if !d.world.book.payloadCarried.Do(&c) {
			return candidate.Outcome{Result: candidate.Dropped}
		}
	}
	return d.answered(f, p)
}
