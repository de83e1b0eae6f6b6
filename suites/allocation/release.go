package allocation

import (
	"context"
	"net/http"
	"time"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

const (
	// named bounds how long it may take until an address or a node port that was freed can be named. reuse bounds how
	// long it may take until dynamic allocation hands it out. kube-apiserver looks for free addresses in a copy of what
	// is stored.
	named = 2 * time.Second
	reuse = 5 * time.Second
)

var _ = ginkgo.Describe("release", func() {
	check.It(spec.AllocDeleteReleases, "lets an address be named again when its Service is deleted", check.Aside(spec.AllocFreedStaysFree),
		func(ctx context.Context, cp *check.ControlPlane) {
			for _, svc := range []*corev1.Service{createOnChosen(ctx, cp, primaryRange(cp)), cp.Arrange(ctx, check.Service("dynamic"))} {
				object := cp.AddressObject(ctx, svc.Spec.ClusterIP)
				Expect(cp.Delete(ctx, svc.Name)).To(check.BeAccepted())
				becomesFree(ctx, cp, svc.Spec.ClusterIP, object)
			}
		})

	check.It(spec.AllocDeleteReleases, "hands addresses out again when their Services are deleted", check.Exclusive(), check.OnServiceCIDR(small),
		func(ctx context.Context, cp *check.ControlPlane) {
			for _, svc := range exhaust(ctx, cp) {
				Expect(cp.Delete(ctx, svc.Name)).To(check.BeAccepted())
			}
			check.Converge(ctx, "reuse of five addresses", reuse, func(g Gomega) {
				for len(cp.List(ctx)) < 5 {
					g.Expect(cp.Create(ctx, check.Service(cp.Name("again")))).To(check.BeAccepted())
				}
			})
		})

	check.It(spec.AllocDeleteCollectionReleases, "frees the addresses of a collection that is deleted", check.Aside(spec.AllocFreedStaysFree),
		func(ctx context.Context, cp *check.ControlPlane) {
			var ips []string
			var objects []types.UID
			for i := range 3 {
				ips = append(ips, createOnChosen(ctx, cp, primaryRange(cp)).Spec.ClusterIP)
				objects = append(objects, cp.AddressObject(ctx, ips[i]))
			}
			Expect(cp.Do(ctx, "DELETE", cp.Path(""), "", nil)).To(check.BeAccepted())
			for i, ip := range ips {
				becomesFree(ctx, cp, ip, objects[i])
			}
		})

	check.It(spec.AllocExternalNameReleases, "frees the address of a Service that becomes an alias", check.Aside(spec.AllocFreedStaysFree),
		func(ctx context.Context, cp *check.ControlPlane) {
			svc := createOnChosen(ctx, cp, primaryRange(cp))
			object := cp.AddressObject(ctx, svc.Spec.ClusterIP)
			a := cp.MergePatch(ctx, svc.Name, `{"spec":{"type":"ExternalName","externalName":"example.org"}}`)
			Expect(a).To(check.BeAccepted())
			Expect(a.Service.Spec.ClusterIP).To(BeEmpty())
			becomesFree(ctx, cp, svc.Spec.ClusterIP, object)
		})

	check.It(spec.AllocUpdateToClusterIP, "never gives the new address of a Service that has just been an alias to another one",
		func(ctx context.Context, cp *check.ControlPlane) {
			belongsToOne(ctx, cp, cp.PrimaryFamily(), func() string {
				name := cp.Name("alias")
				cp.Arrange(ctx, check.Service(name, check.ExternalName("example.org")))
				a := cp.MergePatch(ctx, name, `{"spec":{"type":"ClusterIP","externalName":null,"ports":[{"port":80}]}}`)
				Expect(a).To(check.BeAccepted())
				Expect(clusterIP(a)).To(check.BeInRange(primaryRange(cp)))
				return a.Service.Spec.ClusterIP
			})
		})

	check.It(spec.AllocUpdateToClusterIP, "gives a Service that was an alias the address that it names, unless that is taken",
		func(ctx context.Context, cp *check.ControlPlane) {
			taken := cp.Arrange(ctx, check.Service("taken")).Spec.ClusterIP
			cp.Arrange(ctx, check.Service("alias", check.ExternalName("example.org")))
			patch := func(ip string) check.Response {
				return cp.MergePatch(ctx, "alias", `{"spec":{"type":"ClusterIP","clusterIP":"`+ip+`","externalName":null,"ports":[{"port":80}]}}`)
			}
			Expect(patch(taken)).To(check.BeRefused())
			free, a := onFreeAddress(ctx, cp, patch)
			Expect(a).To(check.BeAccepted())
			Expect(a.Service.Spec.ClusterIP).To(Equal(free))
		})

	check.It(spec.AllocFinalizerKeeps, "keeps the address and the node port of a Service until it is gone", check.Aside(spec.AllocFreedStaysFree),
		func(ctx context.Context, cp *check.ControlPlane) {
			svc := heldDeleted(ctx, cp)
			port := svc.Spec.Ports[0].NodePort
			kept := cp.Get(ctx, svc.Name)
			Expect(kept).To(check.BeAccepted())
			Expect(kept.Service.Spec.ClusterIP).To(Equal(svc.Spec.ClusterIP))
			Expect(kept.Service.Spec.Ports[0].NodePort).To(Equal(port))
			refuseTaken(ctx, cp, svc.Spec.ClusterIP)
			Expect(cp.Create(ctx, check.Service("port", onNodePort(int(port))))).NotTo(check.BeAccepted(), "node port %d is in use", port)

			object := cp.AddressObject(ctx, svc.Spec.ClusterIP)
			Expect(cp.MergePatch(ctx, svc.Name, `{"metadata":{"finalizers":null}}`)).To(check.BeAccepted())
			Expect(cp.Get(ctx, svc.Name).Code).To(Equal(404), "the code of reading the Service without finalizers")
			becomesFree(ctx, cp, svc.Spec.ClusterIP, object)
		})

	check.It(spec.AllocFinalizerKeeps, "gives back the address and the node port when a write of the status takes the last finalizer away", check.Aside(spec.AllocFreedStaysFree),
		func(ctx context.Context, cp *check.ControlPlane) {
			svc := heldDeleted(ctx, cp)
			port := svc.Spec.Ports[0].NodePort
			object := cp.AddressObject(ctx, svc.Spec.ClusterIP)
			Expect(cp.PatchStatus(ctx, svc.Name, `{"metadata":{"finalizers":null}}`)).To(check.BeAccepted())
			if cp.Get(ctx, svc.Name).Code != http.StatusNotFound { // no document says that such a write may do that
				Expect(cp.MergePatch(ctx, svc.Name, `{"metadata":{"finalizers":null}}`)).To(check.BeAccepted())
			}
			Expect(cp.Get(ctx, svc.Name).Code).To(Equal(http.StatusNotFound), "the code of reading the Service without finalizers")
			becomesFree(ctx, cp, svc.Spec.ClusterIP, object)
			Expect(cp.Create(ctx, check.Service("port", onNodePort(int(port))))).To(check.BeAccepted(), "node port %d was given back", port)
		})
})

// heldDeleted is a Service with an address and a node port that was deleted and that its finalizer holds.
func heldDeleted(ctx context.Context, cp *check.ControlPlane) *corev1.Service {
	ginkgo.GinkgoHelper()
	svc := createOnChosen(ctx, cp, primaryRange(cp), check.OfType(corev1.ServiceTypeNodePort), check.With(func(s *corev1.Service) {
		s.Finalizers = []string{"conformance.example.org/hold"}
	}))
	Expect(cp.Delete(ctx, svc.Name)).To(check.BeAccepted())
	return svc
}

// becomesFree demands that an address can be named again. object is that which stood for it while it was in use, if there was one.
func becomesFree(ctx context.Context, cp *check.ControlPlane, ip string, object types.UID, options ...check.ServiceOption) {
	ginkgo.GinkgoHelper()
	again := false
	check.Converge(ctx, "reuse of "+ip, named, func(g Gomega) {
		a := cp.Create(ctx, check.Service(cp.Name("again"), append(options, check.WithClusterIP(ip))...))
		if again = !a.Accepted() && cp.TakenAgain(ctx, ip, object); again {
			return
		}
		g.Expect(a).To(check.BeAccepted(), "%s was given back", ip)
	})
	if again {
		cp.StaysFree(ctx, ip)
	}
}
