package apiserver

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newFuzzServer makes a server that is called directly, without a network.
func newFuzzServer(f *testing.F) *Server {
	s, err := New(Options{ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd00:10:96::/108")}, Seed: 1})
	if err != nil {
		f.Fatal(err)
	}
	return s
}

// checkAnswer demands what holds for every answer: no panic, no 500 but for an exhausted range, and a Status for every refusal.
func checkAnswer(t *testing.T, r *http.Request, w *httptest.ResponseRecorder) {
	t.Helper()
	if w.Code < 400 {
		return
	}
	var status metav1.Status
	if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil || status.Kind != "Status" || status.APIVersion != "v1" ||
		status.Status != metav1.StatusFailure || int(status.Code) != w.Code || status.Message == "" {
		t.Fatalf("%s %s: %d without a proper Status (%v): %s", r.Method, r.URL, w.Code, err, w.Body)
	}
	if w.Code == http.StatusInternalServerError && !strings.Contains(status.Message, "full") {
		t.Fatalf("%s %s: %s", r.Method, r.URL, w.Body)
	}
}

// FuzzRequest sends anything anywhere.
func FuzzRequest(f *testing.F) {
	for _, seed := range []struct{ method, target, contentType, body string }{
		{"POST", svcPath, mediaJSON, serviceA},
		{"POST", svcPath + "?dryRun=All&fieldValidation=Strict", mediaYAML, "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 1}]}"},
		{"POST", svcPath, mediaProtobuf, "k8s\x00\n\r\n\x02v1\x12\aService\x12\x05\n\x03\n\x01a\x1a\x00\"\x00"},
		{"PUT", svcPath + "/a", mediaJSON, serviceA},
		{"PUT", svcPath + "/a/status", mediaJSON, serviceA},
		{"GET", svcPath + "?limit=1&labelSelector=a%3Db&fieldSelector=spec.type%3DClusterIP", "", ""},
		{"GET", svcPath + "?limit=1&continue=eyJydiI6MSwic3RhcnQiOiJhIn0", "", ""},
		{"GET", "/api/v1/services?resourceVersion=1&resourceVersionMatch=Exact&pretty=1", "", ""},
		{"DELETE", svcPath + "/a", mediaJSON, `{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0,"preconditions":{"uid":"x"}}`},
		{"DELETE", svcPath + "?labelSelector=a", "", ""},
		{"POST", "/api/v1/namespaces", mediaJSON, `{"metadata":{"generateName":"x-"}}`},
		{"PUT", "/api/v1/namespaces/x/finalize", mediaJSON, `{"metadata":{"name":"x"},"spec":{"finalizers":["a/b"]}}`},
		{"DELETE", "/api/v1/namespaces/x", "", ""},
		{"POST", "/api/v1/namespaces/default/pods", mediaJSON, `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`},
		{"POST", "/api/v1/nodes", mediaJSON, `{"metadata":{"name":"n"},"status":{"addresses":[{"type":"InternalIP","address":"1.2.3.4"}]}}`},
		{"POST", "/api/v1/namespaces/default/endpoints", mediaJSON, `{"metadata":{"name":"e"},"subsets":[{"addresses":[{"ip":"1.2.3.4"}],"ports":[{"port":1}]}]}`},
		{"POST", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", mediaJSON, `{"metadata":{"name":"s"},"addressType":"IPv4","endpoints":[{"addresses":["1.2.3.4"]}],"ports":[{"port":1}]}`},
		{"POST", "/apis/networking.k8s.io/v1/servicecidrs", mediaJSON, `{"metadata":{"name":"c"},"spec":{"cidrs":["10.97.0.0/28","fd00:1::/112"]}}`},
		{"DELETE", "/apis/networking.k8s.io/v1/servicecidrs/kubernetes", "", ""},
		{"POST", "/apis/networking.k8s.io/v1/ipaddresses", mediaJSON, `{"metadata":{"name":"10.96.0.9"},"spec":{"parentRef":{"resource":"a","name":"b"}}}`},
		{"GET", svcPath + "/a/proxy/x?y=z", "", ""},
		{"GET", "/apis", "", ""},
		{"GET", "/version", "", ""},
		{"GET", "/openapi/v3", "", ""},
		{"GET", "/readyz?verbose", "", ""},
	} {
		f.Add(seed.method, seed.target, seed.contentType, []byte(seed.body))
	}
	s := newFuzzServer(f)
	f.Fuzz(func(t *testing.T, method, target, contentType string, body []byte) {
		u, err := url.ParseRequestURI(target)
		if err != nil || !strings.HasPrefix(target, "/") || mayWatch(u) {
			t.Skip("no request, or one that does not end")
		}
		r, err := http.NewRequestWithContext(t.Context(), method, target, bytes.NewReader(body))
		if err != nil {
			t.Skip("not a request that net/http lets through")
		}
		r.Header.Set("Content-Type", contentType)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		checkAnswer(t, r, w)
	})
}

// FuzzPatch sends anything as each type of patch, to the object and to its status.
func FuzzPatch(f *testing.F) {
	kinds := []string{"application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml"}
	for kind, bodies := range [][]string{
		{`[{"op":"add","path":"/spec/ports/-","value":{"port":1}}]`, `[{"op":"copy","from":"","path":"/metadata/labels"}]`, `[{"op":"test","path":"/spec","value":null}]`, `[{"op":"test","path":""}]`, `[{"op":"test","path":"/spec/ports","value":[null]}]`, `[{"op":"move","from":"/spec/ports/0","path":"/spec/ports/1"}]`, `[{"op":"remove","path":"/metadata"}]`},
		{`{"spec":{"type":"NodePort"}}`, `{"metadata":{"labels":null}}`, `{"spec":null}`, `{"spec":{"ports":[null]}}`},
		{`{"spec":{"ports":[{"port":80,"$patch":"delete"}],"$setElementOrder/ports":[{"port":80}]}}`, `{"spec":{"$retainKeys":["type"],"type":"ClusterIP"}}`, `{"$patch":"replace"}`, `{"spec":{"$deleteFromPrimitiveList/clusterIPs":["1"]}}`},
		{serviceA, "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 80, protocol: UDP}]}", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{"}}}`},
	} {
		for _, body := range bodies {
			f.Add(uint8(kind), false, []byte(body))
			f.Add(uint8(kind), true, []byte(body))
		}
	}
	s := newFuzzServer(f)
	f.Fuzz(func(t *testing.T, kind uint8, status bool, body []byte) {
		do := func(method, path, contentType string, body []byte) {
			r, err := http.NewRequestWithContext(t.Context(), method, path, bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", contentType)
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			checkAnswer(t, r, w)
		}
		do(http.MethodPost, svcPath, mediaJSON, []byte(serviceA)) // there is one, whatever the last patch did
		path := svcPath + "/a"
		if status {
			path += "/status"
		}
		contentType := kinds[int(kind)%len(kinds)]
		if contentType == kinds[3] {
			path += "?fieldManager=fuzz&force=true"
		}
		do(http.MethodPatch, path, contentType, body)
	})
}
