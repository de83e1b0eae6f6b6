package check

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/spec"
)

// administered is a candidate whose API server stores what admit makes of a Service, or refuses with what admit says.
type administered struct {
	admit    func(*corev1.Service) (code int, message string)
	server   *httptest.Server
	released bool
	requests []string
}

func (a *administered) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.requests = append(a.requests, r.Method+" "+r.URL.String())
	w.Header().Set("Content-Type", "application/json")
	body, _ := io.ReadAll(r.Body)
	var svc corev1.Service
	if r.Method != http.MethodPost || strings.HasSuffix(r.URL.Path, "/namespaces") || json.Unmarshal(body, &svc) != nil {
		_, _ = w.Write([]byte(`{"kind":"Namespace","apiVersion":"v1"}`))
		return
	}
	if code, message := a.admit(&svc); code != 0 {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: metav1.StatusReasonForbidden, Message: message,
		})
		return
	}
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(svc)
}

func (a *administered) Describe() candidate.Description {
	return candidate.Description{Implementation: "stub", Admission: &candidate.Admission{}}
}
func (a *administered) ControlPlane(context.Context, candidate.Request) (candidate.ControlPlane, error) {
	return a, nil
}
func (a *administered) DataPlane(context.Context, candidate.DataPlaneRequest) (candidate.DataPlane, error) {
	return nil, candidate.Unavailable("no nodes")
}
func (a *administered) Close(context.Context) error                    { return nil }
func (a *administered) Access() candidate.Access                       { return candidate.Access{URL: a.server.URL} }
func (a *administered) ServiceCIDRs() []netip.Prefix                   { return nil }
func (a *administered) NodePorts() (first, last int)                   { return 30000, 32767 }
func (a *administered) Restart(context.Context, ...netip.Prefix) error { return nil }
func (a *administered) AnotherServer(context.Context, map[string]bool) (candidate.Access, error) {
	return candidate.Access{}, nil
}
func (a *administered) Release() { a.released = true }

func find(t *testing.T, admit func(*corev1.Service) (int, string)) (*candidate.Admission, *administered, error) {
	t.Helper()
	a := &administered{admit: admit}
	a.server = httptest.NewServer(a)
	t.Cleanup(a.server.Close)
	found, _, err := FindAdmission(t.Context(), a, false)
	return found, a, err
}

func TestWhatAdmissionAddsIsFound(t *testing.T) {
	found, a, err := find(t, func(s *corev1.Service) (int, string) {
		s.Labels = map[string]string{"team": "platform", "name": s.Name}
		s.Annotations = map[string]string{"owner": "platform"}
		s.Finalizers = []string{"example.com/guard"}
		if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
			s.Finalizers = []string{"service.kubernetes.io/load-balancer-cleanup"}
		}
		return 0, ""
	})
	if err != nil || !slices.Equal(found.Labels, []string{"name", "team"}) || !slices.Equal(found.Annotations, []string{"owner"}) ||
		!slices.Equal(found.Finalizers, []string{"example.com/guard"}) || len(found.Refused) > 0 {
		t.Errorf("found %+v, %v", found, err)
	}
	if lines := found.Lines(); len(lines) != 1 || !strings.Contains(lines[0], "label name, label team, annotation owner, finalizer example.com/guard") {
		t.Errorf("told as %q", lines)
	}
	if !a.released {
		t.Error("the control plane was not given back")
	}
	for _, r := range a.requests {
		if strings.HasPrefix(r, "POST") && strings.Contains(r, "/services") && !strings.Contains(r, "dryRun=All") {
			t.Errorf("%s is no dry run", r)
		}
	}
	if last := a.requests[len(a.requests)-1]; !strings.HasPrefix(last, "DELETE /api/v1/namespaces/conformance-admission-") {
		t.Errorf("the namespace was not removed; the last request was %s", last)
	}
}

func TestWhatAdmissionRefusesIsFoundAndRightsThatAreMissingAreNot(t *testing.T) {
	refuses := func(message string) func(*corev1.Service) (int, string) {
		return func(s *corev1.Service) (int, string) {
			if len(s.Spec.ExternalIPs) > 0 {
				return http.StatusForbidden, message
			}
			return 0, ""
		}
	}
	const plugin = `services "trial" is forbidden: Use of external IPs is denied by admission control`
	found, _, err := find(t, refuses(plugin))
	if err != nil || len(found.Refused) != 1 || found.Refused[spec.FeatureExternalIPs] != plugin || len(found.Labels) > 0 {
		t.Errorf("a plugin: %+v, %v", found, err)
	}
	found, _, err = find(t, refuses(`services is forbidden: User "somebody" cannot create resource "services" in API group ""`))
	if err != nil || found != nil {
		t.Errorf("missing rights: %+v, %v", found, err)
	}
	found, _, err = find(t, func(*corev1.Service) (int, string) { return 0, "" })
	if err != nil || found != nil {
		t.Errorf("an API server as Kubernetes has it: %+v, %v", found, err)
	}
	if _, _, err = find(t, func(*corev1.Service) (int, string) { return http.StatusForbidden, plugin }); err == nil {
		t.Error("one that refuses every Service was taken for one that refuses features")
	}
}

func TestAdditionsAreAllowedForAndNothingElse(t *testing.T) {
	setup.admission = &candidate.Admission{Labels: []string{"team"}, Annotations: []string{"owner"}, Finalizers: []string{"guard"}}
	defer func() { setup.admission = nil }()
	svc := withoutAdditions(&corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{"team": "platform", "ours": "1"}, Annotations: map[string]string{"owner": "platform"}, Finalizers: []string{"guard", "other"},
	}})
	if len(svc.Labels) != 1 || svc.Labels["ours"] != "1" || svc.Annotations != nil || !slices.Equal(svc.Finalizers, []string{"other"}) {
		t.Errorf("left is %+v", svc.ObjectMeta)
	}
	if svc := withoutAdditions(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"alien": "1"}}}); len(svc.Labels) != 1 {
		t.Error("a label that admission does not add to every Service was allowed")
	}
}

func TestARefusedFeatureIsNotClaimed(t *testing.T) {
	setup.admission = &candidate.Admission{Refused: map[string]string{spec.FeatureExternalIPs: "no external IPs here"}}
	defer func() { setup.admission = nil }()
	if claimed(spec.FeatureExternalIPs) || !claimed(spec.FeatureNodePort) {
		t.Error("what is refused counts as claimed, or what is not does not")
	}
	d := Declaration{Requirements: []spec.ID{spec.ProxyExternalIPReachable}}
	if why := inapplicable(&candidate.Description{}, &d); !strings.Contains(why, "no external IPs here") {
		t.Errorf("its checks: %q", why)
	}
	if why := inapplicable(&candidate.Description{}, &Declaration{Requirements: []spec.ID{spec.ProxyClusterIPReachable}}); why != "" {
		t.Errorf("others: %q", why)
	}
}
