package cluster

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/candidate/apiclient/fromclientset"
	"github.com/service-conformance/conformance/framework/spec"
)

func serviceOf(namespace, name, address string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: "7", UID: "u"}, Spec: corev1.ServiceSpec{ClusterIP: address, ClusterIPs: []string{address}}}
}

// disposable is a cluster that nobody else uses, with the Service "kubernetes", that of the DNS and others.
func disposable(t *testing.T, others ...runtime.Object) *Cluster {
	t.Helper()
	client := fake.NewClientset(append(others, serviceOf("default", "kubernetes", "10.96.0.1"), serviceOf("kube-system", "kube-dns", "10.96.0.10"))...)
	return &Cluster{client: fromclientset.Of(client), options: Options{Disposable: true}, cidrs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/24")}, nodePorts: spec.DefaultNodePorts}
}

func dnsOf(t *testing.T, c *Cluster) string {
	t.Helper()
	svc, err := c.client.CoreV1().Services("kube-system").Get(t.Context(), "kube-dns", metav1.GetOptions{})
	if err != nil {
		return ""
	}
	return svc.Spec.ClusterIP
}

func TestTheDNSIsSetAsideWhileACheckHasTheRange(t *testing.T) {
	c := disposable(t)
	lease, err := c.ControlPlane(t.Context(), candidate.Request{Exclusive: true, ServiceCIDRs: c.cidrs})
	if err != nil {
		t.Fatal(err)
	}
	if dnsOf(t, c) != "" {
		t.Error("the Service of the DNS is still there")
	}
	lease.Release()
	if got := dnsOf(t, c); got != "10.96.0.10" {
		t.Errorf("the DNS came back with address %q", got)
	}
	if kept, err := c.client.CoreV1().ConfigMaps("kube-system").List(t.Context(), metav1.ListOptions{}); err != nil || len(kept.Items) > 0 {
		t.Errorf("what was set aside is kept: %v, %v", kept.Items, err)
	}
}

// A run that was killed while a check had the range leaves the Service aside. The next one puts it back.
func TestTheDNSOfAKilledRunIsPutBack(t *testing.T) {
	c := disposable(t)
	if err := c.setAside(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.putBack(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := dnsOf(t, c); got != "10.96.0.10" {
		t.Errorf("the DNS came back with address %q", got)
	}
}

func TestARangeInWhichOthersHaveAddressesIsForNoCheckAlone(t *testing.T) {
	c := disposable(t, serviceOf("shop", "web", "10.96.0.77"))
	_, err := c.ControlPlane(t.Context(), candidate.Request{Exclusive: true, ServiceCIDRs: c.cidrs})
	if !candidate.IsUnavailable(err) || !strings.Contains(err.Error(), "shop/web") {
		t.Errorf("error %v", err)
	}
	if dnsOf(t, c) == "" {
		t.Error("the DNS was not put back")
	}
	shared, err := c.ControlPlane(t.Context(), candidate.Request{}) // nothing is held
	if err != nil {
		t.Fatal(err)
	}
	shared.Release()
}

func TestWhatAClusterCannotOfferIsNotJudgedAndSaysWhatWould(t *testing.T) {
	inUse := disposable(t)
	inUse.options.Disposable = false
	for name, c := range map[string]struct {
		request candidate.Request
		by      string
	}{
		"the whole range":         {candidate.Request{Exclusive: true}, "--disposable"},
		"another range":           {candidate.Request{ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/20")}}, "10.96.0.0/20"},
		"both families":           {candidate.Request{DualStack: true}, "both families"},
		"another node-port range": {candidate.Request{NodePorts: "30000-30063", Exclusive: true}, "--tier lab or kind"},
		"a server that may end":   {candidate.Request{OwnServer: true, Exclusive: true}, "--tier lab or kind"},
	} {
		_, err := inUse.ControlPlane(t.Context(), c.request)
		if u := candidate.AsUnavailable(err); u == nil || u.NotBound || !strings.Contains(u.JudgedBy, c.by) {
			t.Errorf("%s: %+v", name, u)
		}
	}
}

// servers notes what it is asked for.
type servers struct{ asked []candidate.Request }

func (*servers) Capabilities() []spec.Capability { return []spec.Capability{spec.ChosenServiceCIDR} }
func (*servers) Close(context.Context) error     { return nil }
func (s *servers) ControlPlane(_ context.Context, q candidate.Request) (candidate.ControlPlane, error) {
	s.asked = append(s.asked, q)
	return nil, errors.New("noted")
}

func TestServersHaveWhatTheClusterHasNot(t *testing.T) {
	c, beside := disposable(t), &servers{}
	c.options.Servers = beside
	own := c.cidrs
	for name, test := range map[string]struct {
		request candidate.Request
		beside  bool
	}{
		"any control plane":          {candidate.Request{}, false},
		"its own range":              {candidate.Request{ServiceCIDRs: own}, false},
		"its own range alone":        {candidate.Request{ServiceCIDRs: own, Exclusive: true}, false},
		"its own node ports alone":   {candidate.Request{ServiceCIDRs: own, NodePorts: spec.DefaultNodePorts.String(), Exclusive: true}, false},
		"another node-port range":    {candidate.Request{ServiceCIDRs: own, NodePorts: "30000-30063", Exclusive: true}, true},
		"another range":              {candidate.Request{ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/29")}, Exclusive: true}, true},
		"both families":              {candidate.Request{DualStack: true}, true},
		"its own range and a server": {candidate.Request{ServiceCIDRs: own, OwnServer: true, Exclusive: true}, true},
	} {
		beside.asked = nil
		lease, err := c.ControlPlane(t.Context(), test.request)
		if (len(beside.asked) == 1) != test.beside {
			t.Errorf("%s: asked beside %v, %v", name, beside.asked, err)
		}
		if err == nil {
			lease.Release()
		}
	}
}

func TestWhoWaitsForTheClusterAloneComesBeforeLaterOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns turn
		first, err := turns.share(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		go func() {
			back, _ := turns.own(t.Context())
			order = append(order, "alone")
			back()
		}()
		synctest.Wait()
		go func() {
			back, _ := turns.share(t.Context())
			order = append(order, "shared")
			back()
		}()
		synctest.Wait()
		if len(order) > 0 {
			t.Errorf("%v went on beside the first one", order)
		}
		first()
		first() // more than once is fine
		synctest.Wait()
		if strings.Join(order, ",") != "alone,shared" {
			t.Errorf("order %v", order)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		back, _ := turns.share(t.Context())
		if _, err := turns.own(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		back()
		again, err := turns.share(t.Context()) // who gave up waits no more
		if err != nil {
			t.Fatal(err)
		}
		again()
	})
}

func TestWhatKubeProxyDeclaresFollowsFromItsConfiguration(t *testing.T) {
	no := false
	var local, elsewhere, chosen, primary, everywhere candidate.KubeProxyConfiguration
	local.IPTables.LocalhostNodePorts = &no
	elsewhere.HealthzBindAddress = "127.0.0.1:1234"
	chosen.NodePortAddresses = []string{"10.0.0.0/8"}
	primary.NodePortAddresses = []string{"primary"}
	everywhere.NodePortAddresses = []string{"0.0.0.0/0", "::/0"}
	for name, c := range map[string]struct {
		configuration candidate.KubeProxyConfiguration
		mode          string
		declared      spec.Declarable
		want          string
	}{
		"the timeout of affinity":       {candidate.KubeProxyConfiguration{}, candidate.IPTables, spec.AffinityTimeout, "settable"},
		"loopback by default":           {candidate.KubeProxyConfiguration{}, candidate.IPTables, spec.NodePortLoopback, "served"},
		"loopback in nftables mode":     {candidate.KubeProxyConfiguration{}, candidate.NFTables, spec.NodePortLoopback, "not-served"},
		"loopback switched off":         {local, candidate.IPTables, spec.NodePortLoopback, "not-served"},
		"loopback beside chosen ones":   {chosen, candidate.IPTables, spec.NodePortLoopback, "not-served"},
		"loopback beside the primary":   {primary, candidate.IPTables, spec.NodePortLoopback, "not-served"},
		"loopback among all addresses":  {everywhere, candidate.IPTables, spec.NodePortLoopback, "served"},
		"loopback and nftables mode":    {chosen, candidate.NFTables, spec.NodePortLoopback, ""},
		"health on its port":            {candidate.KubeProxyConfiguration{HealthzBindAddress: "0.0.0.0:10256"}, candidate.IPTables, spec.ProxyHealth, "port-10256"},
		"health of nobody knows where":  {elsewhere, candidate.IPTables, spec.ProxyHealth, ""},
		"local policy without endpoint": {candidate.KubeProxyConfiguration{}, candidate.IPVS, spec.InternalLocalWithoutEndpoints, "reject"},
	} {
		if got := c.configuration.Declarations(c.mode)[c.declared]; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
