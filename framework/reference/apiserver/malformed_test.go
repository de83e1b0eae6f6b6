package apiserver

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func readerOf(body string) io.Reader {
	if body == "" {
		return nil
	}
	return strings.NewReader(body)
}

const (
	serviceA = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"ports":[{"port":80}]}}`
	svcPath  = "/api/v1/namespaces/default/services"
)

// The codes and reasons are those of kube-apiserver v1.37.1, with two exceptions. It answers some malformed input with
// 500 or not at all (its library panics at two tests of a JSON patch). It takes some missing values for null.
func TestMalformedRequestsGetAStatus(t *testing.T) {
	s := startServer(t, Options{})
	if resp, body := send(t, s, "POST", svcPath, mediaJSON, serviceA); resp.StatusCode != http.StatusCreated {
		t.Fatalf("%s: %s", resp.Status, body)
	}
	const (
		jsonPatch  = "application/json-patch+json"
		mergePatch = "application/merge-patch+json"
		strategic  = "application/strategic-merge-patch+json"
		apply      = "application/apply-patch+yaml"
	)
	for _, c := range []struct {
		name, method, path, contentType, body string
		code                                  int
		reason                                metav1.StatusReason
	}{
		{"broken JSON", "POST", svcPath, mediaJSON, `{`, 400, metav1.StatusReasonBadRequest},
		{"empty body", "POST", svcPath, mediaJSON, ``, 400, metav1.StatusReasonBadRequest},
		{"array", "POST", svcPath, mediaJSON, `[]`, 400, metav1.StatusReasonBadRequest},
		{"broken YAML", "POST", svcPath, mediaYAML, "a: [\n", 400, metav1.StatusReasonBadRequest},
		{"broken protobuf", "POST", svcPath, mediaProtobuf, "k8s\x00junk", 400, metav1.StatusReasonBadRequest},
		{"wrong JSON type", "POST", svcPath, mediaJSON, `{"spec":{"ports":[{"port":"80"}]}}`, 400, metav1.StatusReasonBadRequest},
		{"wrong apiVersion", "POST", svcPath, mediaJSON, `{"apiVersion":"v2","kind":"Service"}`, 400, metav1.StatusReasonBadRequest},
		{"wrong kind", "POST", svcPath, mediaJSON, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`, 400, metav1.StatusReasonBadRequest},
		{"list", "POST", svcPath, mediaJSON, `{"apiVersion":"v1","kind":"ServiceList","items":[]}`, 400, metav1.StatusReasonBadRequest},
		{"no name", "POST", svcPath, mediaJSON, `{"spec":{"ports":[{"port":1}]}}`, 422, metav1.StatusReasonInvalid},
		{"unknown field, strict", "POST", svcPath + "?fieldValidation=Strict", mediaJSON, `{"metadata":{"name":"x"},"foo":1}`, 400, metav1.StatusReasonBadRequest},
		{"duplicate field, strict", "POST", svcPath + "?fieldValidation=Strict", mediaJSON, `{"metadata":{"name":"x","name":"y"}}`, 400, metav1.StatusReasonBadRequest},
		{"bad fieldValidation", "POST", svcPath + "?fieldValidation=Maybe", mediaJSON, serviceA, 422, metav1.StatusReasonInvalid},
		{"bad dryRun", "POST", svcPath + "?dryRun=Some", mediaJSON, serviceA, 422, metav1.StatusReasonInvalid},
		{"long manager", "POST", svcPath + "?fieldManager=" + strings.Repeat("x", 129), mediaJSON, serviceA, 422, metav1.StatusReasonInvalid},
		{"resourceVersion on create", "POST", svcPath, mediaJSON, `{"metadata":{"name":"x","resourceVersion":"5"}}`, 400, metav1.StatusReasonBadRequest},
		{"other namespace", "POST", svcPath, mediaJSON, `{"metadata":{"name":"x","namespace":"kube-system"}}`, 400, metav1.StatusReasonBadRequest},
		{"missing namespace", "POST", "/api/v1/namespaces/nope/services", mediaJSON, serviceA, 404, metav1.StatusReasonNotFound},
		{"exists", "POST", svcPath, mediaJSON, serviceA, 409, metav1.StatusReasonAlreadyExists},
		{"media type", "POST", svcPath, "text/plain", serviceA, 415, metav1.StatusReasonUnsupportedMediaType},
		{"broken media type", "POST", svcPath, ";;", serviceA, 415, metav1.StatusReasonUnsupportedMediaType},
		{"too large", "POST", svcPath, mediaJSON, strings.Repeat(" ", maxBody+1), 413, metav1.StatusReasonRequestEntityTooLarge},
		{"missing", "GET", svcPath + "/nope", "", "", 404, metav1.StatusReasonNotFound},
		{"name differs from URL", "PUT", svcPath + "/a", mediaJSON, strings.Replace(serviceA, `"a"`, `"b"`, 1), 400, metav1.StatusReasonBadRequest},
		{"no name in PUT", "PUT", svcPath + "/a", mediaJSON, `{"spec":{"ports":[{"port":1}]}}`, 400, metav1.StatusReasonBadRequest},
		{"stale resourceVersion", "PUT", svcPath + "/a", mediaJSON, strings.Replace(serviceA, `"a"`, `"a","resourceVersion":"1"`, 1), 409, metav1.StatusReasonConflict},
		{"junk resourceVersion", "PUT", svcPath + "/a", mediaJSON, strings.Replace(serviceA, `"a"`, `"a","resourceVersion":"x"`, 1), 400, metav1.StatusReasonBadRequest},
		{"other UID", "PUT", svcPath + "/a", mediaJSON, strings.Replace(serviceA, `"a"`, `"a","uid":"x"`, 1), 409, metav1.StatusReasonConflict},
		{"UID of one that is gone", "PUT", svcPath + "/gone", mediaJSON, strings.Replace(serviceA, `"a"`, `"gone","uid":"x"`, 1), 409, metav1.StatusReasonConflict},

		{"patch without type", "PATCH", svcPath + "/a", "", `{}`, 415, metav1.StatusReasonUnsupportedMediaType},
		{"patch as JSON", "PATCH", svcPath + "/a", mediaJSON, `{}`, 415, metav1.StatusReasonUnsupportedMediaType},
		{"patch of nothing", "PATCH", svcPath + "/nope", mergePatch, `{}`, 404, metav1.StatusReasonNotFound},
		{"JSON patch: object", "PATCH", svcPath + "/a", jsonPatch, `{}`, 400, metav1.StatusReasonBadRequest},
		{"JSON patch: operation", "PATCH", svcPath + "/a", jsonPatch, `[{"op":"fly","path":"/a"}]`, 422, metav1.StatusReasonInvalid},
		{"JSON patch: path", "PATCH", svcPath + "/a", jsonPatch, `[{"op":"remove","path":"/spec/nope"}]`, 422, metav1.StatusReasonInvalid},
		{"JSON patch: test", "PATCH", svcPath + "/a", jsonPatch, `[{"op":"test","path":"/spec/type","value":"x"}]`, 422, metav1.StatusReasonInvalid},
		{"JSON patch: test of the whole without value", "PATCH", svcPath + "/a", jsonPatch, `[{"op":"test","path":""}]`, 422, metav1.StatusReasonInvalid},
		{"JSON patch: test for null in an array", "PATCH", svcPath + "/a", jsonPatch, `[{"op":"test","path":"/spec/clusterIPs","value":[null]}]`, 422, metav1.StatusReasonInvalid},
		{"JSON patch: add without value", "PATCH", svcPath + "/a", jsonPatch, `[{"op":"add","path":"/spec/ports/0/name"}]`, 422, metav1.StatusReasonInvalid},
		{"JSON patch: type", "PATCH", svcPath + "/a", jsonPatch, `[{"op":"replace","path":"/spec/ports","value":"x"}]`, 422, metav1.StatusReasonInvalid},
		{"JSON patch: kind", "PATCH", svcPath + "/a", jsonPatch, `[{"op":"replace","path":"/kind","value":"Pod"}]`, 422, metav1.StatusReasonInvalid},
		{"JSON patch: name", "PATCH", svcPath + "/a", jsonPatch, `[{"op":"replace","path":"/metadata/name","value":"b"}]`, 400, metav1.StatusReasonBadRequest},
		{"JSON patch: too many", "PATCH", svcPath + "/a", jsonPatch, "[" + strings.Repeat(`{"op":"test","path":"/kind"},`, maxPatchOperations) + `{"op":"test","path":"/kind"}]`, 413, metav1.StatusReasonRequestEntityTooLarge},
		{"JSON patch: strict", "PATCH", svcPath + "/a?fieldValidation=Strict", jsonPatch, `[{"op":"add","path":"/spec/foo","value":1}]`, 422, metav1.StatusReasonInvalid},
		{"merge patch: broken", "PATCH", svcPath + "/a", mergePatch, `{`, 400, metav1.StatusReasonBadRequest},
		{"merge patch: null", "PATCH", svcPath + "/a", mergePatch, `null`, 400, metav1.StatusReasonBadRequest},
		{"merge patch: array", "PATCH", svcPath + "/a", mergePatch, `[]`, 400, metav1.StatusReasonBadRequest},
		{"merge patch: no metadata", "PATCH", svcPath + "/a", mergePatch, `{"metadata":null}`, 400, metav1.StatusReasonBadRequest},
		{"merge patch: UID", "PATCH", svcPath + "/a", mergePatch, `{"metadata":{"uid":"x"}}`, 422, metav1.StatusReasonInvalid},
		{"merge patch: stale", "PATCH", svcPath + "/a", mergePatch, `{"metadata":{"resourceVersion":"1"}}`, 409, metav1.StatusReasonConflict},
		{"strategic: no key", "PATCH", svcPath + "/a", strategic, `{"spec":{"ports":[{"name":"x"}]}}`, 422, metav1.StatusReasonInvalid},
		{"strategic: directive", "PATCH", svcPath + "/a", strategic, `{"spec":{"$patch":"fly"}}`, 422, metav1.StatusReasonInvalid},
		{"strategic: retainKeys", "PATCH", svcPath + "/a", strategic, `{"spec":{"$retainKeys":1}}`, 400, metav1.StatusReasonBadRequest},
		{"strategic: strict", "PATCH", svcPath + "/a?fieldValidation=Strict", strategic, `{"spec":{"foo":1}}`, 422, metav1.StatusReasonInvalid},
		{"force without apply", "PATCH", svcPath + "/a?force=true", mergePatch, `{}`, 422, metav1.StatusReasonInvalid},
		{"apply: no manager", "PATCH", svcPath + "/a", apply, serviceA, 422, metav1.StatusReasonInvalid},
		{"apply: broken", "PATCH", svcPath + "/a?fieldManager=m", apply, `{`, 400, metav1.StatusReasonBadRequest},
		{"apply: empty", "PATCH", svcPath + "/a?fieldManager=m", apply, ``, 400, metav1.StatusReasonBadRequest},
		{"apply: list", "PATCH", svcPath + "/a?fieldManager=m", apply, `[]`, 400, metav1.StatusReasonBadRequest},
		{"apply: kind", "PATCH", svcPath + "/a?fieldManager=m", apply, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`, 400, metav1.StatusReasonBadRequest},
		{"apply: name", "PATCH", svcPath + "/a?fieldManager=m", apply, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"b"}}`, 400, metav1.StatusReasonBadRequest},
		{"apply: no name", "PATCH", svcPath + "/new?fieldManager=m", apply, `{"apiVersion":"v1","kind":"Service"}`, 400, metav1.StatusReasonBadRequest},
		{"apply: unknown field", "PATCH", svcPath + "/a?fieldManager=m", apply, strings.Replace(serviceA, `"ports"`, `"foo":1,"ports"`, 1), 400, metav1.StatusReasonBadRequest},
		{"apply: duplicate key", "PATCH", svcPath + "/a?fieldManager=m", apply, strings.Replace(serviceA, `{"port":80}`, `{"port":80},{"port":80,"protocol":"TCP"}`, 1), 400, metav1.StatusReasonBadRequest},
		{"apply: duplicate field, strict", "PATCH", svcPath + "/a?fieldManager=m&fieldValidation=Strict", apply, "apiVersion: v1\nkind: Service\nkind: Service\nmetadata: {name: a}\n", 400, metav1.StatusReasonBadRequest},
		{"apply: metadata", "PATCH", svcPath + "/a?fieldManager=m", apply, `{"apiVersion":"v1","kind":"Service","metadata":"a"}`, 400, metav1.StatusReasonBadRequest},
		{"apply: managed fields", "PATCH", svcPath + "/a?fieldManager=m", apply, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","managedFields":[{}]}}`, 400, metav1.StatusReasonBadRequest},

		{"limit", "GET", svcPath + "?limit=x", "", "", 400, metav1.StatusReasonBadRequest},
		{"label selector", "GET", svcPath + "?labelSelector=a+b+c", "", "", 400, metav1.StatusReasonBadRequest},
		{"field selector", "GET", svcPath + "?fieldSelector=spec.foo%3Da", "", "", 400, metav1.StatusReasonBadRequest},
		{"field selector syntax", "GET", svcPath + "?fieldSelector=a", "", "", 400, metav1.StatusReasonBadRequest},
		{"continue", "GET", svcPath + "?continue=x", "", "", 400, metav1.StatusReasonBadRequest},
		{"resourceVersion", "GET", svcPath + "?resourceVersion=-1", "", "", 400, metav1.StatusReasonBadRequest},
		{"future", "GET", svcPath + "?resourceVersion=99999", "", "", 504, metav1.StatusReasonTimeout},
		{"past", "GET", svcPath + "?resourceVersion=1&resourceVersionMatch=Exact", "", "", 410, metav1.StatusReasonExpired},
		{"match without version", "GET", svcPath + "?resourceVersionMatch=Exact", "", "", 422, metav1.StatusReasonInvalid},
		{"initial events of a list", "GET", svcPath + "?sendInitialEvents=true", "", "", 422, metav1.StatusReasonInvalid},
		{"watch version", "GET", svcPath + "?watch=1&resourceVersion=x", "", "", 400, metav1.StatusReasonBadRequest},

		{"delete body", "DELETE", svcPath + "/a", mediaJSON, `{`, 400, metav1.StatusReasonBadRequest},
		{"delete kind", "DELETE", svcPath + "/a", mediaJSON, serviceA, 400, metav1.StatusReasonBadRequest},
		{"delete policy", "DELETE", svcPath + "/a?propagationPolicy=x", "", "", 422, metav1.StatusReasonInvalid},
		{"delete UID", "DELETE", svcPath + "/a", mediaJSON, `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"x"}}`, 409, metav1.StatusReasonConflict},
		{"delete version", "DELETE", svcPath + "/a", mediaJSON, `{"preconditions":{"resourceVersion":"1"}}`, 409, metav1.StatusReasonConflict},
		{"delete missing", "DELETE", svcPath + "/nope", "", "", 404, metav1.StatusReasonNotFound},
		{"delete default", "DELETE", "/api/v1/namespaces/default", "", "", 403, metav1.StatusReasonForbidden},

		{"unknown path", "GET", "/nope", "", "", 404, metav1.StatusReasonNotFound},
		{"unknown resource", "GET", "/api/v1/foos", "", "", 404, metav1.StatusReasonNotFound},
		{"unknown group", "GET", "/apis/foo", "", "", 404, metav1.StatusReasonNotFound},
		{"unknown version", "GET", "/apis/discovery.k8s.io/v9/endpointslices", "", "", 404, metav1.StatusReasonNotFound},
		{"unknown subresource", "GET", svcPath + "/a/foo", "", "", 404, metav1.StatusReasonNotFound},
		{"empty segment", "GET", "/api/v1/namespaces//services", "", "", 404, metav1.StatusReasonNotFound},
		{"PUT on collection", "PUT", svcPath, mediaJSON, serviceA, 405, metav1.StatusReasonMethodNotAllowed},
		{"POST across namespaces", "POST", "/api/v1/services", mediaJSON, serviceA, 405, metav1.StatusReasonMethodNotAllowed},
		{"POST on object", "POST", svcPath + "/a", mediaJSON, serviceA, 405, metav1.StatusReasonMethodNotAllowed},
		{"delete status", "DELETE", svcPath + "/a/status", "", "", 405, metav1.StatusReasonMethodNotAllowed},
		{"delete all namespaces", "DELETE", "/api/v1/namespaces", "", "", 405, metav1.StatusReasonMethodNotAllowed},
		{"strange method", "FLY", svcPath, "", "", 405, metav1.StatusReasonMethodNotAllowed},
		{"POST on version", "POST", "/version", mediaJSON, `{}`, 405, metav1.StatusReasonMethodNotAllowed},
		{"proxy", "GET", svcPath + "/a/proxy/x/y", "", "", 503, metav1.StatusReasonServiceUnavailable},
		{"proxy to a port of nothing", "GET", svcPath + "/nope:80/proxy", "", "", 404, metav1.StatusReasonNotFound},
		{"proxy name", "GET", svcPath + "/a:b:c:d/proxy", "", "", 400, metav1.StatusReasonBadRequest},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, body := send(t, s, c.method, c.path, c.contentType, c.body)
			var status metav1.Status
			if err := json.Unmarshal([]byte(body), &status); err != nil || status.Kind != "Status" || status.APIVersion != "v1" {
				t.Fatalf("no Status: %s: %s", resp.Status, body)
			}
			if resp.StatusCode != c.code || status.Code != int32(c.code) || status.Reason != c.reason || status.Status != metav1.StatusFailure {
				t.Errorf("want %d %s, got %s %+v", c.code, c.reason, resp.Status, status)
			}
			if status.Message == "" {
				t.Error("no message")
			}
		})
	}
	if _, body := send(t, s, "GET", svcPath+"/a", "", ""); !strings.Contains(body, `"name":"a"`) {
		t.Errorf("a refused request changed the Service: %s", body)
	}
}

func TestNothingAcceptableIsRefused(t *testing.T) {
	s := startServer(t, Options{})
	for accept, want := range map[string]int{
		"":                            200,
		"*/*":                         200,
		"application/*":               200,
		"text/html, application/yaml": 200,
		"text/html":                   406,
		"application/json;as=Table;v=v1;g=meta.k8s.io":                     200,
		"application/json;as=Nonsense;v=v1;g=meta.k8s.io":                  406,
		"application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io":  406,
		"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io":     406,
		"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io": 200,
		";;,,": 406,
	} {
		resp, body, err := trySend(t.Context(), s, "GET", svcPath, map[string]string{"Accept": accept}, "")
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != want {
			t.Errorf("Accept: %s: want %d, got %s: %s", accept, want, resp.Status, body)
		}
	}
}
