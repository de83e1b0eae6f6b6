package apischema

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// metadataFinalizer is a finalizer that no controller knows.
const metadataFinalizer = "conformance.example.com/hold"

// metadataLabelled is an option that sets one label.
func metadataLabelled(key, value string) check.ServiceOption {
	return check.With(func(s *corev1.Service) { metav1.SetMetaDataLabel(&s.ObjectMeta, key, value) })
}

var _ = ginkgo.Describe("the metadata", func() {
	check.It(spec.APIMetadataPreserved, "comes back as it was set",
		func(ctx context.Context, cp *check.ControlPlane) {
			owner := cp.Arrange(ctx, check.Service("owner"))
			svc := check.Service("metadata", check.With(func(s *corev1.Service) {
				s.Labels = map[string]string{"plain": "value", "example.com/prefixed": "Value-1_2.3", "empty": ""}
				s.Annotations = map[string]string{"example.com/note": "free text: ünïcode, \"quotes\"\nand lines"}
				s.Finalizers = []string{metadataFinalizer}
				s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: owner.Name, UID: owner.UID}}
			}))
			Expect(cp.Create(ctx, svc)).To(check.BeAccepted())
			stored := cp.Get(ctx, "metadata").Service
			Expect(stored).NotTo(BeNil())
			Expect(stored.Labels).To(Equal(svc.Labels))
			Expect(stored.Annotations).To(Equal(svc.Annotations))
			Expect(stored.Finalizers).To(Equal(svc.Finalizers))
			Expect(stored.OwnerReferences).To(Equal(svc.OwnerReferences))
			Expect(cp.MergePatch(ctx, "metadata", `{"metadata":{"finalizers":null}}`)).To(check.BeAccepted())
		})

	check.It(spec.APISystemMetadata, "has a uid, a creation time and a resourceVersion of the server",
		func(ctx context.Context, cp *check.ControlPlane) {
			long := metav1.Date(2001, 2, 3, 4, 5, 6, 0, metav1.Now().UTC().Location())
			sent := func(name string) *corev1.Service {
				return check.Service(name, check.With(func(s *corev1.Service) { s.UID, s.CreationTimestamp = "chosen-by-client", long }))
			}
			first, second := cp.Arrange(ctx, sent("first")), cp.Arrange(ctx, sent("second"))
			for _, svc := range []*corev1.Service{first, second} {
				Expect(svc.UID).NotTo(Or(BeEmpty(), Equal(types.UID("chosen-by-client"))))
				Expect(svc.CreationTimestamp.Time).NotTo(Or(BeZero(), BeTemporally("==", long.Time)))
				Expect(svc.ResourceVersion).NotTo(BeEmpty())
			}
			Expect(second.UID).NotTo(Equal(first.UID))
		})

	check.It(spec.APIUidImmutable, "keeps its uid",
		func(ctx context.Context, cp *check.ControlPlane) {
			svc := cp.Arrange(ctx, check.Service("uid"))
			uid := svc.UID
			svc.UID, svc.ResourceVersion = "11111111-2222-3333-4444-555555555555", ""
			Expect(cp.Update(ctx, svc)).To(check.BeRefused())
			Expect(cp.MergePatch(ctx, "uid", `{"metadata":{"uid":"11111111-2222-3333-4444-555555555555"}}`)).To(check.BeRefused())
			Expect(cp.Get(ctx, "uid").Service).To(HaveField("UID", uid))
		})

	check.It(spec.APIGenerateName, "gets different names from the same generateName",
		func(ctx context.Context, cp *check.ControlPlane) {
			seen := map[string]bool{}
			for range 3 {
				svc := cp.Arrange(ctx, check.Service("", check.With(func(s *corev1.Service) { s.GenerateName, s.Spec.Selector = "made-", nil })))
				Expect(svc.Name).To(HavePrefix("made-"))
				Expect(len(svc.Name)).To(BeNumerically(">", len("made-")), "name %q", svc.Name)
				Expect(seen).NotTo(HaveKey(svc.Name))
				Expect(cp.Get(ctx, svc.Name)).To(check.BeAccepted())
				seen[svc.Name] = true
			}
		})

	check.It(spec.APIGenerateName, "gets a name of at most 63 characters from a long generateName",
		func(ctx context.Context, cp *check.ControlPlane) {
			long := strings.Repeat("m", 62) + "-"
			svc := cp.Arrange(ctx, check.Service("", check.With(func(s *corev1.Service) { s.GenerateName, s.Spec.Selector = long, nil })))
			Expect(svc.Name).To(HavePrefix(strings.Repeat("m", 50)))
			Expect(len(svc.Name)).To(BeNumerically("<=", 63), "name %q", svc.Name)
		})

	check.It(spec.APINameRequired, "needs a name or generateName",
		func(ctx context.Context, cp *check.ControlPlane) {
			Expect(cp.Create(ctx, check.Service("", check.ExternalName("example.com")))).To(check.BeInvalid("metadata.name"))
			Expect(cp.List(ctx)).To(BeEmpty())
		})

	// On a small range, for an implementation that takes the address first may try all of them.
	check.It(spec.APINameRequired, "needs a name or generateName where an address is allocated", check.OnServiceCIDR("10.96.0.0/28"), check.Exclusive(),
		func(ctx context.Context, cp *check.ControlPlane) {
			a := cp.Create(ctx, check.Service("", check.With(func(s *corev1.Service) { s.Spec.Selector = nil })))
			Expect(a).To(check.BeInvalid()) // the field is that of the address where the allocation fails first
			Expect(cp.List(ctx)).To(BeEmpty())
		})

	check.It(spec.APINameUnique, "has a name that is unique in its namespace",
		func(ctx context.Context, cp *check.ControlPlane) {
			first := cp.Arrange(ctx, check.Service("unique"))
			Expect(cp.Create(ctx, check.Service("unique"))).To(check.BeRefusedWith(http.StatusConflict, metav1.StatusReasonAlreadyExists))
			Expect(cp.Get(ctx, "unique").Service).To(HaveField("UID", first.UID))
			Expect(cp.Create(ctx, check.Service("unique", check.InNamespace(cp.NewNamespace(ctx))))).To(check.BeAccepted(), "in another namespace")
		})

	check.It(spec.APINameMatchesUrl, "has the name of the URL",
		func(ctx context.Context, cp *check.ControlPlane) {
			cp.Arrange(ctx, check.Service("url"))
			body := objectBody(`"apiVersion":"v1","kind":"Service",`, "other")
			Expect(cp.Do(ctx, http.MethodPut, cp.Path("url"), "application/json", body)).To(check.BeRefusedWith(http.StatusBadRequest, metav1.StatusReasonBadRequest))
			Expect(cp.MergePatch(ctx, "url", `{"metadata":{"name":"other"}}`)).To(check.BeRefused())
			objectAbsent(ctx, cp, "other")
			Expect(cp.Get(ctx, "url")).To(check.BeAccepted())
		})

	check.It(spec.APINameMatchesUrl, "has the namespace of the URL",
		func(ctx context.Context, cp *check.ControlPlane) {
			elsewhere := cp.NewNamespace(ctx)
			body := fmt.Appendf(nil, `{"metadata":{"name":"url","namespace":%q},"spec":{"ports":[{"port":80}]}}`, elsewhere)
			Expect(objectPost(ctx, cp, body)).To(check.BeRefusedWith(http.StatusBadRequest, metav1.StatusReasonBadRequest))
			objectAbsent(ctx, cp, "url")
			a := cp.Do(ctx, http.MethodGet, "/api/v1/namespaces/"+elsewhere+"/services/url", "", nil)
			Expect(a).To(check.BeRefusedWith(http.StatusNotFound, metav1.StatusReasonNotFound), "in the namespace of the body")
		})

	check.It(spec.APINamespaceExists, "names a namespace that exists",
		func(ctx context.Context, cp *check.ControlPlane) {
			a := cp.Create(ctx, check.Service("homeless", check.InNamespace(cp.Namespace()+"-missing")))
			Expect(a).To(check.BeRefusedWith(http.StatusNotFound, metav1.StatusReasonNotFound))
		})

	check.It(spec.APILabelSyntax, "has labels of label syntax",
		func(ctx context.Context, cp *check.ControlPlane) {
			for key, value := range map[string]string{"with space": "v", "-dash": "v", "a/b/c": "v", "value-with-space": "a b", "long": strings.Repeat("v", 64)} {
				Expect(cp.Create(ctx, check.Service("labels", metadataLabelled(key, value)))).To(check.BeInvalid("metadata.labels"), "label %q=%q", key, value)
			}
			objectAbsent(ctx, cp, "labels")
			cp.Arrange(ctx, check.Service("labels"))
			Expect(cp.MergePatch(ctx, "labels", `{"metadata":{"labels":{"with space":"v"}}}`)).To(check.BeInvalid("metadata.labels"), "in an update")
		})

	check.It(spec.APIAnnotationSyntax, "has annotations whose keys have the syntax of label keys",
		func(ctx context.Context, cp *check.ControlPlane) {
			annotated := func(key string) check.ServiceOption {
				return check.With(func(s *corev1.Service) { s.Annotations = map[string]string{key: "any value: {} \n"} })
			}
			for _, key := range []string{"with space", "-dash", "a/b/c", "example.com/", strings.Repeat("k", 64)} {
				Expect(cp.Create(ctx, check.Service("annotated", annotated(key)))).To(check.BeInvalid("metadata.annotations"), "annotation %q", key)
			}
			objectAbsent(ctx, cp, "annotated")
			Expect(cp.Create(ctx, check.Service("annotated", annotated("Example.com/Upper_Case.key")))).To(check.BeAccepted(), "letters of either case")
			Expect(cp.MergePatch(ctx, "annotated", `{"metadata":{"annotations":{"with space":"v"}}}`)).To(check.BeInvalid("metadata.annotations"), "in an update")
		})

	check.It(spec.APIAnnotationsSize, "has annotations of 256 KiB at most",
		func(ctx context.Context, cp *check.ControlPlane) {
			const limit = 256 << 10
			annotated := func(bytes int) check.ServiceOption {
				return check.With(func(s *corev1.Service) {
					s.Annotations = map[string]string{"a": "1", "b": strings.Repeat("x", bytes-len("a1b"))}
				})
			}
			Expect(cp.Create(ctx, check.Service("large", annotated(limit+1)))).To(check.BeInvalid("metadata.annotations"), "one byte more")
			objectAbsent(ctx, cp, "large")
			Expect(cp.Create(ctx, check.Service("large", annotated(limit)))).To(check.BeAccepted(), "all of it")
		})

	check.It(spec.APIOwnerOneController, "has one managing controller at most",
		func(ctx context.Context, cp *check.ControlPlane) {
			// Owners exist: a cluster deletes what belongs to nothing.
			owners := []*corev1.Service{cp.Arrange(ctx, check.Service("a")), cp.Arrange(ctx, check.Service("b"))}
			owned := func(controllers ...bool) check.ServiceOption {
				return check.With(func(s *corev1.Service) {
					for i, controller := range controllers {
						s.OwnerReferences = append(s.OwnerReferences, metav1.OwnerReference{
							APIVersion: "v1", Kind: "Service", Name: owners[i].Name, UID: owners[i].UID, Controller: &controller,
						})
					}
				})
			}
			Expect(cp.Create(ctx, check.Service("owned", owned(true, true)))).To(check.BeInvalid("metadata.ownerReferences"), "two controllers")
			objectAbsent(ctx, cp, "owned")
			Expect(cp.Create(ctx, check.Service("owned", owned(true, false)))).To(check.BeAccepted(), "one controller and another owner")
			Expect(cp.Update(ctx, check.Service("owned", owned(true, true)))).To(check.BeInvalid("metadata.ownerReferences"), "in an update")
		})

	check.It(spec.APIFinalizerQualified, "has finalizers with a domain",
		func(ctx context.Context, cp *check.ControlPlane) {
			for _, finalizer := range []string{"unqualified", "example.com/with space", "/"} {
				a := cp.Create(ctx, check.Service("finalizer", check.With(func(s *corev1.Service) { s.Finalizers = []string{finalizer} })))
				Expect(a).To(check.BeInvalid("metadata.finalizers", "metadata.finalizers[0]"), "finalizer %q", finalizer)
			}
			objectAbsent(ctx, cp, "finalizer")
			a := cp.Create(ctx, check.Service("finalizer", check.With(func(s *corev1.Service) {
				s.Finalizers = []string{metadataFinalizer, metav1.FinalizerOrphanDependents}
			})))
			Expect(a).To(check.BeAccepted(), "a finalizer with a domain and a standard one")
			Expect(cp.MergePatch(ctx, "finalizer", `{"metadata":{"finalizers":null}}`)).To(check.BeAccepted())
		})

	check.It(spec.APIFinalizerHolds, "keeps a deleted Service until its finalizers are gone",
		func(ctx context.Context, cp *check.ControlPlane) {
			cp.Arrange(ctx, check.Service("held", check.With(func(s *corev1.Service) { s.Finalizers = []string{metadataFinalizer} })))
			Expect(cp.Delete(ctx, "held")).To(check.BeAccepted())
			held := cp.Get(ctx, "held")
			Expect(held).To(check.BeAccepted(), "the finalizer must keep the Service")
			Expect(held.Service.DeletionTimestamp).NotTo(BeNil())
			Expect(cp.Create(ctx, check.Service("held"))).To(check.BeRefusedWith(http.StatusConflict, metav1.StatusReasonAlreadyExists))
			Expect(cp.MergePatch(ctx, "held", `{"metadata":{"finalizers":null}}`)).To(check.BeAccepted())
			objectAbsentAfter(ctx, cp, "held", "its last finalizer was removed")
		})
})

