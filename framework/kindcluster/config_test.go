package kindcluster

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"
)

func ranges(list string) []netip.Prefix {
	var all []netip.Prefix
	for s := range strings.SplitSeq(list, ",") {
		all = append(all, netip.MustParsePrefix(s))
	}
	return all
}

func TestConfigFollowsTheServiceRanges(t *testing.T) {
	for services, want := range map[string]struct {
		family v1alpha4.ClusterIPFamily
		pods   string
	}{
		"10.96.0.0/24":                  {v1alpha4.IPv4Family, "10.244.0.0/16"},
		"fd00:10:96::/112":              {v1alpha4.IPv6Family, "fd00:10:244::/56"},
		"10.96.0.0/16,fd00:10:96::/112": {v1alpha4.DualStackFamily, "10.244.0.0/16,fd00:10:244::/56"},
		"fd00:10:96::/112,10.96.0.0/16": {v1alpha4.DualStackFamily, "fd00:10:244::/56,10.244.0.0/16"},
	} {
		t.Run(services, func(t *testing.T) {
			c := parsed(t, Options{Name: "n", ServiceCIDRs: ranges(services)})
			if c.Networking.IPFamily != want.family || c.Networking.PodSubnet != want.pods || c.Networking.ServiceSubnet != services {
				t.Errorf("got %+v", c.Networking)
			}
		})
	}
}

func TestConfigOfNodes(t *testing.T) {
	c := parsed(t, Options{Name: "n", NodeImage: "example.org/node:v1", ServiceCIDRs: ranges("10.96.0.0/24"), PodCIDRs: ranges("10.10.0.0/16"), ProxyMode: "nftables", Workers: 3})
	var got []string
	for _, n := range c.Nodes {
		got = append(got, string(n.Role)+" "+n.Labels["topology.kubernetes.io/zone"]+" "+n.Image)
	}
	want := []string{
		"control-plane zone-a example.org/node:v1", "worker zone-a example.org/node:v1", "worker zone-b example.org/node:v1", "worker zone-a example.org/node:v1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("nodes %q, want %q", got, want)
	}
	if c.Name != "n" || c.Networking.KubeProxyMode != v1alpha4.NFTablesProxyMode || c.Networking.PodSubnet != "10.10.0.0/16" {
		t.Errorf("got %+v", c)
	}
}

// parsed is the configuration read again, with every field known to kind.
func parsed(t *testing.T, o Options) v1alpha4.Cluster {
	t.Helper()
	data, err := o.config()
	if err != nil {
		t.Fatal(err)
	}
	var c v1alpha4.Cluster
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	return c
}

func TestValidateFindsWhatNoClusterCanHave(t *testing.T) {
	for name, c := range map[string]struct {
		o    Options
		want string
	}{
		"no range":           {Options{}, "needs a Service range"},
		"too small":          {Options{ServiceCIDRs: ranges("10.96.0.0/29")}, "too small"},
		"too small, IPv6":    {Options{ServiceCIDRs: ranges("10.96.0.0/28,fd00::/125")}, "too small"},
		"the range of pods":  {Options{ServiceCIDRs: ranges("10.244.8.0/24")}, "overlaps that of the pods"},
		"negative":           {Options{ServiceCIDRs: ranges("10.96.0.0/24"), Workers: -1}, "--workers -1"},
		"more than there is": {Options{ServiceCIDRs: ranges("10.96.0.0/24"), Workers: 256}, "--workers 256"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.o.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
	for _, s := range []string{"10.96.0.0/28", "10.0.0.0/12", "fd00:10:96::/124", "fd00:10:96::/112,10.96.0.0/16"} {
		if err := (&Options{ServiceCIDRs: ranges(s), Workers: 2}).Validate(); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
}
