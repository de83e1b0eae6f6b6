package check

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Response is what the API server says to one request.
type Response struct {
	// Code is the HTTP status code.
	Code int
	// Service is the object in the response, when it is a Service.
	Service *corev1.Service
	// Status is the refusal, when there is one.
	Status *metav1.Status
	// Warnings are the texts of the Warning headers.
	Warnings []string
	// Header and Body are the raw response.
	Header http.Header
	Body   []byte
	// Request describes the request in one line.
	Request string
}

// Accepted reports whether the request succeeded.
func (a Response) Accepted() bool { return a.Code >= 200 && a.Code < 300 }

// String describes the response in one line, for failure messages.
func (a Response) String() string {
	switch {
	case a.Status != nil && a.Status.Status == metav1.StatusFailure:
		return fmt.Sprintf("%s: %d %s: %s", a.Request, a.Code, a.Status.Reason, a.Status.Message)
	case a.Service != nil:
		s := a.Service.Spec
		return fmt.Sprintf("%s: %d, type %s, clusterIPs %v", a.Request, a.Code, s.Type, s.ClusterIPs)
	}
	return fmt.Sprintf("%s: %d", a.Request, a.Code)
}

// message is that of a refusal.
func (a Response) message() string {
	if a.Status == nil {
		return ""
	}
	return a.Status.Message
}

// RequestOption modifies a request.
type RequestOption func(url.Values)

// DryRun asks the server to persist nothing.
func DryRun() RequestOption { return func(q url.Values) { q.Set("dryRun", metav1.DryRunAll) } }

// FieldValidation sets how unknown fields are treated: Ignore, Warn or Strict.
func FieldValidation(v string) RequestOption {
	return func(q url.Values) { q.Set("fieldValidation", v) }
}

// Query sets a query parameter.
func Query(key, value string) RequestOption { return func(q url.Values) { q.Set(key, value) } }

func (cp *ControlPlane) servicePath(svc *corev1.Service) string {
	ns := svc.Namespace
	if ns == "" {
		ns = cp.Namespace()
	}
	return "/api/v1/namespaces/" + ns + "/services"
}

// Path returns the path of a Service of the check's namespace.
func (cp *ControlPlane) Path(name string) string {
	return "/api/v1/namespaces/" + cp.Namespace() + "/services/" + name
}

// Create creates the Service, in the check's namespace unless it names one.
func (cp *ControlPlane) Create(ctx context.Context, svc *corev1.Service, options ...RequestOption) Response {
	ginkgo.GinkgoHelper()
	return cp.Do(ctx, http.MethodPost, cp.servicePath(svc), "application/json", encode(svc), options...)
}

// Update replaces the Service (PUT).
func (cp *ControlPlane) Update(ctx context.Context, svc *corev1.Service, options ...RequestOption) Response {
	ginkgo.GinkgoHelper()
	return cp.Do(ctx, http.MethodPut, cp.servicePath(svc)+"/"+svc.Name, "application/json", encode(svc), options...)
}

// UpdateStatus replaces the status of the Service (PUT on the status subresource).
func (cp *ControlPlane) UpdateStatus(ctx context.Context, svc *corev1.Service, options ...RequestOption) Response {
	ginkgo.GinkgoHelper()
	return cp.Do(ctx, http.MethodPut, cp.servicePath(svc)+"/"+svc.Name+"/status", "application/json", encode(svc), options...)
}

// Patch patches a Service of the check's namespace. body is sent as it stands.
func (cp *ControlPlane) Patch(ctx context.Context, name string, kind types.PatchType, body string, options ...RequestOption) Response {
	ginkgo.GinkgoHelper()
	return cp.Do(ctx, http.MethodPatch, cp.Path(name), string(kind), []byte(body), options...)
}

// MergePatch applies a JSON merge patch (RFC 7386).
func (cp *ControlPlane) MergePatch(ctx context.Context, name, body string, options ...RequestOption) Response {
	ginkgo.GinkgoHelper()
	return cp.Patch(ctx, name, types.MergePatchType, body, options...)
}

