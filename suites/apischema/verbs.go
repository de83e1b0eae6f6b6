package apischema

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

var _ = ginkgo.Describe("a verb", func() {
	notFound := check.BeRefusedWith(http.StatusNotFound, metav1.StatusReasonNotFound)

	check.It(spec.APIPUTCreates, "update creates a Service that there is not",
		func(ctx context.Context, cp *check.ControlPlane) {
			a := cp.Update(ctx, check.Service("new"))
			Expect(a).To(check.BeAccepted())
			Expect(a.Code).To(Equal(http.StatusCreated))
			stored := cp.Get(ctx, "new").Service
			Expect(stored).NotTo(BeNil())
			Expect(stored.Spec.ClusterIP).NotTo(BeEmpty(), "as after a create")
			Expect(stored.UID).NotTo(BeEmpty())
		})

	check.It(spec.APIStatusNotCreated, "update or apply of the status creates nothing",
		func(ctx context.Context, cp *check.ControlPlane) {
			Expect(cp.UpdateStatus(ctx, check.Service("missing"))).To(notFound)
			objectAbsent(ctx, cp, "missing")
			applied := `{"apiVersion":"v1","kind":"Service","metadata":{"name":"applied"},"spec":{"ports":[{"port":80}]},"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}}`
			Expect(cp.Do(ctx, http.MethodPatch, cp.Path("applied")+"/status", string(types.ApplyYAMLPatchType), []byte(applied), check.Query("fieldManager", "m"))).To(notFound, "apply")
			objectAbsent(ctx, cp, "applied")
		})

	check.It(spec.APINotFound, "get, patch and delete need a Service",
		func(ctx context.Context, cp *check.ControlPlane) {
			Expect(cp.Get(ctx, "missing")).To(notFound)
			Expect(cp.MergePatch(ctx, "missing", `{"metadata":{"labels":{"a":"b"}}}`)).To(notFound)
			Expect(cp.Delete(ctx, "missing")).To(notFound)
			Expect(cp.PatchStatus(ctx, "missing", `{"metadata":{"labels":{"a":"b"}}}`)).To(notFound, "patch of the status")
			Expect(cp.List(ctx)).To(BeEmpty())
		})

	check.It(spec.APIDeleteRemoves, "delete removes a Service",
		func(ctx context.Context, cp *check.ControlPlane) {
			first := cp.Arrange(ctx, check.Service("deleted"))
			cp.Arrange(ctx, check.Service("other"))
			Expect(cp.Delete(ctx, "deleted")).To(check.BeAccepted())
			objectAbsentAfter(ctx, cp, "deleted", "it was deleted")
			Expect(cp.Delete(ctx, "deleted")).To(notFound, "a second time")
			Expect(cp.Get(ctx, "other")).To(check.BeAccepted())
			again := cp.Arrange(ctx, check.Service("deleted"))
			Expect(again.UID).NotTo(Equal(first.UID))
		})

	check.It(spec.APIDeleteCollection, "deletecollection removes the Services that match",
		func(ctx context.Context, cp *check.ControlPlane) {
			for _, name := range []string{"red-1", "red-2"} {
				cp.Arrange(ctx, check.Service(name, metadataLabelled("team", "red")))
			}
			cp.Arrange(ctx, check.Service("blue", metadataLabelled("team", "blue")))
			elsewhere := cp.NewNamespace(ctx)
			cp.Arrange(ctx, check.Service("red", check.InNamespace(elsewhere), metadataLabelled("team", "red")))
			Expect(cp.Do(ctx, http.MethodDelete, objectCollection(cp), "", nil, check.Query("labelSelector", "team=red"))).To(check.BeAccepted())
			Expect(cp.List(ctx)).To(HaveExactElements(HaveField("Name", "blue")))
			Expect(cp.Do(ctx, http.MethodGet, "/api/v1/namespaces/"+elsewhere+"/services/red", "", nil)).To(check.BeAccepted(), "in another namespace")
			Expect(cp.Do(ctx, http.MethodDelete, objectCollection(cp), "", nil)).To(check.BeAccepted())
			Expect(cp.List(ctx)).To(BeEmpty())
		})

	check.It(spec.APIDeleteCollection, "deletecollection releases addresses",
		func(ctx context.Context, cp *check.ControlPlane) {
			ip := cp.Arrange(ctx, check.Service("holder")).Spec.ClusterIP
			Expect(cp.Do(ctx, http.MethodDelete, objectCollection(cp), "", nil)).To(check.BeAccepted())
			a := cp.Create(ctx, check.Service("heir", check.WithClusterIP(ip)))
			if !a.Accepted() {
				verbsTakenByOthers(ctx, cp, ip)
			}
			Expect(a).To(check.BeAccepted(), "with the address %s of the deleted Service", ip)
		})

	check.It(spec.APIMethodNotAllowed, "is refused on a path that does not serve it",
		func(ctx context.Context, cp *check.ControlPlane) {
			cp.Arrange(ctx, check.Service("there"))
			body := objectBody("", "there")
			for _, c := range []struct{ method, path string }{
				{http.MethodPost, cp.Path("there")},
				{http.MethodPut, objectCollection(cp)},
				{http.MethodPatch, objectCollection(cp)},
				{http.MethodPost, cp.Path("there") + "/status"},
			} {
				contentType := "application/json"
				if c.method == http.MethodPatch {
					contentType = "application/merge-patch+json"
				}
				a := cp.Do(ctx, c.method, c.path, contentType, body)
				Expect(a).To(check.BeRefusedWith(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed), "%s %s", c.method, c.path)
			}
		})

	check.It(spec.APIMalformedBody, "refuses what is no Service",
		func(ctx context.Context, cp *check.ControlPlane) {
			for _, body := range []string{
				`{`, `[]`, `"text"`,
				`{"apiVersion":"v1","kind":"Service","metadata":{"name":"malformed"},"spec":{"ports":"80"}}`,
				`{"apiVersion":"v1","kind":"Service","metadata":{"name":"malformed"},"spec":{"ports":[{"port":"80"}]}}`,
				`{"apiVersion":"v1","kind":"Service","metadata":{"name":1},"spec":{"ports":[{"port":80}]}}`,
			} {
				Expect(objectPost(ctx, cp, []byte(body))).To(check.BeRefusedWith(http.StatusBadRequest, metav1.StatusReasonBadRequest), "%s", body)
			}
			Expect(cp.List(ctx)).To(BeEmpty())
		})
})

