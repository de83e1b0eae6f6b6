package cluster

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/service-conformance/conformance/framework/candidate/apiclient/fromclientset"
)

// before133 is a client of a cluster without ServiceCIDR objects whose server refuses as Kubernetes v1.31 does; own is the address of the Service "kubernetes".
func before133(t *testing.T, own string, ranges ...string) *fake.Clientset {
	t.Helper()
	client := fake.NewClientset(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}, Spec: corev1.ServiceSpec{ClusterIP: own}})
	client.PrependReactor("*", "servicecidrs", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewGenericServerResponse(http.StatusNotFound, "get", corev1.Resource("servicecidrs"), "", "the server could not find the requested resource", 0, true)
	})
	client.PrependReactor("create", "services", func(action clienttesting.Action) (bool, runtime.Object, error) {
		create := action.(clienttesting.CreateActionImpl)
		if !slices.Equal(create.CreateOptions.DryRun, []string{metav1.DryRunAll}) {
			t.Errorf("a request that could be carried out: %+v", create)
		}
		ip := netip.MustParseAddr(create.Object.(*corev1.Service).Spec.ClusterIP)
		for _, r := range ranges {
			if netip.MustParsePrefix(r).Addr().Is4() == ip.Is4() {
				return true, nil, apierrors.NewBadRequest(fmt.Sprintf(`Service "x" is invalid: spec.clusterIPs: Invalid value: []string{%q}: failed to allocate IP %s: the provided IP (%s) is not in the valid range. The range of valid IPs is %s`, ip, ip, ip, r))
			}
		}
		return true, nil, apierrors.NewBadRequest(fmt.Sprintf(`Service "x" is invalid: spec.clusterIPs[0]: Invalid value: []string{%q}: may not be used as the cluster is not configured for it`, ip))
	})
	return client
}

func TestRangesOfAClusterWithoutServiceCIDRObjects(t *testing.T) {
	for name, c := range map[string]struct {
		own          string
		ranges, want []string
	}{
		"IPv4":                   {"10.96.0.1", []string{"10.96.0.0/16"}, []string{"10.96.0.0/16"}},
		"IPv6":                   {"fd00::1", []string{"fd00::/112"}, []string{"fd00::/112"}},
		"dual stack":             {"10.96.0.1", []string{"10.96.0.0/16", "fd00::/112"}, []string{"10.96.0.0/16", "fd00::/112"}},
		"dual stack, IPv6 first": {"fd00::1", []string{"10.96.0.0/16", "fd00::/112"}, []string{"fd00::/112", "10.96.0.0/16"}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &Cluster{}
			err := cluster.discoverRanges(t.Context(), fromclientset.Of(before133(t, c.own, c.ranges...)))
			var got []string
			for _, p := range cluster.cidrs {
				got = append(got, p.String())
			}
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("ranges %v, error %v, want %v", got, err, c.want)
			}
			if len(cluster.description.Capabilities) > 0 {
				t.Errorf("capabilities %v", cluster.description.Capabilities)
			}
		})
	}
}

// TestRangesThatWereNamedAreSeenToBeThose demands that old clusters do not go by another range than they have.
func TestRangesThatWereNamedAreSeenToBeThose(t *testing.T) {
	four, six, other := netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd00::/112"), netip.MustParsePrefix("10.97.0.0/16")
	for _, c := range []struct {
		named []netip.Prefix
		fits  bool
	}{{[]netip.Prefix{four, six}, true}, {[]netip.Prefix{six, four}, false}, {[]netip.Prefix{four}, false}, {[]netip.Prefix{other, six}, false}} {
		cluster := &Cluster{cidrs: c.named}
		err := cluster.discoverRanges(t.Context(), fromclientset.Of(before133(t, "10.96.0.1", four.String(), six.String())))
		if (err == nil) != c.fits || !slices.Equal(cluster.cidrs, c.named) {
			t.Errorf("named %v: error %v, ranges %v", c.named, err, cluster.cidrs)
		}
	}
}

