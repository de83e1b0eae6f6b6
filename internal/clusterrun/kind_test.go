package clusterrun

import (
	"net/netip"
	"reflect"
	"testing"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/kindcluster"
)

// TestFurtherClustersDecideWhatNoneBeforeThemCould has clusters with and without nodes for traffic, of one family and of two.
func TestFurtherClustersDecideWhatNoneBeforeThemCould(t *testing.T) {
	four, six := netip.MustParsePrefix("10.96.0.0/24"), netip.MustParsePrefix("fd00:10:96::/112")
	cluster := func(workers int, ranges ...netip.Prefix) kindcluster.Options {
		return kindcluster.Options{Workers: workers, ServiceCIDRs: ranges}
	}
	for name, c := range map[string]struct {
		clusters []kindcluster.Options
		want     [][]check.Sharing
	}{
		"the matrix": {
			[]kindcluster.Options{cluster(0, four), cluster(0, four), cluster(2, four, six), cluster(2, six, four)},
			[][]check.Sharing{nil, {check.OwnRange}, {check.OwnRange, check.BothFamilies, check.WithNodes}, {check.OwnRange}},
		},
		"nodes at first": {
			[]kindcluster.Options{cluster(2, four), cluster(2, four), cluster(2, four, six)},
			[][]check.Sharing{nil, {check.OwnRange}, {check.OwnRange, check.BothFamilies}},
		},
		"both families at first": {
			[]kindcluster.Options{cluster(2, four, six), cluster(2, four)},
			[][]check.Sharing{nil, {check.OwnRange}},
		},
		"both families without nodes": {
			[]kindcluster.Options{cluster(0, four, six), cluster(2, four, six)},
			[][]check.Sharing{nil, {check.OwnRange, check.BothFamilies, check.WithNodes}},
		},
	} {
		for i := range c.clusters {
			if got := Shares(c.clusters, i); !reflect.DeepEqual(got, c.want[i]) {
				t.Errorf("%s, cluster %d: %v, want %v", name, i, got, c.want[i])
			}
		}
	}
}

// TestTheFirstClusterIsNeededForWhatNoFurtherOneDecides has one without nodes before one of both families.
func TestTheFirstClusterIsNeededForWhatNoFurtherOneDecides(t *testing.T) {
	four, six := netip.MustParsePrefix("10.96.0.0/24"), netip.MustParsePrefix("fd00:10:96::/112")
	first := kindcluster.Options{ServiceCIDRs: []netip.Prefix{four}}
	both := kindcluster.Options{Workers: 2, ServiceCIDRs: []netip.Prefix{four, six}}
	for name, c := range map[string]struct {
		clusters []kindcluster.Options
		want     []check.Sharing
	}{
		"alone":           {[]kindcluster.Options{first}, []check.Sharing{check.AnyCluster, check.OtherServer, check.OwnRange, check.BothFamilies, check.WithNodes}},
		"before another":  {[]kindcluster.Options{first, both}, []check.Sharing{check.AnyCluster, check.OtherServer, check.OwnRange}},
		"with all itself": {[]kindcluster.Options{both, first}, []check.Sharing{check.AnyCluster, check.OtherServer, check.OwnRange, check.BothFamilies, check.WithNodes}},
	} {
		if got := Alone(c.clusters); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