// verbsTakenByOthers aborts the check if a Service of somebody else has got the address in the meantime.
func verbsTakenByOthers(ctx context.Context, cp *check.ControlPlane, ip string) {
	ginkgo.GinkgoHelper()
	all, err := cp.Client().CoreV1().Services("").List(ctx, metav1.ListOptions{FieldSelector: "spec.clusterIP=" + ip})
	check.Must(err)
	if len(all.Items) > 0 {
		check.Abort("the address %s was given to %s/%s in the meantime", ip, all.Items[0].Namespace, all.Items[0].Name)
	}
}

// verbsProxyTimeout bounds how long the proxy of the API server may take to learn of a new Service.
const verbsProxyTimeout = 10 * time.Second

var _ = ginkgo.Describe("the proxy subresource", func() {
	unavailable := func(ctx context.Context, cp *check.ControlPlane, name string) {
		ginkgo.GinkgoHelper()
		var a check.Response
		check.Converge(ctx, "the proxy knows the Service", verbsProxyTimeout, func(g Gomega) {
			a = cp.Do(ctx, http.MethodGet, cp.Path(name)+"/proxy/", "", nil)
			g.Expect(a.Code).NotTo(Equal(http.StatusNotFound), "%s", a)
		})
		Expect(a.Code).To(Equal(http.StatusServiceUnavailable), "%s", a)
		Expect(a.Status).To(HaveField("Reason", metav1.StatusReasonServiceUnavailable))
	}

	check.It(spec.APIProxyNoEndpoints, "has nothing to offer without endpoints",
		func(ctx context.Context, cp *check.ControlPlane) {
			cp.Arrange(ctx, check.Service("empty", check.With(func(s *corev1.Service) { s.Spec.Selector = nil })))
			// Made by hand, for nothing else may: before 1.37 a Service without this object is not found.
			endpoints := cp.Client().CoreV1().Endpoints(cp.Namespace())
			_, err := endpoints.Create(ctx, &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "empty"}}, metav1.CreateOptions{})
			check.Must(err)
			ginkgo.DeferCleanup(func(ctx context.Context) { check.Must(endpoints.Delete(ctx, "empty", metav1.DeleteOptions{})) })
			unavailable(ctx, cp, "empty")
		})

	check.It(spec.APIProxyUnknownPort, "has nothing to offer at a port that there is not",
		func(ctx context.Context, cp *check.ControlPlane) {
			cp.Arrange(ctx, check.Service("empty", check.With(func(s *corev1.Service) { s.Spec.Selector = nil })))
			unavailable(ctx, cp, "empty:81")
		})
})

// verbsDiscover returns what discovery says of Services and their subresources, by name.
func verbsDiscover(ctx context.Context, cp *check.ControlPlane) map[string]metav1.APIResource {
	ginkgo.GinkgoHelper()
	a := cp.Do(ctx, http.MethodGet, "/api/v1", "", nil)
	Expect(a).To(check.BeAccepted())
	var list metav1.APIResourceList
	Expect(json.Unmarshal(a.Body, &list)).To(Succeed())
	found := map[string]metav1.APIResource{}
	for _, r := range list.APIResources {
		found[r.Name] = r
	}
	return found
}

var _ = ginkgo.Describe("discovery", func() {
	check.It(spec.APIDiscoveryVerbs, "lists the verbs of services",
		func(ctx context.Context, cp *check.ControlPlane) {
			Expect(verbsDiscover(ctx, cp)).To(HaveKeyWithValue("services",
				HaveField("Verbs", ContainElements("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"))))
		})

	check.It(spec.APIDiscoveryNames, "gives the names of services",
		func(ctx context.Context, cp *check.ControlPlane) {
			Expect(verbsDiscover(ctx, cp)).To(HaveKeyWithValue("services", And(
				HaveField("Kind", "Service"), HaveField("SingularName", "service"), HaveField("Namespaced", true),
				HaveField("ShortNames", ContainElement("svc")), HaveField("Categories", ContainElement("all")))))
		})

	check.It(spec.APIDiscoverySubresources, "lists the subresources and their verbs",
		func(ctx context.Context, cp *check.ControlPlane) {
			Expect(verbsDiscover(ctx, cp)).To(And(
				HaveKeyWithValue("services/status", And(HaveField("Kind", "Service"), HaveField("Verbs", ContainElements("get", "patch", "update")))),
				HaveKeyWithValue("services/proxy", HaveField("Verbs", ContainElements("create", "delete", "get", "patch", "update")))))
		})
})
