package cluster

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	"github.com/service-conformance/conformance/framework/candidate"
)

// Plan says, for people, what a run will do in the cluster, before anything is created. traffic tells whether a selected check sends any.
func (c *Cluster) Plan(traffic bool) string {
	var text strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&text, "  %-15s %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&text, "cluster at %s\n", c.access.URL)
	further := ""
	if len(c.description.FurtherServiceCIDRs) > 0 {
		further = "; addresses come from " + strings.Join(c.description.FurtherServiceCIDRs, ", ") + " as well: checks that name the range do not apply"
	}
	line("Service ranges", "%s%s", families(c.cidrs), further)
	switch err := c.withoutDataPlane(); {
	case !traffic:
		line("traffic", "none: no selected check sends any")
	case err != nil:
		line("traffic", "none: %v", err)
	default:
		line("traffic", "pods on %d nodes, and in the host network of nodes that checks send from; kube-proxy: %s", len(c.nodes), cmp.Or(c.description.ProxyMode, c.notKubeProxy()))
	}
	line("namespaces", "conformance-…, with the label %s; nothing is created outside of them", candidate.RunLabel)
	if c.options.AllowDisruptive {
		line("disruptive", "yes: checks have the cluster make load balancers")
	} else {
		line("disruptive", "no: no load balancer is made (--allow-disruptive)")
	}
	line("if killed", "`conformance cleanup` removes what is left")
	return text.String()
}

// notKubeProxy says why the proxy is judged by what all proxies have in common.
func (c *Cluster) notKubeProxy() string {
	if c.otherProxy == "" {
		return "not visible; the proxy is judged by what all have in common"
	}
	return "configured, but " + c.otherProxy + "; the proxy is judged by what all have in common"
}

// families names ranges and, of two, the family that is primary.
func families(ranges []netip.Prefix) string {
	name := func(r netip.Prefix) string {
		if r.Addr().Is4() {
			return "IPv4"
		}
		return "IPv6"
	}
	if len(ranges) == 2 {
		return fmt.Sprintf("%s and %s: dual stack, %s first", ranges[0], ranges[1], name(ranges[0]))
	}
	return fmt.Sprintf("%s: single stack, %s", ranges[0], name(ranges[0]))
}
