package apischema

import (
	"bytes"
	"context"
	"mime"
	"net/http"
	"strings"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/service-conformance/conformance/framework/candidate/apiclient"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// contentResponse is a response in whatever encoding was asked for.
type contentResponse struct {
	code  int
	media string // without parameters
	body  []byte
}

// contentRequest sends a request with the given Content-Type and Accept headers. Without a response the check is unknown.
func contentRequest(ctx context.Context, cp *check.ControlPlane, method, path, contentType, accept string, body []byte) contentResponse {
	ginkgo.GinkgoHelper()
	client := cp.Client().CoreV1().RESTClient().(*rest.RESTClient)
	request, err := http.NewRequestWithContext(ctx, method, client.Verb(method).AbsPath(path).URL().String(), bytes.NewReader(body))
	check.Must(err)
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	request.Header.Set("Accept", accept)
	response, err := client.Client.Do(request)
	check.Must(err)
	defer response.Body.Close()
	var b bytes.Buffer
	_, err = b.ReadFrom(response.Body)
	check.Must(err)
	if check.NoResponse(response.StatusCode, b.String()) {
		check.Abort("%s %s: %d: %s", method, path, response.StatusCode, b.String())
	}
	media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	return contentResponse{code: response.StatusCode, media: media, body: b.Bytes()}
}

// contentProtobuf reads and writes protobuf with the envelope that Kubernetes puts around it.
func contentProtobuf() runtime.Serializer {
	return protobuf.NewSerializer(apiclient.Scheme(), apiclient.Scheme())
}

var _ = ginkgo.Describe("the content type", func() {
	check.It(spec.APIContentJSON, "JSON is read and written",
		func(ctx context.Context, cp *check.ControlPlane) {
			body := objectBody(`"apiVersion":"v1","kind":"Service",`, "encoded")
			for _, accept := range []string{"application/json", "*/*", "text/html, application/json;q=0.9"} {
				a := contentRequest(ctx, cp, http.MethodPost, objectCollection(cp), "application/json", accept, body)
				Expect(a.code).To(Equal(http.StatusCreated), "Accept: %s: %s", accept, a.body)
				Expect(a.media).To(Equal("application/json"), "Accept: %s", accept)
				Expect(a.body).To(ContainSubstring(`"encoded"`))
				Expect(cp.Delete(ctx, "encoded")).To(check.BeAccepted())
			}
		})

	check.It(spec.APIContentYaml, "YAML is read and written",
		func(ctx context.Context, cp *check.ControlPlane) {
			body := "# a comment\napiVersion: v1\nkind: Service\nmetadata: {name: encoded, labels: {quoted: 'yes'}}\nspec:\n  ports:\n  - port: 80\n"
			a := contentRequest(ctx, cp, http.MethodPost, objectCollection(cp), "application/yaml", "application/yaml", []byte(body))
			Expect(a.code).To(Equal(http.StatusCreated), "%s", a.body)
			Expect(a.media).To(Equal("application/yaml"))
			var svc corev1.Service
			Expect(yaml.UnmarshalStrict(a.body, &svc)).To(Succeed(), "%s", a.body)
			Expect(strings.TrimSpace(string(a.body))).NotTo(HavePrefix("{"), "YAML for people, not JSON")
			Expect(cp.Get(ctx, "encoded").Service).To(And(HaveField("Labels", Equal(map[string]string{"quoted": "yes"})), HaveField("Spec", svc.Spec)))
		})

	check.It(spec.APIContentProtobuf, "protobuf is read and written without loss",
		func(ctx context.Context, cp *check.ControlPlane) {
			sent := check.Service("encoded", check.WithPorts(
				check.Port("dns", corev1.ProtocolUDP, 53, 5353), check.Port("dns-tcp", corev1.ProtocolTCP, 53, 5354)), check.With(func(s *corev1.Service) {
				s.APIVersion, s.Kind = "v1", "Service"
				s.Annotations = map[string]string{"note": "ünïcode"}
				if cp.Claims(spec.FeatureSessionAffinity) {
					timeout := int32(99)
					s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
					s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &timeout}}
				}
			}))
			const media = runtime.ContentTypeProtobuf
			body, err := runtime.Encode(contentProtobuf(), sent)
			check.Must(err)
			a := contentRequest(ctx, cp, http.MethodPost, objectCollection(cp), media, media, body)
			Expect(a.code).To(Equal(http.StatusCreated), "%q", a.body)
			Expect(a.media).To(Equal(media))
			decoded, err := runtime.Decode(contentProtobuf(), a.body)
			Expect(err).NotTo(HaveOccurred())
			Expect(decoded).To(BeAssignableToTypeOf(sent))
			stored := cp.Get(ctx, "encoded").Service // as JSON
			Expect(stored).NotTo(BeNil())
			Expect(decoded.(*corev1.Service).Spec).To(Equal(stored.Spec))
			Expect(stored.Spec.Ports).To(Equal(sent.Spec.Ports))
			Expect(stored.Spec.SessionAffinityConfig).To(Equal(sent.Spec.SessionAffinityConfig))
			Expect(stored.Annotations).To(Equal(sent.Annotations))
		})

	check.It(spec.APIContentProtobuf, "protobuf carries lists and refusals",
		func(ctx context.Context, cp *check.ControlPlane) {
			cp.Arrange(ctx, check.Service("encoded"))
			const media = runtime.ContentTypeProtobuf
			a := contentRequest(ctx, cp, http.MethodGet, objectCollection(cp), "", media, nil)
			Expect(a.code).To(Equal(http.StatusOK))
			list, err := runtime.Decode(contentProtobuf(), a.body)
			Expect(err).NotTo(HaveOccurred())
			Expect(list).To(HaveField("Items", HaveExactElements(HaveField("Name", "encoded"))))
			a = contentRequest(ctx, cp, http.MethodGet, cp.Path("missing"), "", media, nil)
			Expect(a.code).To(Equal(http.StatusNotFound))
			status, err := runtime.Decode(contentProtobuf(), a.body)
			Expect(err).NotTo(HaveOccurred())
			Expect(status).To(HaveField("Reason", BeEquivalentTo("NotFound")))
		})

	check.It(spec.APIContentUnsupported, "of a body may not be any other",
		func(ctx context.Context, cp *check.ControlPlane) {
			cp.Arrange(ctx, check.Service("encoded"))
			for _, c := range []struct{ method, path, media string }{
				{http.MethodPost, objectCollection(cp), "text/plain"},
				{http.MethodPost, objectCollection(cp), "application/xml"},
				{http.MethodPut, cp.Path("encoded"), "text/plain"},
				{http.MethodPatch, cp.Path("encoded"), "application/json"},
				{http.MethodPatch, cp.Path("encoded"), "text/plain"},
			} {
				a := cp.Do(ctx, c.method, c.path, c.media, []byte(`{}`))
				Expect(a).To(check.BeRefusedWith(http.StatusUnsupportedMediaType, "UnsupportedMediaType"), "%s %s", c.method, c.media)
			}
			Expect(cp.Patch(ctx, "encoded", types.MergePatchType, `{}`)).To(check.BeAccepted())
		})

	check.It(spec.APIAcceptUnsupported, "of an answer may not be any other",
		func(ctx context.Context, cp *check.ControlPlane) {
			for _, accept := range []string{"text/csv", "application/xml"} {
				Expect(contentRequest(ctx, cp, http.MethodGet, objectCollection(cp), "", accept, nil).code).To(Equal(http.StatusNotAcceptable), "Accept: %s", accept)
			}
		})
})