var _ = ginkgo.Describe("concurrent change", func() {
	check.It(spec.APIStaleUpdate, "refuses an update of an older state",
		func(ctx context.Context, cp *check.ControlPlane) {
			stale := cp.Arrange(ctx, check.Service("stale"))
			Expect(cp.MergePatch(ctx, "stale", `{"spec":{"selector":{"app":"newer"}}}`)).To(check.BeAccepted())
			stale.Spec.Selector = map[string]string{"app": "older"}
			Expect(cp.Update(ctx, stale)).To(check.BeRefusedWith(http.StatusConflict, metav1.StatusReasonConflict))
			Expect(cp.UpdateStatus(ctx, stale)).To(check.BeRefusedWith(http.StatusConflict, metav1.StatusReasonConflict), "of the status")
			current := cp.Get(ctx, "stale").Service
			Expect(current).To(HaveField("Spec.Selector", HaveKeyWithValue("app", "newer")))
			current.Spec.Selector = map[string]string{"app": "older"}
			Expect(cp.Update(ctx, current)).To(check.BeAccepted(), "with the current resourceVersion")
		})

	check.It(spec.APIStalePatch, "refuses a patch of an older state",
		func(ctx context.Context, cp *check.ControlPlane) {
			stale := cp.Arrange(ctx, check.Service("stale"))
			Expect(cp.MergePatch(ctx, "stale", `{"spec":{"selector":{"app":"newer"}}}`)).To(check.BeAccepted())
			body := fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"spec":{"selector":{"app":"older"}}}`, stale.ResourceVersion)
			for _, patch := range []types.PatchType{types.MergePatchType, types.StrategicMergePatchType} {
				Expect(cp.Patch(ctx, "stale", patch, body)).To(check.BeRefusedWith(http.StatusConflict, metav1.StatusReasonConflict), "%s", patch)
			}
			Expect(cp.Get(ctx, "stale").Service).To(HaveField("Spec.Selector", HaveKeyWithValue("app", "newer")))
		})

	check.It(spec.APIUnconditionalUpdate, "takes an update without a resourceVersion",
		func(ctx context.Context, cp *check.ControlPlane) {
			svc := cp.Arrange(ctx, check.Service("unconditional"))
			Expect(cp.MergePatch(ctx, "unconditional", `{"spec":{"selector":{"app":"newer"}}}`)).To(check.BeAccepted())
			svc.ResourceVersion, svc.Spec.Selector = "", map[string]string{"app": "last"}
			Expect(cp.Update(ctx, svc)).To(check.BeAccepted())
			Expect(cp.Get(ctx, "unconditional").Service).To(HaveField("Spec.Selector", HaveKeyWithValue("app", "last")))
		})

	check.It(spec.APIResourceVersionChanges, "gives every changed state a version of its own",
		func(ctx context.Context, cp *check.ControlPlane) {
			seen := []string{cp.Arrange(ctx, check.Service("version")).ResourceVersion}
			for _, body := range []string{`{"metadata":{"labels":{"a":"b"}}}`, `{"spec":{"selector":{"app":"other"}}}`} {
				a := cp.MergePatch(ctx, "version", body)
				Expect(a).To(check.BeAccepted())
				Expect(seen).NotTo(ContainElement(a.Service.ResourceVersion))
				seen = append(seen, a.Service.ResourceVersion)
			}
			a := cp.PatchStatus(ctx, "version", `{"metadata":{"labels":{"a":"c"}}}`)
			Expect(a).To(check.BeAccepted())
			Expect(seen).NotTo(ContainElement(a.Service.ResourceVersion), "after a change of the status")
			Expect(cp.Get(ctx, "version").Service).To(HaveField("ResourceVersion", a.Service.ResourceVersion))
		})

	check.It(spec.APIResourceVersionChanges, "leaves the version when nothing changes",
		func(ctx context.Context, cp *check.ControlPlane) {
			svc := cp.Arrange(ctx, check.Service("version"))
			Expect(cp.Update(ctx, svc)).To(check.BeAccepted())
			Expect(cp.MergePatch(ctx, "version", `{"spec":{"selector":{"app":"version"}}}`)).To(check.BeAccepted())
			Expect(cp.Get(ctx, "version").Service).To(HaveField("ResourceVersion", svc.ResourceVersion))
		})

	check.It(spec.APIResourceVersionOnCreate, "refuses a new Service with a resourceVersion",
		func(ctx context.Context, cp *check.ControlPlane) {
			a := cp.Create(ctx, check.Service("versioned", check.With(func(s *corev1.Service) { s.ResourceVersion = "1" })))
			Expect(a).NotTo(check.BeAccepted())
			objectAbsent(ctx, cp, "versioned")
		})

	check.It(spec.APIResourceVersionOnCreate, "refuses a new Service whose resourceVersion is 0 or no number",
		func(ctx context.Context, cp *check.ControlPlane) {
			for name, version := range map[string]string{"zero": "0", "text": "abc"} {
				a := cp.Create(ctx, check.Service(name, check.With(func(s *corev1.Service) { s.ResourceVersion = version })))
				Expect(a).NotTo(check.BeAccepted(), "resourceVersion %q", version)
				objectAbsent(ctx, cp, name)
			}
		})

	check.It(spec.APIResourceVersionClientError, "calls a version that is no number the mistake of the client",
		func(ctx context.Context, cp *check.ControlPlane) {
			svc := cp.Arrange(ctx, check.Service("version"))
			changed := svc.DeepCopy()
			changed.ResourceVersion = "abc"
			Expect(cp.Update(ctx, changed)).To(check.BeRefused(), "an update")
			Expect(cp.MergePatch(ctx, "version", `{"metadata":{"resourceVersion":"abc"}}`)).To(check.BeRefused(), "a patch")
			Expect(cp.Do(ctx, http.MethodGet, cp.Path("version"), "", nil, check.Query("resourceVersion", "abc"))).To(check.BeRefused(), "a get")
		})

	check.It(spec.APIConcurrentPatches, "loses none of many patches",
		func(ctx context.Context, cp *check.ControlPlane) {
			const patches = 8
			cp.Arrange(ctx, check.Service("shared"))
			check.Concurrently(patches, func(i int) {
				Expect(cp.MergePatch(ctx, "shared", fmt.Sprintf(`{"metadata":{"labels":{"writer-%d":"here"}}}`, i))).To(check.BeAccepted())
			})
			stored := cp.Get(ctx, "shared").Service
			Expect(stored).NotTo(BeNil())
			for i := range patches {
				Expect(stored.Labels).To(HaveKey(fmt.Sprintf("writer-%d", i)))
			}
		})

	check.It(spec.APIDeletePreconditions, "deletes only the object that the preconditions name",
		func(ctx context.Context, cp *check.ControlPlane) {
			svc := cp.Arrange(ctx, check.Service("precious"))
			deletion := func(preconditions string) check.Response {
				ginkgo.GinkgoHelper()
				body := `{"apiVersion":"v1","kind":"DeleteOptions","preconditions":` + preconditions + `}`
				return cp.Do(ctx, http.MethodDelete, cp.Path("precious"), "application/json", []byte(body))
			}
			conflict := check.BeRefusedWith(http.StatusConflict, metav1.StatusReasonConflict)
			Expect(deletion(`{"uid":"11111111-2222-3333-4444-555555555555"}`)).To(conflict, "another uid")
			Expect(deletion(`{"resourceVersion":"1"}`)).To(conflict, "another resourceVersion")
			Expect(cp.Get(ctx, "precious")).To(check.BeAccepted(), "a refused deletion must delete nothing")
			Expect(deletion(fmt.Sprintf(`{"uid":%q,"resourceVersion":%q}`, svc.UID, svc.ResourceVersion))).To(check.BeAccepted())
			objectAbsentAfter(ctx, cp, "precious", "it was deleted")
		})
})
