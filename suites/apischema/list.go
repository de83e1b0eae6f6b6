package apischema

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// listPart reads one part of a list.
func listPart(ctx context.Context, cp *check.ControlPlane, path string, options ...check.RequestOption) corev1.ServiceList {
	ginkgo.GinkgoHelper()
	a := cp.Do(ctx, http.MethodGet, path, "", nil, options...)
	Expect(a).To(check.BeAccepted())
	var list corev1.ServiceList
	Expect(json.Unmarshal(a.Body, &list)).To(Succeed())
	return list
}

// listNames are the names of Services.
func listNames(items []corev1.Service) []string {
	names := []string{}
	for i := range items {
		names = append(names, items[i].Name)
	}
	return names
}

var _ = ginkgo.Describe("a list", func() {
	labels := func(selector string) check.RequestOption { return check.Query("labelSelector", selector) }
	fields := func(selector string) check.RequestOption { return check.Query("fieldSelector", selector) }

	check.It(spec.APIListNamespace, "holds the Services of its namespace",
		func(ctx context.Context, cp *check.ControlPlane) {
			elsewhere := cp.NewNamespace(ctx)
			cp.Arrange(ctx, check.Service("here"))
			cp.Arrange(ctx, check.Service("there", check.InNamespace(elsewhere)))
			list := listPart(ctx, cp, objectCollection(cp))
			Expect(list.Kind).To(Equal("ServiceList"))
			Expect(list.ResourceVersion).NotTo(BeEmpty())
			Expect(listNames(list.Items)).To(Equal([]string{"here"}))
			Expect(listNames(listPart(ctx, cp, "/api/v1/namespaces/"+elsewhere+"/services").Items)).To(Equal([]string{"there"}))
		})

	check.It(spec.APIListNamespace, "holds the Services of all namespaces",
		func(ctx context.Context, cp *check.ControlPlane) {
			elsewhere := cp.NewNamespace(ctx)
			cp.Arrange(ctx, check.Service("here"))
			cp.Arrange(ctx, check.Service("there", check.InNamespace(elsewhere)))
			of := slices.DeleteFunc(listPart(ctx, cp, "/api/v1/services").Items, func(s corev1.Service) bool { return s.Namespace != cp.Namespace() && s.Namespace != elsewhere })
			Expect(listNames(of)).To(ConsistOf("here", "there"))
		})

	check.It(spec.APIListLabels, "holds the Services that match its label selector",
		func(ctx context.Context, cp *check.ControlPlane) {
			cp.Arrange(ctx, check.Service("red", metadataLabelled("team", "red")))
			cp.Arrange(ctx, check.Service("blue", metadataLabelled("team", "blue")))
			cp.Arrange(ctx, check.Service("none"))
			for selector, want := range map[string][]string{
				"team=red": {"red"}, "team!=red": {"blue", "none"}, "team in (red,blue)": {"blue", "red"}, "team notin (red)": {"blue", "none"},
				"team": {"blue", "red"}, "!team": {"none"}, "team=green": {},
			} {
				Expect(listNames(cp.List(ctx, labels(selector)))).To(Equal(want), "selector %q", selector)
			}
		})

	check.It(spec.APIListFields, "holds the Services that match its field selector",
		func(ctx context.Context, cp *check.ControlPlane) {
			plain := cp.Arrange(ctx, check.Service("plain"))
			cp.Arrange(ctx, check.Service("headless", check.Headless()))
			cp.Arrange(ctx, check.Service("alias", check.ExternalName("example.com")))
			selections := map[string][]string{
				"metadata.name=plain":                  {"plain"},
				"metadata.name!=plain":                 {"alias", "headless"},
				"metadata.namespace=" + cp.Namespace(): {"alias", "headless", "plain"},
				"metadata.namespace=elsewhere":         {},
			}
			if cp.OfVersion(">=1.31") {
				maps.Copy(selections, map[string][]string{
					"spec.type=ExternalName":                      {"alias"},
					"spec.type!=ExternalName":                     {"headless", "plain"},
					"spec.clusterIP=None":                         {"headless"},
					"spec.clusterIP=" + plain.Spec.ClusterIP:      {"plain"},
					"spec.type=ClusterIP,spec.clusterIP!=None":    {"plain"},
					"spec.type=ClusterIP,metadata.name=unheardof": {},
				})
			}
			for selector, want := range selections {
				Expect(listNames(cp.List(ctx, fields(selector)))).To(Equal(want), "selector %q", selector)
			}
		})

	check.It(spec.APIListFieldsUnsupported, "refuses a selector on another field",
		func(ctx context.Context, cp *check.ControlPlane) {
			for _, selector := range []string{"spec.sessionAffinity=None", "metadata.uid=1", "unheardOf=1"} {
				a := cp.Do(ctx, http.MethodGet, objectCollection(cp), "", nil, fields(selector))
				Expect(a).To(check.BeRefusedWith(http.StatusBadRequest, metav1.StatusReasonBadRequest), "selector %q", selector)
			}
		})

	check.It(spec.APIListChunks, "comes in parts that hold each Service once",
		func(ctx context.Context, cp *check.ControlPlane) {
			want := []string{}
			for i := range 5 {
				want = append(want, fmt.Sprintf("svc-%d", i))
				cp.Arrange(ctx, check.Service(want[i]))
			}
			first := listPart(ctx, cp, objectCollection(cp), check.Query("limit", "2"))
			if first.Continue == "" && len(first.Items) == len(want) {
				check.Record("limit", "not supported: the list holds everything")
				Expect(listNames(first.Items)).To(Equal(want))
				return
			}
			Expect(listNames(first.Items)).To(HaveLen(2))
			Expect(first.Continue).NotTo(BeEmpty())
			// A Service that comes and one that goes between two parts concern neither.
			cp.Arrange(ctx, check.Service("svc-3a"))
			Expect(cp.Delete(ctx, "svc-4")).To(check.BeAccepted())
			got, next := listNames(first.Items), first.Continue
			for range want {
				if next == "" {
					break
				}
				part := listPart(ctx, cp, objectCollection(cp), check.Query("limit", "2"), check.Query("continue", next))
				Expect(len(part.Items)).To(BeNumerically("<=", 2))
				Expect(part.ResourceVersion).To(Equal(first.ResourceVersion), "all parts are of one state")
				got, next = append(got, listNames(part.Items)...), part.Continue
			}
			Expect(next).To(BeEmpty())
			Expect(got).To(Equal(want))
		})

	check.It(spec.APIListContinueInvalid, "refuses a continue token that no list gave",
		func(ctx context.Context, cp *check.ControlPlane) {
			for _, token := range []string{"nonsense", "e30"} {
				a := cp.Do(ctx, http.MethodGet, objectCollection(cp), "", nil, check.Query("limit", "1"), check.Query("continue", token))
				Expect(a).To(check.BeRefusedWith(http.StatusBadRequest, metav1.StatusReasonBadRequest), "token %q", token)
			}
		})
})
