package apischema

import (
	"context"
	"net/http"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// dryRunUnchanged demands that the Service is stored as it was.
func dryRunUnchanged(ctx context.Context, cp *check.ControlPlane, before *corev1.Service, what string) {
	ginkgo.GinkgoHelper()
	stored := cp.Get(ctx, before.Name).Service
	Expect(stored).NotTo(BeNil(), "%s must delete nothing", what)
	Expect(stored.ResourceVersion).To(Equal(before.ResourceVersion), "%s must write nothing", what)
	Expect(stored.Spec).To(Equal(before.Spec), "%s must change nothing", what)
}

var _ = ginkgo.Describe("a dry run", func() {
	check.It(spec.APIDryRunCreate, "of a create stores nothing",
		func(ctx context.Context, cp *check.ControlPlane) {
			a := cp.Create(ctx, check.Service("dry"), check.DryRun())
			Expect(a).To(check.BeAccepted())
			Expect(a.Code).To(Equal(http.StatusCreated))
			Expect(a.Service).To(HaveField("Spec.Type", corev1.ServiceTypeClusterIP), "the answer shows the defaults")
			Expect(a.Service.UID).NotTo(BeEmpty())
			objectAbsent(ctx, cp, "dry")
			Expect(cp.Create(ctx, check.Service("dry"))).To(check.BeAccepted(), "the name must still be free")
		})

	check.It(spec.APIDryRunCreate, "of an update that creates stores nothing",
		func(ctx context.Context, cp *check.ControlPlane) {
			Expect(cp.Update(ctx, check.Service("dry"), check.DryRun())).To(check.BeAccepted())
			objectAbsent(ctx, cp, "dry")
		})

	check.It(spec.APIDryRunCreate, "of an apply that creates stores nothing",
		func(ctx context.Context, cp *check.ControlPlane) {
			Expect(cp.Apply(ctx, "first", applyName, applySpec(`"ports":[{"port":80}]`), check.DryRun())).To(check.BeAccepted())
			objectAbsent(ctx, cp, applyName)
		})

	check.It(spec.APIDryRunUpdate, "of an update changes nothing",
		func(ctx context.Context, cp *check.ControlPlane) {
			before := cp.Arrange(ctx, check.Service("dry"))
			changed := before.DeepCopy()
			changed.Spec.Selector = map[string]string{"app": "other"}
			a := cp.Update(ctx, changed, check.DryRun())
			Expect(a).To(check.BeAccepted())
			Expect(a.Service).To(HaveField("Spec.Selector", HaveKeyWithValue("app", "other")), "the answer shows the change")
			dryRunUnchanged(ctx, cp, before, "a dry run")
		})

	check.It(spec.APIDryRunUpdate, "of a patch changes nothing",
		func(ctx context.Context, cp *check.ControlPlane) {
			before := cp.Arrange(ctx, check.Service(applyName))
			for patch, body := range map[types.PatchType]string{
				types.JSONPatchType:           `[{"op":"add","path":"/spec/publishNotReadyAddresses","value":true}]`,
				types.MergePatchType:          `{"spec":{"publishNotReadyAddresses":true}}`,
				types.StrategicMergePatchType: `{"spec":{"publishNotReadyAddresses":true}}`,
				types.ApplyPatchType:          applySpec(`"publishNotReadyAddresses":true`),
			} {
				a := cp.Patch(ctx, applyName, patch, body, check.DryRun(), check.Query("fieldManager", "first"))
				Expect(a).To(check.BeAccepted(), "%s", patch)
				Expect(a.Service).To(HaveField("Spec.PublishNotReadyAddresses", true), "the answer to %s shows the change", patch)
				dryRunUnchanged(ctx, cp, before, string(patch))
			}
		})

	check.It(spec.APIDryRunUpdate, "of an update with node ports that are named, and one that is not, is answered with those", check.NodePorts("30000-30063"),
		func(ctx context.Context, cp *check.ControlPlane) {
			before := cp.Arrange(ctx, check.Service("dry"))
			for _, named := range [][2]int32{{30020, 30040}, {30040, 30020}, {30020, 30021}} {
				changed := before.DeepCopy()
				nodePortsOf(named[0], 0, named[1])(changed)
				a := cp.Update(ctx, changed, check.DryRun())
				Expect(a).To(check.BeAccepted(), "node ports %d and %d are free", named[0], named[1])
				Expect([2]int32{a.Service.Spec.Ports[0].NodePort, a.Service.Spec.Ports[2].NodePort}).To(Equal(named), "the node ports that are named")
				dryRunUnchanged(ctx, cp, before, "a dry run")
			}
		})

	check.It(spec.APIDryRunUpdate, "of a change of the status changes nothing",
		func(ctx context.Context, cp *check.ControlPlane) {
			before := cp.Arrange(ctx, check.Service("dry"))
			a := cp.PatchStatus(ctx, "dry", `{"metadata":{"labels":{"a":"b"}}}`, check.DryRun())
			Expect(a).To(check.BeAccepted())
			Expect(a.Service).To(HaveField("Labels", HaveKey("a")))
			dryRunUnchanged(ctx, cp, before, "a dry run")
		})

	check.It(spec.APIDryRunDelete, "of a delete deletes nothing",
		func(ctx context.Context, cp *check.ControlPlane) {
			before := cp.Arrange(ctx, check.Service("dry"))
			Expect(cp.Delete(ctx, "dry", check.DryRun())).To(check.BeAccepted())
			dryRunUnchanged(ctx, cp, before, "a dry run")
			body := []byte(`{"apiVersion":"v1","kind":"DeleteOptions","dryRun":["All"]}`)
			Expect(cp.Do(ctx, http.MethodDelete, cp.Path("dry"), "application/json", body)).To(check.BeAccepted(), "asked for in the body")
			dryRunUnchanged(ctx, cp, before, "a dry run")
		})

	check.It(spec.APIDryRunDelete, "of a delete starts no deletion of a Service with finalizers",
		func(ctx context.Context, cp *check.ControlPlane) {
			before := cp.Arrange(ctx, check.Service("dry", check.With(func(s *corev1.Service) { s.Finalizers = []string{metadataFinalizer} })))
			Expect(cp.Delete(ctx, "dry", check.DryRun())).To(check.BeAccepted())
			dryRunUnchanged(ctx, cp, before, "a dry run")
			Expect(cp.Get(ctx, "dry").Service.DeletionTimestamp).To(BeNil())
			Expect(cp.MergePatch(ctx, "dry", `{"metadata":{"finalizers":null}}`)).To(check.BeAccepted())
		})

	check.It(spec.APIDryRunDelete, "of a deletecollection deletes nothing",
		func(ctx context.Context, cp *check.ControlPlane) {
			first, second := cp.Arrange(ctx, check.Service("first")), cp.Arrange(ctx, check.Service("second"))
			Expect(cp.Do(ctx, http.MethodDelete, objectCollection(cp), "", nil, check.DryRun())).To(check.BeAccepted())
			dryRunUnchanged(ctx, cp, first, "a dry run")
			dryRunUnchanged(ctx, cp, second, "a dry run")
		})

	check.It(spec.APIDryRunSilent, "is not seen by a watch",
		func(ctx context.Context, cp *check.ControlPlane) {
			svc := cp.Arrange(ctx, check.Service("dry"))
			w := watchFrom(ctx, cp, metav1.ListOptions{ResourceVersion: svc.ResourceVersion})
			Expect(cp.Create(ctx, check.Service("other"), check.DryRun())).To(check.BeAccepted())
			Expect(cp.MergePatch(ctx, "dry", `{"metadata":{"labels":{"a":"b"}}}`, check.DryRun())).To(check.BeAccepted())
			Expect(cp.Delete(ctx, "dry", check.DryRun())).To(check.BeAccepted())
			cp.Arrange(ctx, check.Service("last"))
			w.next("ADDED", "last") // and nothing before it
		})

	check.It(spec.APIDryRunValidation, "is refused where the request is refused",
		func(ctx context.Context, cp *check.ControlPlane) {
			svc := cp.Arrange(ctx, check.Service("taken"))
			Expect(cp.Create(ctx, check.Service("invalid", check.WithPorts(check.Port("", "", 70000, 0))), check.DryRun())).To(check.BeInvalid("spec.ports[0].port"))
			Expect(cp.Create(ctx, check.Service("taken"), check.DryRun())).To(check.BeRefusedWith(http.StatusConflict, metav1.StatusReasonAlreadyExists))
			Expect(cp.MergePatch(ctx, "taken", `{"spec":{"type":"Nonsense"}}`, check.DryRun())).To(check.BeInvalid("spec.type"))
			Expect(cp.MergePatch(ctx, "missing", `{}`, check.DryRun())).To(check.BeRefusedWith(http.StatusNotFound, metav1.StatusReasonNotFound))
			Expect(cp.Delete(ctx, "missing", check.DryRun())).To(check.BeRefusedWith(http.StatusNotFound, metav1.StatusReasonNotFound))
			Expect(cp.MergePatch(ctx, "taken", `{"metadata":{"labels":{"a":"b"}}}`)).To(check.BeAccepted())
			Expect(cp.Update(ctx, svc, check.DryRun())).To(check.BeRefusedWith(http.StatusConflict, metav1.StatusReasonConflict), "an older state")
		})

	check.It(spec.APIDryRunValue, "is asked for with All alone",
		func(ctx context.Context, cp *check.ControlPlane) {
			cp.Arrange(ctx, check.Service("there"))
			some := check.Query("dryRun", "some")
			Expect(cp.Create(ctx, check.Service("dry"), some)).To(check.BeRefused())
			objectAbsent(ctx, cp, "dry")
			Expect(cp.MergePatch(ctx, "there", `{"metadata":{"labels":{"a":"b"}}}`, some)).To(check.BeRefused())
			Expect(cp.Delete(ctx, "there", some)).To(check.BeRefused())
			Expect(cp.Get(ctx, "there").Service).To(HaveField("Labels", BeEmpty()))
		})
})
