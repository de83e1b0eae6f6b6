package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
)

func TestPatchTypes(t *testing.T) {
	eachEncoding(t, func(t *testing.T, contentType string) {
		g, ctx := NewWithT(t), context.Background()
		services := clientFor(t, startServer(t, Options{}), contentType).CoreV1().Services("default")
		svc := newService("a")
		svc.Spec.Ports = []corev1.ServicePort{{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP}}
		_, err := services.Create(ctx, svc, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		patch := func(kind types.PatchType, body string) *corev1.Service {
			t.Helper()
			svc, err := services.Patch(ctx, "a", kind, []byte(body), metav1.PatchOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			return svc
		}
		svc = patch(types.JSONPatchType, `[{"op":"test","path":"/spec/type","value":"ClusterIP"},{"op":"add","path":"/metadata/labels","value":{"x":"y"}}]`)
		g.Expect(svc.Labels).To(HaveKeyWithValue("x", "y"))
		svc = patch(types.MergePatchType, `{"metadata":{"labels":{"x":null,"z":"1"}},"spec":{"sessionAffinity":"ClientIP"}}`)
		g.Expect(svc.Labels).To(Equal(map[string]string{"z": "1"}))
		g.Expect(*svc.Spec.SessionAffinityConfig.ClientIP.TimeoutSeconds).To(BeEquivalentTo(10800), "defaults apply to a patched object")
		svc = patch(types.StrategicMergePatchType, `{"spec":{"ports":[{"port":80,"name":"http"}]}}`)
		g.Expect(svc.Spec.Ports).To(HaveLen(2), "ports are merged by their key")
		svc = patch(types.StrategicMergePatchType, `{"spec":{"ports":[{"$patch":"delete","port":53}]}}`)
		g.Expect(svc.Spec.Ports).To(HaveLen(1))
		before := svc.ResourceVersion
		g.Expect(patch(types.MergePatchType, `{}`).ResourceVersion).To(Equal(before))
		_, err = services.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"a b":"c"}}}`), metav1.PatchOptions{})
		g.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
	})
}

func TestStatusPatchLeavesTheSpecificationAlone(t *testing.T) {
	g, ctx := NewWithT(t), context.Background()
	services := clientFor(t, startServer(t, Options{}), mediaJSON).CoreV1().Services("default")
	created, err := services.Create(ctx, newService("a"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	svc, err := services.Patch(ctx, "a", types.MergePatchType,
		[]byte(`{"spec":{"type":"NodePort"},"status":{"conditions":[{"type":"Ready","status":"True","reason":"Test","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`),
		metav1.PatchOptions{}, "status")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(svc.Spec).To(Equal(created.Spec))
	g.Expect(svc.Status.Conditions).To(HaveLen(1))
	svc, err = services.Patch(ctx, "a", types.MergePatchType, []byte(`{"status":{"conditions":null}}`), metav1.PatchOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(svc.Status.Conditions).To(HaveLen(1), "the status is not written through the main resource")
}

func portApply(name string, port int32, protocol corev1.Protocol, target string) *corev1apply.ServiceApplyConfiguration {
	p := corev1apply.ServicePort().WithName(target).WithPort(port).WithProtocol(protocol)
	return corev1apply.Service(name, "default").WithSpec(corev1apply.ServiceSpec().WithPorts(p))
}

func TestServerSideApply(t *testing.T) {
	eachEncoding(t, func(t *testing.T, contentType string) {
		g, ctx := NewWithT(t), context.Background()
		services := clientFor(t, startServer(t, Options{}), contentType).CoreV1().Services("default")

		one, err := services.Apply(ctx, portApply("a", 53, corev1.ProtocolTCP, "dns-tcp"), metav1.ApplyOptions{FieldManager: "one"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(one.Spec.ClusterIP).NotTo(BeEmpty())
		g.Expect(one.ManagedFields).To(HaveLen(1))
		two, err := services.Apply(ctx, portApply("a", 53, corev1.ProtocolUDP, "dns"), metav1.ApplyOptions{FieldManager: "two"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(two.Spec.Ports).To(HaveLen(2), "same number, other protocol: another port")
		g.Expect(two.ManagedFields).To(HaveLen(2))
		same, err := services.Apply(ctx, portApply("a", 53, corev1.ProtocolUDP, "dns"), metav1.ApplyOptions{FieldManager: "two"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(same.ResourceVersion).To(Equal(two.ResourceVersion))

		_, err = services.Apply(ctx, portApply("a", 53, corev1.ProtocolTCP, "other"), metav1.ApplyOptions{FieldManager: "two"})
		g.Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
		g.Expect(apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)).To(BeTrue())
		forced, err := services.Apply(ctx, portApply("a", 53, corev1.ProtocolTCP, "other"), metav1.ApplyOptions{FieldManager: "two", Force: true})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(forced.Spec.Ports).To(HaveLen(1), "the port that two no longer applies is gone")
		g.Expect(forced.Spec.Ports[0].Name).To(Equal("other"))

		forced.Labels = map[string]string{"by": "update"}
		updated, err := services.Update(ctx, forced, metav1.UpdateOptions{FieldManager: "three"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(updated.ManagedFields).To(ContainElement(HaveField("Manager", "three")))
		_, err = services.Apply(ctx, portApply("a", 53, corev1.ProtocolTCP, "other").WithLabels(map[string]string{"by": "apply"}), metav1.ApplyOptions{FieldManager: "two"})
		g.Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
	})
}

// Writes before the first apply are tracked lazily: what they own must come out the same.
func TestFirstApplyKnowsEarlierWriters(t *testing.T) {
	g, ctx := NewWithT(t), context.Background()
	services := clientFor(t, startServer(t, Options{}), mediaJSON).CoreV1().Services("default")
	svc := newService("a")
	svc.Labels = map[string]string{"keep": "1"}
	_, err := services.Create(ctx, svc, metav1.CreateOptions{FieldManager: "creator"})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = services.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"patched":"1"}}}`), metav1.PatchOptions{FieldManager: "patcher"})
	g.Expect(err).NotTo(HaveOccurred())

	_, err = services.Apply(ctx, corev1apply.Service("a", "default").WithLabels(map[string]string{"keep": "2", "patched": "2"}), metav1.ApplyOptions{FieldManager: "applier"})
	var status *apierrors.StatusError
	g.Expect(errors.As(err, &status)).To(BeTrue(), "%v is no status", err)
	causes, err := json.Marshal(status.ErrStatus.Details.Causes)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(causes)).To(And(ContainSubstring(`creator`), ContainSubstring(`patcher`), ContainSubstring(".metadata.labels.keep"), ContainSubstring(".metadata.labels.patched")))

	// The server, not the creator, filled these in: nobody's field.
	applied, err := services.Apply(ctx, corev1apply.Service("a", "default").WithSpec(corev1apply.ServiceSpec().WithIPFamilyPolicy(corev1.IPFamilyPolicyPreferDualStack)),
		metav1.ApplyOptions{FieldManager: "applier"})
	g.Expect(err).NotTo(HaveOccurred())
	managers := []string{}
	for _, m := range applied.ManagedFields {
		managers = append(managers, m.Manager)
	}
	g.Expect(managers).To(ConsistOf("creator", "patcher", "applier"))
}

func TestApplyToTheStatus(t *testing.T) {
	g, ctx := NewWithT(t), context.Background()
	services := clientFor(t, startServer(t, Options{}), mediaJSON).CoreV1().Services("default")
	condition := corev1apply.Service("a", "default").WithStatus(corev1apply.ServiceStatus())
	_, err := services.ApplyStatus(ctx, condition, metav1.ApplyOptions{FieldManager: "m"})
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "a status does not create: %v", err)
	_, err = services.Create(ctx, newService("a"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = services.Patch(ctx, "a", types.ApplyPatchType, []byte(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},
		"status":{"conditions":[{"type":"Ready","status":"True","reason":"Test","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`),
		metav1.PatchOptions{FieldManager: "m"}, "status")
	g.Expect(err).NotTo(HaveOccurred())
	svc, err := services.Get(ctx, "a", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(svc.Status.Conditions).To(HaveLen(1))
	g.Expect(svc.ManagedFields).To(ContainElement(HaveField("Subresource", "status")))
}