func TestRangesThatNobodyTells(t *testing.T) {
	if err := (&Cluster{}).discoverRanges(t.Context(), fromclientset.Of(before133(t, "10.96.0.1"))); !errors.Is(err, ErrNoServiceCIDR) {
		t.Errorf("got %v", err)
	}
	named := []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}
	c := &Cluster{cidrs: named}
	if err := c.discoverRanges(t.Context(), fromclientset.Of(before133(t, "10.96.0.1"))); err != nil || !slices.Equal(c.cidrs, named) {
		t.Errorf("ranges %v, error %v, want those that were named", c.cidrs, err)
	}
}

// A range that nobody tells is another thing than a server that says nothing.
func TestServersThatDoNotAnswerTellNoRanges(t *testing.T) {
	for _, asked := range []string{"create", "get"} {
		client := before133(t, "fd00::1", "10.96.0.0/16", "fd00::/112")
		client.PrependReactor(asked, "services", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewTimeoutError("gave it up", 0)
		})
		c := &Cluster{}
		if err := c.discoverRanges(t.Context(), fromclientset.Of(client)); !apierrors.IsTimeout(err) {
			t.Errorf("%s: ranges %v, error %v", asked, c.cidrs, err)
		}
	}
}

// TestFurtherRangesAreTold demands that ranges of other ServiceCIDR objects are known as far as addresses come from them.
func TestFurtherRangesAreTold(t *testing.T) {
	object := func(name, cidr string, ready metav1.ConditionStatus) *networkingv1.ServiceCIDR {
		return &networkingv1.ServiceCIDR{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{cidr}},
			Status: networkingv1.ServiceCIDRStatus{Conditions: []metav1.Condition{{Type: networkingv1.ServiceCIDRConditionReady, Status: ready}}},
		}
	}
	client := fake.NewClientset(object("kubernetes", "10.96.0.0/16", metav1.ConditionTrue), object("extension", "10.97.0.0/16", metav1.ConditionTrue), object("leaving", "10.98.0.0/16", metav1.ConditionFalse))
	c := &Cluster{}
	if err := c.discoverRanges(t.Context(), fromclientset.Of(client)); err != nil || len(c.cidrs) != 1 || c.cidrs[0].String() != "10.96.0.0/16" || !slices.Equal(c.description.FurtherServiceCIDRs, []string{"10.97.0.0/16"}) {
		t.Errorf("ranges %v, further ones %v, error %v", c.cidrs, c.description.FurtherServiceCIDRs, err)
	}
}

func TestNodePortsOfACluster(t *testing.T) {
	refusal := func(why string) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "x", field.ErrorList{field.Invalid(field.NewPath("spec", "ports").Index(0).Child("nodePort"), 65536, why)})
	}
	outside := "provided port is not in the valid range. The range of valid ports is "
	for name, c := range map[string]struct {
		refusal error
		want    string
	}{
		"default":             {refusal(outside + "30000-32767"), "30000-32767"},
		"another":             {refusal(outside + "20000-40000"), "20000-40000"},
		"a single port":       {refusal(outside + "40000-40000"), "40000-40000"},
		"in other words":      {refusal("no such port"), "30000-32767"},
		"no range":            {refusal(outside + "40000-30000"), "30000-32767"},
		"more than there are": {refusal(outside + "1-99999999999999999999"), "30000-32767"},
		"nothing is refused":  {nil, "30000-32767"},
		"it does not answer":  {apierrors.NewServiceUnavailable("not now"), ""},
		"it is not there":     {errors.New("connection refused"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			client.PrependReactor("create", "services", func(action clienttesting.Action) (bool, runtime.Object, error) {
				svc := action.(clienttesting.CreateAction).GetObject().(*corev1.Service)
				if svc.Spec.Ports[0].Port != 0 {
					t.Errorf("a Service that could be stored: %+v", svc.Spec)
				}
				return c.refusal != nil, nil, c.refusal
			})
			if got, err := refusedNodePorts(t.Context(), fromclientset.Of(client)); (err != nil) != (c.want == "") || err == nil && got.String() != c.want {
				t.Errorf("got %v, error %v, want %q", got, err, c.want)
			}
			if left, err := client.CoreV1().Services("").List(t.Context(), metav1.ListOptions{}); err != nil || len(left.Items) > 0 {
				t.Errorf("left %v, error %v", left, err)
			}
		})
	}
}
