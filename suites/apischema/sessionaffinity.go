package apischema

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

const affinityTimeoutPath = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"

// affinityOf sets spec.sessionAffinity.
func affinityOf(affinity corev1.ServiceAffinity) check.ServiceOption {
	return check.With(func(s *corev1.Service) { s.Spec.SessionAffinity = affinity })
}

// affinityFor sets affinity by client IP for a time.
func affinityFor(seconds int32) check.ServiceOption {
	return check.With(func(s *corev1.Service) {
		s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(seconds)}}
	})
}

// affinityLasts demands that the response is a Service whose session affinity lasts this time.
func affinityLasts(a check.Response, seconds int32, when string) {
	ginkgo.GinkgoHelper()
	Expect(a).To(check.BeAccepted(), when)
	config := a.Service.Spec.SessionAffinityConfig
	Expect(config).NotTo(BeNil(), when)
	Expect(config.ClientIP).NotTo(BeNil(), when)
	Expect(config.ClientIP.TimeoutSeconds).To(HaveValue(Equal(seconds)), when)
}

var _ = ginkgo.Describe("session affinity", func() {
	check.It(spec.APISessionAffinityValues, "may be ClientIP or None", func(ctx context.Context, cp *check.ControlPlane) {
		for _, affinity := range []corev1.ServiceAffinity{corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone} {
			a := cp.Create(ctx, check.Service(cp.Name("affinity"), affinityOf(affinity)))
			Expect(a).To(check.BeAccepted(), "sessionAffinity %s", affinity)
			Expect(a.Service.Spec.SessionAffinity).To(Equal(affinity))
		}
	})

	check.It(spec.APISessionAffinityValues, "may be nothing else", func(ctx context.Context, cp *check.ControlPlane) {
		for _, affinity := range []corev1.ServiceAffinity{"clientIP", "none", "Cookie"} {
			a := cp.Create(ctx, check.Service(cp.Name("affinity"), affinityOf(affinity)))
			Expect(a).To(check.BeInvalid("spec.sessionAffinity"), "sessionAffinity %s", affinity)
		}
	})

	check.It(spec.APISessionAffinityDefault, "is None if it is not set", func(ctx context.Context, cp *check.ControlPlane) {
		for _, fields := range []string{`"type":"ClusterIP"`, `"sessionAffinity":""`} {
			a := typeCreate(ctx, cp, cp.Name("affinity"), fields)
			Expect(a).To(check.BeAccepted(), fields)
			Expect(a.Service.Spec.SessionAffinity).To(Equal(corev1.ServiceAffinityNone), fields)
		}
	})

	check.It(spec.APISessionAffinityConfig, "has a configuration that is kept", func(ctx context.Context, cp *check.ControlPlane) {
		affinityLasts(cp.Create(ctx, check.Service("sticky", affinityFor(600))), 600, "created with 600 s")
		affinityLasts(cp.Get(ctx, "sticky"), 600, "stored with 600 s")
		affinityLasts(cp.MergePatch(ctx, "sticky", `{"spec":{"sessionAffinityConfig":{"clientIP":{"timeoutSeconds":700}}}}`), 700, "changed to 700 s")
	})

	check.It(spec.APISessionAffinityConfigNone, "has no configuration if there is none", func(ctx context.Context, cp *check.ControlPlane) {
		a := cp.Create(ctx, check.Service("none", affinityFor(600), affinityOf(corev1.ServiceAffinityNone)))
		if !a.Accepted() {
			Expect(a).To(check.BeInvalid("spec.sessionAffinityConfig"))
			return
		}
		Expect(a.Service.Spec.SessionAffinityConfig).To(BeNil())
		Expect(typeStored(ctx, cp, "none").Spec.SessionAffinityConfig).To(BeNil(), "as stored")
	})

	check.It(spec.APISessionAffinityConfigCleared, "loses its configuration when it is switched off", func(ctx context.Context, cp *check.ControlPlane) {
		cp.Arrange(ctx, check.Service("sticky", affinityFor(600)))
		a := cp.MergePatch(ctx, "sticky", `{"spec":{"sessionAffinity":"None"}}`)
		Expect(a).To(check.BeAccepted())
		Expect(a.Service.Spec.SessionAffinity).To(Equal(corev1.ServiceAffinityNone))
		Expect(a.Service.Spec.SessionAffinityConfig).To(BeNil())
	})
})

var _ = ginkgo.Describe("the timeout of session affinity", func() {
	check.It(spec.APISessionAffinityTimeoutPositive, "is at least one second", func(ctx context.Context, cp *check.ControlPlane) {
		affinityLasts(cp.Create(ctx, check.Service("second", affinityFor(1))), 1, "1 s")
		for _, seconds := range []int32{0, -1} {
			a := cp.Create(ctx, check.Service(cp.Name("short"), affinityFor(seconds)))
			Expect(a).To(check.BeInvalid(affinityTimeoutPath), "%d s", seconds)
		}
	})

	check.It(spec.APISessionAffinityTimeoutMaximum, "may be one day", func(ctx context.Context, cp *check.ControlPlane) {
		affinityLasts(cp.Create(ctx, check.Service("day", affinityFor(86400))), 86400, "one day")
	})

	check.It(spec.APISessionAffinityTimeoutMaximum, "may be no longer than one day", func(ctx context.Context, cp *check.ControlPlane) {
		Expect(cp.Create(ctx, check.Service("longer", affinityFor(86401)))).To(check.BeInvalid(affinityTimeoutPath), "on create")
		svc := cp.Arrange(ctx, check.Service("day", affinityOf(corev1.ServiceAffinityClientIP)))
		affinityFor(86401)(svc)
		Expect(cp.Update(ctx, svc)).To(check.BeInvalid(affinityTimeoutPath), "on update")
	})

	check.It(spec.APISessionAffinityTimeoutDefault, "is three hours if a new Service sets none", func(ctx context.Context, cp *check.ControlPlane) {
		for _, config := range []string{``, `,"sessionAffinityConfig":{}`, `,"sessionAffinityConfig":{"clientIP":{}}`} {
			affinityLasts(typeCreate(ctx, cp, cp.Name("sticky"), `"sessionAffinity":"ClientIP"`+config), 10800, "ClientIP"+config)
		}
	})

	check.It(spec.APISessionAffinityTimeoutDefault, "is three hours if an update removes it", func(ctx context.Context, cp *check.ControlPlane) {
		cp.Arrange(ctx, check.Service("sticky", affinityFor(600)))
		affinityLasts(cp.MergePatch(ctx, "sticky", `{"spec":{"sessionAffinityConfig":null}}`), 10800, "configuration removed")
		cp.Arrange(ctx, check.Service("fickle"))
		affinityLasts(cp.MergePatch(ctx, "fickle", `{"spec":{"sessionAffinity":"ClientIP"}}`), 10800, "affinity switched on")
	})
})
