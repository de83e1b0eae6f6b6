package apiserver

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/absent"
	"github.com/service-conformance/conformance/framework/spec"
)

// lacks reports whether the server is without a feature.
func (s *Server) lacks(feature string) bool { return s.options.Absent.In(absent.API, feature) }

// lacksDryRun refuses a dry run where the server has none.
func (rq *request) lacksDryRun() error {
	if rq.server.lacks(spec.FeatureDryRun) && rq.r.URL.Query().Has("dryRun") {
		return apierrors.NewBadRequest("the feature " + spec.FeatureDryRun + " is not supported")
	}
	return nil
}

// refuseAbsent refuses a Service that uses a feature which the server is without, unless the stored one uses it already; old is nil on create. What the
// server would add by itself, it leaves out.
func (s *Server) refuseAbsent(svc, old *corev1.Service) error {
	if len(s.options.Absent) == 0 {
		return nil
	}
	var refused field.ErrorList
	at := field.NewPath("spec")
	uses := func(feature string, path *field.Path, in func(*corev1.Service) bool) {
		if s.lacks(feature) && in(svc) && (old == nil || !in(old)) {
			refused = append(refused, field.Forbidden(path, "the feature "+feature+" is not supported"))
		}
	}
	ofType := func(t corev1.ServiceType) func(*corev1.Service) bool {
		return func(v *corev1.Service) bool { return v.Spec.Type == t }
	}
	uses(spec.FeatureExternalName, at.Child("type"), ofType(corev1.ServiceTypeExternalName))
	uses(spec.FeatureNodePort, at.Child("type"), ofType(corev1.ServiceTypeNodePort))
	uses(spec.FeatureLoadBalancer, at.Child("type"), ofType(corev1.ServiceTypeLoadBalancer))
	uses(spec.FeatureExternalIPs, at.Child("externalIPs"), func(v *corev1.Service) bool { return len(v.Spec.ExternalIPs) > 0 })
	uses(spec.FeatureHeadlessService, at.Child("clusterIP"), func(v *corev1.Service) bool { return v.Spec.ClusterIP == corev1.ClusterIPNone })
	uses(spec.FeatureSessionAffinity, at.Child("sessionAffinity"), func(v *corev1.Service) bool { return v.Spec.SessionAffinity == corev1.ServiceAffinityClientIP })
	uses(spec.FeatureSourceRanges, at.Child("loadBalancerSourceRanges"), func(v *corev1.Service) bool { return len(v.Spec.LoadBalancerSourceRanges) > 0 })
	uses(spec.FeatureTrafficDistribution, at.Child("trafficDistribution"), func(v *corev1.Service) bool { return v.Spec.TrafficDistribution != nil })
	uses(spec.FeatureNodePort, at.Child("ports"), func(v *corev1.Service) bool {
		for _, p := range v.Spec.Ports {
			if p.NodePort != 0 {
				return true
			}
		}
		return false
	})
	if len(refused) > 0 {
		return apierrors.NewInvalid(services.gvk.GroupKind(), svc.Name, refused)
	}
	if s.lacks(spec.FeatureNodePort) && svc.Spec.Type == corev1.ServiceTypeLoadBalancer {
		svc.Spec.AllocateLoadBalancerNodePorts = new(false)
	}
	return nil
}
