package apischema

import (
	"context"
	"net/http"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// validationBodies are Services with a field that the schema does not know, and with one that is there twice. The key
// is what a warning names.
var validationBodies = map[string]string{
	"spec.unheardOf":          `{"apiVersion":"v1","kind":"Service","metadata":{"name":"sloppy"},"spec":{"unheardOf":1,"ports":[{"port":80}]}}`,
	"spec.ports[0].unheardOf": `{"apiVersion":"v1","kind":"Service","metadata":{"name":"sloppy"},"spec":{"ports":[{"port":80,"unheardOf":1}]}}`,
	"spec.type":               `{"apiVersion":"v1","kind":"Service","metadata":{"name":"sloppy"},"spec":{"type":"ClusterIP","type":"ClusterIP","ports":[{"port":80}]}}`,
}

var _ = ginkgo.Describe("field validation", func() {
	const unknownPatch = `{"spec":{"unheardOf":1}}`

	check.It(spec.APIFieldValidationStrict, "Strict refuses unknown and duplicate fields",
		func(ctx context.Context, cp *check.ControlPlane) {
			for field, body := range validationBodies {
				Expect(objectPost(ctx, cp, []byte(body), check.FieldValidation("Strict"))).To(check.BeRefused(), "%s", field)
				objectAbsent(ctx, cp, "sloppy")
			}
		})

	check.It(spec.APIFieldValidationStrict, "Strict refuses unknown fields in an update and in patches",
		func(ctx context.Context, cp *check.ControlPlane) {
			svc := cp.Arrange(ctx, check.Service("sloppy"))
			body := validationBodies["spec.unheardOf"]
			Expect(cp.Do(ctx, http.MethodPut, cp.Path("sloppy"), "application/json", []byte(body), check.FieldValidation("Strict"))).To(check.BeRefused())
			for _, patch := range []types.PatchType{types.MergePatchType, types.StrategicMergePatchType} {
				Expect(cp.Patch(ctx, "sloppy", patch, unknownPatch, check.FieldValidation("Strict"))).To(check.BeRefused(), "%s", patch)
			}
			Expect(cp.Get(ctx, "sloppy").Service).To(HaveField("ResourceVersion", svc.ResourceVersion))
			Expect(cp.MergePatch(ctx, "sloppy", `{"metadata":{"labels":{"a":"b"}}}`, check.FieldValidation("Strict"))).To(check.BeAccepted(), "without unknown fields")
		})

	check.It(spec.APIFieldValidationWarn, "Warn accepts unknown and duplicate fields with a warning", check.Claiming(spec.FeatureWarnings),
		func(ctx context.Context, cp *check.ControlPlane) {
			for field, body := range validationBodies {
				for _, options := range [][]check.RequestOption{{check.FieldValidation("Warn")}, {}} { // Warn is the default
					a := objectPost(ctx, cp, []byte(body), options...)
					Expect(a).To(check.BeAccepted(), "%s", field)
					Expect(a).To(check.Warn(field))
					Expect(cp.Delete(ctx, "sloppy")).To(check.BeAccepted())
				}
			}
		})

	check.It(spec.APIFieldValidationWarn, "Warn accepts unknown fields in patches with a warning", check.Claiming(spec.FeatureWarnings),
		func(ctx context.Context, cp *check.ControlPlane) {
			cp.Arrange(ctx, check.Service("sloppy"))
			for _, patch := range []types.PatchType{types.MergePatchType, types.StrategicMergePatchType} {
				a := cp.Patch(ctx, "sloppy", patch, unknownPatch)
				Expect(a).To(check.BeAccepted(), "%s", patch)
				Expect(a).To(check.Warn("spec.unheardOf"), "%s", patch)
			}
		})

	check.It(spec.APIFieldValidationIgnore, "Ignore accepts unknown and duplicate fields in silence",
		func(ctx context.Context, cp *check.ControlPlane) {
			for field, body := range validationBodies {
				a := objectPost(ctx, cp, []byte(body), check.FieldValidation("Ignore"))
				Expect(a).To(check.BeAccepted(), "%s", field)
				Expect(a.Warnings).To(BeEmpty(), "%s", field)
				Expect(cp.Delete(ctx, "sloppy")).To(check.BeAccepted())
			}
		})

	check.It(spec.APIFieldValidationValue, "knows no other value",
		func(ctx context.Context, cp *check.ControlPlane) {
			Expect(cp.Create(ctx, check.Service("sloppy"), check.FieldValidation("Loose"))).To(check.BeRefused())
			objectAbsent(ctx, cp, "sloppy")
		})
})
