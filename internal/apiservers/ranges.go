package apiservers

import (
	"fmt"
	"net/netip"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/spec"
)

// minHostBits is what kube-apiserver leaves of the primary range at least: eight addresses (ServiceIPRange in
// pkg/controlplane/apiserver/options).
const minHostBits = 3

// Version is that of a kube-apiserver.
type Version interface {
	fmt.Stringer
	// LargeRanges reports whether it takes Service CIDRs of more than 2^20 addresses.
	LargeRanges() bool
}

// Ranges are what an API server is started with. Equal ranges can share a server.
type Ranges struct {
	Primary, Secondary netip.Prefix // secondary is the zero value on single-stack
	NodePorts          spec.PortRange
}

// ServiceCIDRs lists the Service ranges, primary first.
func (r Ranges) ServiceCIDRs() spec.ServiceCIDRs {
	if !r.Secondary.IsValid() {
		return spec.ServiceCIDRs{r.Primary}
	}
	return spec.ServiceCIDRs{r.Primary, r.Secondary}
}

func (r Ranges) String() string { return r.ServiceCIDRs().String() }

// KubernetesService is the address of the "kubernetes" Service: the first one of the primary range after its base.
func (r Ranges) KubernetesService() netip.Addr { return r.Primary.Addr().Next() }

// ParseRanges says which ranges a request means. The error is a *candidate.UnavailableError where kube-apiserver
// of this version cannot be started with them.
func ParseRanges(q candidate.Request, v Version) (Ranges, error) {
	var r Ranges
	switch len(q.ServiceCIDRs) {
	case 0:
		r.Primary = spec.DefaultServiceCIDRs[0]
		if q.DualStack {
			r.Secondary = spec.DefaultServiceCIDRs[1]
		}
	case 1:
		r.Primary = q.ServiceCIDRs[0]
	case 2:
		r.Primary, r.Secondary = q.ServiceCIDRs[0], q.ServiceCIDRs[1]
		if r.Primary.Addr().Is4() == r.Secondary.Addr().Is4() {
			return Ranges{}, candidate.NotBound("kube-apiserver takes two Service CIDRs only if they are of different families, not %s and %s", r.Primary, r.Secondary)
		}
	default:
		return Ranges{}, candidate.NotBound("kube-apiserver takes at most two Service CIDRs, not %d", len(q.ServiceCIDRs))
	}
	r.Primary = r.Primary.Masked()
	if r.Secondary.IsValid() {
		r.Secondary = r.Secondary.Masked()
	}
	for i, p := range r.ServiceCIDRs() {
		if err := checkServiceCIDR(p, i == 0, v); err != nil {
			return Ranges{}, err
		}
	}
	var err error
	r.NodePorts, err = spec.ParsePortRange(q.NodePorts)
	return r, err
}

// checkServiceCIDR reports what kube-apiserver would refuse or could not allocate from.
func checkServiceCIDR(p netip.Prefix, primary bool, v Version) error {
	if !p.IsValid() {
		return fmt.Errorf("an invalid Service CIDR was asked for")
	}
	hostBits := p.Addr().BitLen() - p.Bits()
	switch {
	case primary && hostBits < minHostBits: // the size of the second range is not checked
		return candidate.NotBound("kube-apiserver takes no primary Service CIDR of fewer than %d addresses such as %s", 1<<minHostBits, p)
	case p.Addr().Is6() && p.Bits() < 64:
		return candidate.NotBound("kube-apiserver allocates from no IPv6 Service CIDR with a prefix shorter than 64 bits such as %s", p)
	case hostBits > 20 && !v.LargeRanges():
		return candidate.NotBound("kube-apiserver %s takes no Service CIDR of more than 2^20 addresses such as %s", v, p)
	}
	return nil
}

// List has the ranges as text.
func (r Ranges) List() (out []string) {
	for _, p := range r.ServiceCIDRs() {
		out = append(out, p.String())
	}
	return out
}
