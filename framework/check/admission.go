package check

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/spec"
)

// admission is what the candidate's is known to do; nil if it does nothing.
func admission() *candidate.Admission { return setup.admission }

// trials are Services that the admission of a candidate is asked about, by the feature that they use; the first one uses none.
func trials() []trial {
	return []trial{
		{"", Service("trial")},
		{spec.FeatureExternalIPs, Service("trial", With(func(s *corev1.Service) { s.Spec.ExternalIPs = []string{nobodyIPv4.String()} }))},
		{spec.FeatureNodePort, Service("trial", OfType(corev1.ServiceTypeNodePort))},
		{spec.FeatureLoadBalancer, Service("trial", OfType(corev1.ServiceTypeLoadBalancer))},
		{spec.FeatureExternalName, Service("trial", With(func(s *corev1.Service) {
			s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeExternalName, "example.com"
		}))},
		{spec.FeatureHeadlessService, Service("trial", Headless())},
		{spec.FeatureSessionAffinity, Service("trial", With(func(s *corev1.Service) { s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP }))},
	}
}

type trial struct {
	feature string
	service *corev1.Service
}

// FindAdmission asks a candidate what its admission does to Services, by dry runs in a namespace of its own, which it
// removes. Call it before a run. An API server that adds what it should not looks like one with such an
// admission. So the run prints what it found.
//
// accepted are the features whose Services the API server takes, of those that were tried.
func FindAdmission(ctx context.Context, c candidate.Candidate, traffic bool) (found *candidate.Admission, accepted []string, err error) {
	what := c.Describe()
	var lease candidate.ControlPlane
	if traffic { // one that the run needs in any case
		lease, err = c.DataPlane(ctx, candidate.DataPlaneRequest{})
	} else {
		lease, err = c.ControlPlane(ctx, candidate.Request{})
	}
	if err != nil {
		return nil, nil, err
	}
	defer lease.Release()
	cp, err := newControlPlane(lease, &Declaration{Name: "admission"}, "", &what)
	if err != nil {
		return nil, nil, err
	}
	name := "conformance-admission-" + strings.ToLower(rand.Text()[:6])
	cp.spaces = []string{name}
	defer func() {
		cleaning, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
		defer cancel()
		if e := cp.removeNamespaces(cleaning); err == nil {
			err = e
		}
	}()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{candidate.RunLabel: "admission"}}}
	if _, err := candidate.Create(ctx, cp.client.CoreV1().Namespaces(), ns); err != nil {
		return nil, nil, fmt.Errorf("create namespace %s: %w", name, err)
	}
	found = &candidate.Admission{}
	for _, t := range trials() {
		a, err := cp.roundTrip(ctx, http.MethodPost, "/api/v1/namespaces/"+name+"/services", "application/json", encode(t.service), []RequestOption{DryRun()})
		switch {
		case err != nil:
			return nil, nil, err
		case a.Accepted() && a.Service != nil:
			if t.feature != "" {
				accepted = append(accepted, t.feature)
			}
			found.Labels = keysBeside(found.Labels, a.Service.Labels, t.service.Labels)
			found.Annotations = keysBeside(found.Annotations, a.Service.Annotations, t.service.Annotations)
			if t.service.Spec.Type != corev1.ServiceTypeLoadBalancer { // whose finalizers are those of whoever makes load balancers
				found.Finalizers = union(found.Finalizers, a.Service.Finalizers)
			}
		case t.feature == "":
			return nil, nil, fmt.Errorf("a plain Service is refused: %s", a)
		case refusedByAdmission(a) || refusedByPolicy(a):
			if found.Refused == nil {
				found.Refused = map[string]string{}
			}
			found.Refused[t.feature] = a.message()
		}
	}
	if found.Nothing() {
		return nil, accepted, nil
	}
	return found, accepted, nil
}

// keysBeside adds the keys of what was stored that were not sent.
func keysBeside(known []string, stored, sent map[string]string) []string {
	var added []string
	for key := range maps.Keys(stored) {
		if _, ours := sent[key]; !ours {
			added = append(added, key)
		}
	}
	return union(known, added)
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// withoutAdditions takes from a Service what the admission of the candidate adds to all Services. What is left can be
// compared with what was sent. What admission takes away stays away. Services that the request methods return have come
// through here.
func withoutAdditions(svc *corev1.Service) *corev1.Service {
	a := admission()
	if a == nil || svc == nil {
		return svc
	}
	svc.Labels = withoutKeys(svc.Labels, a.Labels)
	svc.Annotations = withoutKeys(svc.Annotations, a.Annotations)
	if svc.Finalizers = slices.DeleteFunc(svc.Finalizers, func(f string) bool { return slices.Contains(a.Finalizers, f) }); len(svc.Finalizers) == 0 {
		svc.Finalizers = nil
	}
	return svc
}

func withoutKeys(m map[string]string, keys []string) map[string]string {
	for _, key := range keys {
		if delete(m, key); len(m) == 0 {
			return nil
		}
	}
	return m
}

// refusedByAdmission reports whether a 403 is that of an admission plugin: one of authorization names the user and says what he cannot do.
func refusedByAdmission(a Response) bool {
	return a.Code == http.StatusForbidden && a.Status != nil && a.Status.Reason == metav1.StatusReasonForbidden &&
		strings.Contains(a.message(), "is forbidden: ") && !strings.Contains(a.message(), `is forbidden: User "`)
}

// refusedFeature is why the admission of the candidate refuses a feature; empty if it does not.
func refusedFeature(feature string) string {
	if a := admission(); a != nil {
		return a.Refused[feature]
	}
	return ""
}
