package apischema

import (
	"context"
	"fmt"
	"net/http"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// applyName is the Service that the checks of server-side apply build.
const applyName = "applied"

// applySpec is a configuration with this spec, written as JSON without its braces.
func applySpec(fields string) string {
	return `{"apiVersion":"v1","kind":"Service","metadata":{"name":"` + applyName + `"},"spec":{` + fields + `}}`
}

// applyForce takes over the fields in conflict.
func applyForce() check.RequestOption { return check.Query("force", "true") }

// applyConflict demands a refusal because of another manager that names the field.
func applyConflict(field string) gomegatypes.GomegaMatcher {
	return And(check.BeRefusedWith(http.StatusConflict, metav1.StatusReasonConflict),
		HaveField("Status.Details.Causes", ContainElement(And(
			HaveField("Type", metav1.CauseTypeFieldManagerConflict), HaveField("Field", field)))))
}

// applied returns the stored Service.
func applied(ctx context.Context, cp *check.ControlPlane) *corev1.Service {
	ginkgo.GinkgoHelper()
	svc := cp.Get(ctx, applyName).Service
	Expect(svc).NotTo(BeNil())
	return svc
}

var _ = ginkgo.Describe("server-side apply", func() {
	check.It(spec.APIApplyCreates, "creates a Service that there is not",
		func(ctx context.Context, cp *check.ControlPlane) {
			a := cp.Apply(ctx, "first", applyName, applySpec(`"ports":[{"port":80}]`))
			Expect(a).To(check.BeAccepted())
			Expect(a.Code).To(Equal(http.StatusCreated))
			Expect(applied(ctx, cp).Spec.Ports).To(HaveExactElements(HaveField("Port", int32(80))))
		})

	check.It(spec.APIApplyYaml, "reads YAML",
		func(ctx context.Context, cp *check.ControlPlane) {
			configuration := fmt.Sprintf("# a comment\napiVersion: v1\nkind: Service\nmetadata:\n  name: %s\n  labels: {quoted: \"true\"}\nspec:\n  ports:\n  - port: 80\n", applyName)
			Expect(cp.Apply(ctx, "first", applyName, configuration)).To(check.BeAccepted())
			Expect(applied(ctx, cp).Labels).To(HaveKeyWithValue("quoted", "true"))
		})

	check.It(spec.APIApplyManagerRequired, "needs a field manager",
		func(ctx context.Context, cp *check.ControlPlane) {
			Expect(cp.Patch(ctx, applyName, types.ApplyPatchType, applySpec(`"ports":[{"port":80}]`))).To(check.BeRefused())
			objectAbsent(ctx, cp, applyName)
		})

	check.It(spec.APIApplyManagedFields, "records who owns what",
		func(ctx context.Context, cp *check.ControlPlane) {
			Expect(cp.Create(ctx, check.Service(applyName), check.Query("fieldManager", "creator"))).To(check.BeAccepted())
			Expect(cp.Apply(ctx, "applier", applyName, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"`+applyName+`","labels":{"a":"b"}}}`)).To(check.BeAccepted())
			managed := func(manager string, operation metav1.ManagedFieldsOperationType, owns string) gomegatypes.GomegaMatcher {
				return And(HaveField("Manager", manager), HaveField("Operation", operation), HaveField("APIVersion", "v1"),
					WithTransform(func(e metav1.ManagedFieldsEntry) string { return string(e.FieldsV1.GetRawBytes()) }, ContainSubstring(owns)))
			}
			Expect(applied(ctx, cp).ManagedFields).To(ConsistOf(
				managed("creator", metav1.ManagedFieldsOperationUpdate, `"f:selector"`),
				managed("applier", metav1.ManagedFieldsOperationApply, `"f:a"`)))
		})

	check.It(spec.APIApplyConflict, "refuses another value for a field of another manager",
		func(ctx context.Context, cp *check.ControlPlane) {
			Expect(cp.Apply(ctx, "first", applyName, applySpec(`"sessionAffinity":"ClientIP","ports":[{"port":80}]`))).To(check.BeAccepted())
			Expect(cp.Apply(ctx, "second", applyName, applySpec(`"sessionAffinity":"None","publishNotReadyAddresses":true`))).To(applyConflict(".spec.sessionAffinity"))
			svc := applied(ctx, cp)
			Expect(svc.Spec.SessionAffinity).To(Equal(corev1.ServiceAffinityClientIP))
			Expect(svc.Spec.PublishNotReadyAddresses).To(BeFalse(), "a refused apply changed the field")
		})

	check.It(spec.APIApplyForce, "takes a field over by force",
		func(ctx context.Context, cp *check.ControlPlane) {
			const first = `"sessionAffinity":"ClientIP","ports":[{"port":80}]`
			Expect(cp.Apply(ctx, "first", applyName, applySpec(first))).To(check.BeAccepted())
			Expect(cp.Apply(ctx, "second", applyName, applySpec(`"sessionAffinity":"None"`), applyForce())).To(check.BeAccepted())
			Expect(applied(ctx, cp).Spec.SessionAffinity).To(Equal(corev1.ServiceAffinityNone))
			Expect(cp.Apply(ctx, "first", applyName, applySpec(first))).To(applyConflict(".spec.sessionAffinity"), "for the former owner")
		})

	check.It(spec.APIApplyShared, "keeps a shared field until its last owner leaves it out",
		func(ctx context.Context, cp *check.ControlPlane) {
			const shared = `"publishNotReadyAddresses":true`
			Expect(cp.Apply(ctx, "first", applyName, applySpec(shared+`,"ports":[{"port":80}]`))).To(check.BeAccepted())
			Expect(cp.Apply(ctx, "second", applyName, applySpec(shared))).To(check.BeAccepted(), "the same value is no conflict")
			Expect(cp.Apply(ctx, "first", applyName, applySpec(`"ports":[{"port":80}]`))).To(check.BeAccepted())
			Expect(applied(ctx, cp).Spec.PublishNotReadyAddresses).To(BeTrue(), "the second manager still owns the field")
			Expect(cp.Apply(ctx, "second", applyName, applySpec(``))).To(check.BeAccepted())
			Expect(applied(ctx, cp).Spec.PublishNotReadyAddresses).To(BeFalse(), "the field is still set, although nobody owns it any more")
		})

	check.It(spec.APIApplyRemovesOwn, "removes what a manager leaves out, and nothing of others",
		func(ctx context.Context, cp *check.ControlPlane) {
			Expect(cp.Apply(ctx, "first", applyName, applySpec(`"publishNotReadyAddresses":true,"externalIPs":["192.0.2.4"],"ports":[{"port":80}]`))).To(check.BeAccepted())
			Expect(cp.Apply(ctx, "second", applyName, applySpec(`"sessionAffinity":"ClientIP"`))).To(check.BeAccepted())
			Expect(cp.Apply(ctx, "first", applyName, applySpec(`"ports":[{"port":80}]`))).To(check.BeAccepted())
			svc := applied(ctx, cp)
			Expect(svc.Spec.PublishNotReadyAddresses).To(BeFalse(), "publishNotReadyAddresses is set")
			Expect(svc.Spec.ExternalIPs).To(BeEmpty())
			Expect(svc.Spec.SessionAffinity).To(Equal(corev1.ServiceAffinityClientIP), "the field of the second manager")
		})

	check.It(spec.APIApplyUpdateConflict, "refuses another value for a field that an update has set",
		func(ctx context.Context, cp *check.ControlPlane) {
			Expect(cp.Apply(ctx, "first", applyName, applySpec(`"sessionAffinity":"ClientIP","ports":[{"port":80}]`))).To(check.BeAccepted())
			Expect(cp.MergePatch(ctx, applyName, `{"spec":{"sessionAffinity":"None","selector":{"app":"updated"}}}`, check.Query("fieldManager", "updater"))).To(check.BeAccepted())
			Expect(cp.Apply(ctx, "first", applyName, applySpec(`"sessionAffinity":"ClientIP","ports":[{"port":80}]`))).To(applyConflict(".spec.sessionAffinity"))
			Expect(cp.Apply(ctx, "first", applyName, applySpec(`"selector":{"app":"applied"},"ports":[{"port":80}]`))).To(applyConflict(".spec.selector"))
			Expect(applied(ctx, cp).Spec.Selector).To(HaveKeyWithValue("app", "updated"))
		})

	check.It(spec.APIApplyAtomicLists, "replaces an atomic list and the selector as a whole",
		func(ctx context.Context, cp *check.ControlPlane) {
			Expect(cp.Apply(ctx, "first", applyName, applySpec(`"selector":{"a":"1","b":"2"},"externalIPs":["192.0.2.4","192.0.2.5"],"ports":[{"port":80}]`))).To(check.BeAccepted())
			const other = `"selector":{"c":"3"},"externalIPs":["192.0.2.6"]`
			Expect(cp.Apply(ctx, "second", applyName, applySpec(other))).To(And(applyConflict(".spec.selector"), applyConflict(".spec.externalIPs")))
			Expect(cp.Apply(ctx, "second", applyName, applySpec(other), applyForce())).To(check.BeAccepted())
			svc := applied(ctx, cp)
			Expect(svc.Spec.Selector).To(Equal(map[string]string{"c": "3"}))
			Expect(svc.Spec.ExternalIPs).To(Equal([]string{"192.0.2.6"}))
		})
})

var _ = ginkgo.Describe("server-side apply of ports", func() {
	const tcp, udp = `{"name":"dns-tcp","port":53,"protocol":"TCP"}`, `{"name":"dns","port":53,"protocol":"UDP"}`

	check.It(spec.APIApplyPortKeys, "lets two managers own ports with the same number",
		func(ctx context.Context, cp *check.ControlPlane) {
			Expect(cp.Apply(ctx, "first", applyName, applySpec(`"ports":[`+tcp+`]`))).To(check.BeAccepted())
			Expect(cp.Apply(ctx, "second", applyName, applySpec(`"ports":[`+udp+`]`))).To(check.BeAccepted())
			Expect(patchPorts(ctx, cp, applyName)).To(ConsistOf(patchDNS, patchDNSTCP))
			Expect(cp.Apply(ctx, "second", applyName, applySpec(`"ports":[`+udp+`,{"name":"mine","port":53,"protocol":"TCP"}]`))).To(
				applyConflict(`.spec.ports[port=53,protocol="TCP"].name`), "the name of the port of the first manager")
		})

	check.It(spec.APIApplyPortKeys, "removes one of two ports with the same number",
		func(ctx context.Context, cp *check.ControlPlane) {
			Expect(cp.Apply(ctx, "first", applyName, applySpec(`"ports":[`+tcp+`,`+udp+`]`))).To(check.BeAccepted())
			Expect(patchPorts(ctx, cp, applyName)).To(ConsistOf(patchDNS, patchDNSTCP))
			Expect(cp.Apply(ctx, "first", applyName, applySpec(`"ports":[`+udp+`]`))).To(check.BeAccepted())
			Expect(patchPorts(ctx, cp, applyName)).To(ConsistOf(patchDNS))
		})

	check.It(spec.APIApplyPortProtocolDefault, "takes a port without a protocol for TCP",
		func(ctx context.Context, cp *check.ControlPlane) {
			Expect(cp.Apply(ctx, "first", applyName, applySpec(`"ports":[{"name":"dns-tcp","port":53}]`))).To(check.BeAccepted())
			Expect(cp.Apply(ctx, "first", applyName, applySpec(`"ports":[`+tcp+`,`+udp+`]`))).To(check.BeAccepted())
			Expect(patchPorts(ctx, cp, applyName)).To(ConsistOf(patchDNS, patchDNSTCP))
			Expect(cp.Apply(ctx, "first", applyName, applySpec(`"ports":[{"name":"dns-tcp","port":53}]`))).To(check.BeAccepted())
			Expect(patchPorts(ctx, cp, applyName)).To(ConsistOf(patchDNSTCP))
		})

	check.It(spec.APIApplyPortDuplicate, "refuses a port that is named twice",
		func(ctx context.Context, cp *check.ControlPlane) {
			Expect(cp.Apply(ctx, "first", applyName, applySpec(`"ports":[`+tcp+`]`))).To(check.BeAccepted())
			for _, again := range []string{`{"name":"again","port":53,"protocol":"TCP"}`, `{"name":"again","port":53}`} {
				Expect(cp.Apply(ctx, "first", applyName, applySpec(`"ports":[`+tcp+`,`+again+`]`))).NotTo(check.BeAccepted(), "%s", again)
			}
			Expect(patchPorts(ctx, cp, applyName)).To(ConsistOf(patchDNSTCP))
		})
})

var _ = ginkgo.Describe("a configuration that does not fit the schema", func() {
	check.It(spec.APIApplyClientError, "is the mistake of the client",
		func(ctx context.Context, cp *check.ControlPlane) {
			for what, fields := range map[string]string{
				"a port that is named twice": `"ports":[{"name":"a","port":80},{"name":"b","port":80}]`,
				"a text for a list":          `"ports":"80"`,
			} {
				Expect(cp.Apply(ctx, "first", applyName, applySpec(fields))).To(check.BeRefused(), "%s", what)
			}
		})
})

var _ = ginkgo.Describe("server-side apply of conditions", func() {
	check.It(spec.APIApplyConditionsKeys, "lets two managers own conditions of different types",
		func(ctx context.Context, cp *check.ControlPlane) {
			cp.Arrange(ctx, check.Service(applyName))
			apply := func(manager, condition, status string) check.Response {
				ginkgo.GinkgoHelper()
				body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Service","metadata":{"name":%q},"status":{"conditions":[
					{"type":%q,"status":%q,"reason":"Checked","message":"","lastTransitionTime":"2024-01-02T03:04:05Z"}]}}`, applyName, condition, status)
				return cp.Do(ctx, http.MethodPatch, cp.Path(applyName)+"/status", string(types.ApplyPatchType), []byte(body), check.Query("fieldManager", manager))
			}
			Expect(apply("first", "example.com/A", "True")).To(check.BeAccepted())
			Expect(apply("second", "example.com/B", "False")).To(check.BeAccepted())
			Expect(applied(ctx, cp).Status.Conditions).To(ConsistOf(HaveField("Type", "example.com/A"), HaveField("Type", "example.com/B")))
			Expect(apply("second", "example.com/A", "False")).To(applyConflict(`.status.conditions[type="example.com/A"].status`))
		})
})