// PatchStatus applies a JSON merge patch to the status subresource.
func (cp *ControlPlane) PatchStatus(ctx context.Context, name, body string, options ...RequestOption) Response {
	ginkgo.GinkgoHelper()
	return cp.Do(ctx, http.MethodPatch, cp.Path(name)+"/status", string(types.MergePatchType), []byte(body), options...)
}

// Apply applies a configuration (YAML or JSON) for a field manager (server-side apply).
func (cp *ControlPlane) Apply(ctx context.Context, manager, name, body string, options ...RequestOption) Response {
	ginkgo.GinkgoHelper()
	return cp.Patch(ctx, name, types.ApplyPatchType, body, append(options, Query("fieldManager", manager))...)
}

// Get reads a Service of the check's namespace.
func (cp *ControlPlane) Get(ctx context.Context, name string) Response {
	ginkgo.GinkgoHelper()
	return cp.Do(ctx, http.MethodGet, cp.Path(name), "", nil)
}

// Delete deletes a Service of the check's namespace.
func (cp *ControlPlane) Delete(ctx context.Context, name string, options ...RequestOption) Response {
	ginkgo.GinkgoHelper()
	return cp.Do(ctx, http.MethodDelete, cp.Path(name), "", nil, options...)
}

// List lists the Services of the check's namespace.
func (cp *ControlPlane) List(ctx context.Context, options ...RequestOption) []corev1.Service {
	ginkgo.GinkgoHelper()
	a := cp.Do(ctx, http.MethodGet, cp.Path(""), "", nil, options...)
	var list corev1.ServiceList
	if err := json.Unmarshal(a.Body, &list); err != nil || !a.Accepted() {
		Abort("%s: no list: %v", a, err)
	}
	for i := range list.Items {
		withoutAdditions(&list.Items[i])
	}
	return list.Items
}

// Arrange creates a Service that the check builds upon and returns it as stored. A refusal fails the check.
func (cp *ControlPlane) Arrange(ctx context.Context, svc *corev1.Service) *corev1.Service {
	ginkgo.GinkgoHelper()
	a := cp.Create(ctx, svc)
	if !a.Accepted() {
		ginkgo.Fail(fmt.Sprintf("a Service that the check builds upon was refused: %s", a))
	}
	return a.Service
}

// Do sends any request and returns any response of a server in order that knows the client and his rights; path begins with "/". Overload is waited out, and reads are
// sent again where they were given up. The check is unknown if the server cannot be reached or cannot answer, and if others than the API server refuse. Use it for
// malformed requests and other resources.
func (cp *ControlPlane) Do(ctx context.Context, method, path, contentType string, body []byte, options ...RequestOption) Response {
	ginkgo.GinkgoHelper()
	a, err := cp.Ask(ctx, method, path, contentType, body, options...)
	Must(err)
	return a
}

// Ask is Do whose error says that there is no response, for checks during which a server ends: nobody knows then what became of the request.
func (cp *ControlPlane) Ask(ctx context.Context, method, path, contentType string, body []byte, options ...RequestOption) (Response, error) {
	ginkgo.GinkgoHelper()
	if cp.careful && makesLoadBalancer(body, options) {
		LeaveUnjudged(ByDisruptive, "it would have the cluster make a load balancer, which others could feel and somebody pays for")
	}
	if method != http.MethodGet {
		needClaimed(featuresOf(contentType, body, options))
	}
	for {
		a, err := cp.roundTrip(ctx, method, path, contentType, body, options)
		if err != nil {
			return a, fmt.Errorf("%s %s: %w", method, path, err)
		}
		// A client without that right learns nothing of the candidate. A refusal of the object itself has causes.
		if a.Code == http.StatusForbidden && !NoResponse(a.Code, a.message()) && (a.Status == nil || a.Status.Details == nil || len(a.Status.Details.Causes) == 0) {
			if !refusedByAdmission(a) {
				Abort("%s (fixtures/rbac.yaml has the rights that a run needs)", a)
			}
			Abort("%s (the admission of this API server is configured to refuse that)", a)
		}
		if refusedByPolicy(a) {
			Abort("%s (an admission policy of this cluster refuses that, not its API server)", a)
		}
		if answersOfBackend(path) {
			return a, nil
		}
		switch {
		case a.Code == http.StatusTooManyRequests:
			pause := retryPause
			if s, err := strconv.Atoi(a.Header.Get("Retry-After")); err == nil {
				pause = time.Duration(s) * time.Second
			}
			select {
			case <-ctx.Done():
				return a, fmt.Errorf("%s: %w", a, ctx.Err())
			case <-time.After(pause):
			}
			continue
		case NoResponse(a.Code, a.message()), a.Code == http.StatusUnauthorized:
			return a, withoutResponse{a}
		}
		return a, nil
	}
}

