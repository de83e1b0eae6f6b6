package check

import (
	"net/http"
	"strings"
	"testing"
)

func TestRequestsAreRepeatedWithTheSameMethod(t *testing.T) {
	const services, endpointSlices = "/api/v1/namespaces/ns/services", "/apis/discovery.k8s.io/v1/namespaces/ns/endpointslices"
	for _, c := range []struct {
		method, target, contentType, body, want string
	}{
		{http.MethodPost, services, "application/json", `{"a":"it's"}`, `kubectl create -n ns -f - <<<'{"a":"it'\''s"}'`},
		{http.MethodPost, services + "?dryRun=All&fieldValidation=Strict", "application/json", "{}", `kubectl create -n ns --dry-run=server --validate=strict -f - <<<'{}'`},
		{http.MethodPost, services, "application/yaml", "a: b", `curl -X POST 'http://localhost:8001` + services + `' -H 'Content-Type: application/yaml' --data-binary 'a: b' # beside: kubectl proxy`},
		{http.MethodPut, services + "/app/status", "application/json", "{}", "kubectl replace -n ns --subresource=status -f - <<<'{}'"},
		{http.MethodGet, services + "/app", "", "", "kubectl get service -n ns app -o yaml"},
		{http.MethodGet, services, "", "", "kubectl get services -n ns -o yaml"},
		{http.MethodGet, services + "?watch=1", "", "", "kubectl get --raw '" + services + "?watch=1'"},
		{http.MethodGet, services + "/app/proxy/healthz", "", "", "kubectl get --raw '" + services + "/app/proxy/healthz'"},
		{http.MethodDelete, services + "/app", "", "", "kubectl delete service -n ns app"},
		{http.MethodDelete, services + "/app", "application/json", "{}", `curl -X DELETE 'http://localhost:8001` + services + `/app' -H 'Content-Type: application/json' --data-binary '{}' # beside: kubectl proxy`},
		{http.MethodDelete, services + "?labelSelector=a", "", "", "kubectl delete --raw '" + services + "?labelSelector=a'"},
		{http.MethodDelete, "/apis/networking.k8s.io/v1/servicecidrs/more", "", "", "kubectl delete --raw '/apis/networking.k8s.io/v1/servicecidrs/more'"},
		{http.MethodPost, "/apis/networking.k8s.io/v1/servicecidrs", "application/json", "{}", "kubectl create --raw '/apis/networking.k8s.io/v1/servicecidrs' -f - <<<'{}'"},
		{http.MethodPatch, services + "/app", "application/merge-patch+json", "{}", "kubectl patch service -n ns app --type=merge -p '{}'"},
		{http.MethodPatch, services + "/app?fieldManager=me&force=true", "application/apply-patch+yaml", "{}", "kubectl apply --server-side -n ns --field-manager=me --force-conflicts -f - <<<'{}'"},
		{http.MethodPost, endpointSlices, "", "{}", "kubectl create -n ns -f - <<<'{}'"},
		{http.MethodPut, endpointSlices + "/app", "", "{}", "kubectl replace -n ns -f - <<<'{}'"},
		{http.MethodDelete, endpointSlices + "/app", "", "", "kubectl delete endpointslice -n ns app"},
		{http.MethodGet, "/apis/discovery.k8s.io/v1/endpointslices", "", "", "kubectl get --raw '/apis/discovery.k8s.io/v1/endpointslices'"},
		{http.MethodPatch, services + "/app", "text/plain", "x", `curl -X PATCH 'http://localhost:8001` + services + `/app' -H 'Content-Type: text/plain' --data-binary 'x' # beside: kubectl proxy`},
	} {
		e := entry{method: c.method, target: c.target, contentType: c.contentType, body: []byte(c.body)}
		if got := e.command(); got != c.want {
			t.Errorf("%s %s: got\n%s\nwant\n%s", c.method, c.target, got, c.want)
		}
	}
}

func TestTheJournalKeepsTheLastRequests(t *testing.T) {
	var j journal
	for i := range journalLength + 2 {
		j.add(entry{server: strings.Repeat("x", i), method: http.MethodGet, target: "/" + strings.Repeat("i", i)})
	}
	commands := j.commands()
	if len(commands) != journalLength || commands[0] != "kubectl get --raw '/ii' # through the xx" {
		t.Errorf("got %q", commands)
	}
}

func TestTheJournalForgetsControls(t *testing.T) {
	var j journal
	add := func(name string) { j.add(entry{method: http.MethodGet, target: "/" + name}) }
	add("step")
	end := j.aside()
	for range journalLength {
		add("control")
	}
	end()
	add("next")
	if got := strings.Join(j.commands(), "; "); got != "kubectl get --raw '/step'; kubectl get --raw '/next'" {
		t.Errorf("got %s", got)
	}
}
