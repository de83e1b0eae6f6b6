package lab

import (
	"fmt"
	"net/netip"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/spec"
)

// minHostBits is what kube-apiserver leaves of the primary range at least: eight addresses (ServiceIPRange in
// pkg/controlplane/apiserver/options).
const minHostBits = 3

// ranges are what an API server is started with. Equal ranges can share a server.
type ranges struct {
	primary, secondary netip.Prefix // secondary is the zero value on single-stack
	nodePorts          spec.PortRange
}

// serviceCIDRs lists the Service ranges, primary first.
func (r ranges) serviceCIDRs() spec.ServiceCIDRs {
	if !r.secondary.IsValid() {
		return spec.ServiceCIDRs{r.primary}
	}
	return spec.ServiceCIDRs{r.primary, r.secondary}
}

func (r ranges) String() string { return r.serviceCIDRs().String() }

// kubernetesService is the address of the "kubernetes" Service: the first one of the primary range after its base.
func (r ranges) kubernetesService() netip.Addr { return r.primary.Addr().Next() }

// parseRanges says which ranges a request means. The error is a *candidate.UnavailableError where kube-apiserver
// of this version cannot be started with them.
func parseRanges(q candidate.Request, v version) (ranges, error) {
	var r ranges
	switch len(q.ServiceCIDRs) {
	case 0:
		r.primary = spec.DefaultServiceCIDRs[0]
		if q.DualStack {
			r.secondary = spec.DefaultServiceCIDRs[1]
		}
	case 1:
		r.primary = q.ServiceCIDRs[0]
	case 2:
		r.primary, r.secondary = q.ServiceCIDRs[0], q.ServiceCIDRs[1]
		if r.primary.Addr().Is4() == r.secondary.Addr().Is4() {
			return ranges{}, candidate.Unavailable("kube-apiserver takes two Service CIDRs only if they are of different families, not %s and %s", r.primary, r.secondary)
		}
	default:
		return ranges{}, candidate.Unavailable("kube-apiserver takes at most two Service CIDRs, not %d", len(q.ServiceCIDRs))
	}
	r.primary = r.primary.Masked()
	if r.secondary.IsValid() {
		r.secondary = r.secondary.Masked()
	}
	for i, p := range r.serviceCIDRs() {
		if err := checkServiceCIDR(p, i == 0, v); err != nil {
			return ranges{}, err
		}
	}
	var err error
	r.nodePorts, err = spec.ParsePortRange(q.NodePorts)
	return r, err
}

// checkServiceCIDR reports what kube-apiserver would refuse or could not allocate from.
func checkServiceCIDR(p netip.Prefix, primary bool, v version) error {
	if !p.IsValid() {
		return fmt.Errorf("an invalid Service CIDR was asked for")
	}
	hostBits := p.Addr().BitLen() - p.Bits()
	switch {
	case primary && hostBits < minHostBits: // the size of the second range is not checked
		return candidate.Unavailable("kube-apiserver takes no primary Service CIDR of fewer than %d addresses such as %s", 1<<minHostBits, p)
	case p.Addr().Is6() && p.Bits() < 64:
		return candidate.Unavailable("kube-apiserver allocates from no IPv6 Service CIDR with a prefix shorter than 64 bits such as %s", p)
	case hostBits > 20 && !v.largeRanges():
		return candidate.Unavailable("kube-apiserver %s takes no Service CIDR of more than 2^20 addresses such as %s", v, p)
	}
	return nil
}

// list has the ranges as text.
func (r ranges) list() (out []string) {
	for _, p := range r.serviceCIDRs() {
		out = append(out, p.String())
	}
	return out
}