// withoutResponse is the error of a request that a server, or what is in front of it, has no response to.
// candidate.GaveUp tells by the code whether another time may be better.
type withoutResponse struct{ Response }

// Error describes the request and the code.
func (w withoutResponse) Error() string { return w.String() }

// Status implements apierrors.APIStatus, also for what is no API server.
func (w withoutResponse) Status() metav1.Status {
	return metav1.Status{Code: int32(w.Code), Message: w.message()}
}

// refusedByPolicy reports whether an admission webhook or a ValidatingAdmissionPolicy refused a request, or a webhook was not there to be asked. Their codes are
// those of other refusals; the texts are kube-apiserver's own.
func refusedByPolicy(a Response) bool {
	for _, text := range []string{`admission webhook "`, `failed calling webhook "`, "ValidatingAdmissionPolicy '"} {
		if strings.Contains(a.message(), text) {
			return true
		}
	}
	return false
}

// makesLoadBalancer reports whether the request is about a Service of type LoadBalancer for the load balancers of the
// cluster. Whatever its form, the body then has the name of the type in it. It has the field that names an
// implementation only if it leaves the Service to that one.
func makesLoadBalancer(body []byte, options []RequestOption) bool {
	query := url.Values{}
	for _, o := range options {
		o(query)
	}
	return bytes.Contains(body, []byte(corev1.ServiceTypeLoadBalancer)) && !bytes.Contains(body, []byte("loadBalancerClass")) && query.Get("dryRun") == ""
}

func (cp *ControlPlane) roundTrip(ctx context.Context, method, path, contentType string, body []byte, options []RequestOption) (Response, error) {
	target := targetOf(path, options)
	cp.journal.add(entry{server: cp.server, method: method, target: target, contentType: contentType, body: body})
	request, err := http.NewRequestWithContext(ctx, method, cp.base+target, bytes.NewReader(body))
	if err != nil {
		return Response{}, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", cp.agent)
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := cp.http.Do(request)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = errors.Join(cause, err)
		}
		return Response{}, err
	}
	defer response.Body.Close()
	a := Response{Code: response.StatusCode, Header: response.Header, Request: method + " " + target}
	if a.Body, err = io.ReadAll(response.Body); err != nil {
		return Response{}, err
	}
	for _, w := range response.Header.Values("Warning") {
		a.Warnings = append(a.Warnings, warningText(w))
	}
	var kind metav1.TypeMeta
	if json.Unmarshal(a.Body, &kind) == nil {
		switch kind.Kind {
		case "Service":
			a.Service = &corev1.Service{}
			err = json.Unmarshal(a.Body, a.Service)
			withoutAdditions(a.Service)
		case "Status":
			a.Status = &metav1.Status{}
			err = json.Unmarshal(a.Body, a.Status)
		}
	}
	return a, err
}

// targetOf is a path with the parameters of the options.
func targetOf(path string, options []RequestOption) string {
	query := url.Values{}
	for _, o := range options {
		o(query)
	}
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// warningText takes the text out of a Warning header: code agent "text" (RFC 7234, section 5.5).
func warningText(header string) string {
	for i := range header {
		if header[i] == '"' {
			if text, err := strconv.Unquote(header[i:]); err == nil {
				return text
			}
			return header[i:]
		}
	}
	return header
}

func encode(svc *corev1.Service) []byte {
	svc = svc.DeepCopy()
	svc.APIVersion, svc.Kind = "v1", "Service"
	data, err := json.Marshal(svc)
	Must(err)
	return bytes.Replace(data, []byte(`,"status":{"loadBalancer":{}}`), nil, 1) // says nothing, and is in the way of a reader
}
