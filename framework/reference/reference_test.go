package reference

import (
	"context"
	"net/http"
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/spec"
)

func newReference(t *testing.T, o Options) *Reference {
	t.Helper()
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return r
}

func clientOf(t *testing.T, cp candidate.ControlPlane) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(&rest.Config{Host: cp.Access().URL, BearerToken: cp.Access().Token, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ranges(texts ...string) (prefixes []netip.Prefix) {
	for _, text := range texts {
		prefixes = append(prefixes, netip.MustParsePrefix(text))
	}
	return prefixes
}

func TestDescriptionFollowsTheVersion(t *testing.T) {
	g := NewWithT(t)
	d := newReference(t, Options{}).Describe()
	g.Expect(d.Implementation).To(Equal("reference"))
	g.Expect(d.Version).To(Equal("v1.37.1"))
	g.Expect(d.Has(spec.ServiceCIDRAPI)).To(BeTrue())
	g.Expect(d.Has(spec.RestartControlPlane)).To(BeTrue())
	g.Expect(d.Has(spec.DataPlane)).To(BeTrue())
	old := newReference(t, Options{Version: "v1.31.0"}).Describe()
	g.Expect(old.Has(spec.ServiceCIDRAPI)).To(BeFalse())
	_, err := New(Options{Version: "latest"})
	g.Expect(err).To(HaveOccurred())
}

func TestEveryServiceCIDRIsOffered(t *testing.T) {
	r := newReference(t, Options{})
	for _, cidrs := range [][]netip.Prefix{
		ranges("10.96.0.0/30"), ranges("10.96.0.0/29"), ranges("10.96.0.0/24"), ranges("10.96.0.0/12"), ranges("fd00::/124"), ranges("fd00::/64"),
		ranges("10.96.0.0/16", "fd00::/108"), ranges("fd00::/108", "10.96.0.0/16"),
	} {
		cp, err := r.ControlPlane(t.Context(), candidate.Request{ServiceCIDRs: cidrs, NodePorts: "20000-20100"})
		if err != nil {
			t.Errorf("%v: %v", cidrs, err)
			continue
		}
		svc, err := clientOf(t, cp).CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
		if err != nil {
			t.Errorf("%v: %v", cidrs, err)
			continue
		}
		if want := cidrs[0].Addr().Next().String(); svc.Spec.ClusterIP != want {
			t.Errorf("%v: kubernetes has %s, want %s", cidrs, svc.Spec.ClusterIP, want)
		}
		if first, last := cp.NodePorts(); first != 20000 || last != 20100 {
			t.Errorf("node ports %d-%d", first, last)
		}
	}
}

func TestWhatCannotBeOfferedIsUnavailable(t *testing.T) {
	r := newReference(t, Options{})
	for name, request := range map[string]candidate.Request{
		"too small":        {ServiceCIDRs: ranges("10.96.0.0/32")},
		"too large":        {ServiceCIDRs: ranges("fd00::/48")},
		"one family twice": {ServiceCIDRs: ranges("10.96.0.0/24", "10.97.0.0/24")},
	} {
		if _, err := r.ControlPlane(t.Context(), request); !candidate.IsUnavailable(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, ports := range []string{"1", "a-b", "0-10", "10-5", "1-70000"} {
		if _, err := r.ControlPlane(t.Context(), candidate.Request{NodePorts: ports}); err == nil || candidate.IsUnavailable(err) {
			t.Errorf("node ports %s: %v", ports, err)
		}
	}
}

func TestSharedAndExclusiveLeases(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	r := newReference(t, Options{})
	lease := func(request candidate.Request) candidate.ControlPlane {
		cp, err := r.ControlPlane(ctx, request)
		g.Expect(err).NotTo(HaveOccurred())
		return cp
	}
	one, two, dual := lease(candidate.Request{}), lease(candidate.Request{}), lease(candidate.Request{DualStack: true})
	g.Expect(one.Access()).To(Equal(two.Access()))
	g.Expect(dual.Access().URL).NotTo(Equal(one.Access().URL))
	g.Expect(dual.ServiceCIDRs()).To(HaveLen(2))
	one.Release()
	_, err := clientOf(t, two).CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred(), "another lease still uses it")

	alone := lease(candidate.Request{Exclusive: true})
	g.Expect(alone.Access().URL).NotTo(Equal(one.Access().URL))
	g.Expect(lease(candidate.Request{Exclusive: true}).Access().URL).NotTo(Equal(alone.Access().URL))
	alone.Release()
	alone.Release()
	_, err = http.Get(alone.Access().URL + "/readyz")
	g.Expect(err).To(HaveOccurred(), "its server ends with an exclusive lease")

	g.Expect(r.Close(ctx)).To(Succeed())
	_, err = r.ControlPlane(ctx, candidate.Request{})
	g.Expect(err).To(HaveOccurred())
}

func TestRestartKeepsServices(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	cp, err := newReference(t, Options{}).ControlPlane(ctx, candidate.Request{Exclusive: true, ServiceCIDRs: ranges("10.96.0.0/24")})
	g.Expect(err).NotTo(HaveOccurred())
	defer cp.Release()
	services := clientOf(t, cp).CoreV1().Services("default")
	svc, err := services.Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cp.(candidate.ServerOwner).Restart(ctx)).To(Succeed())
	after, err := services.Get(ctx, "a", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(after).To(Equal(svc))
}
