package check

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/service-conformance/conformance/framework/candidate"
)

// journal keeps the last requests of a check, and what the DNS was asked where its answer is not the one demanded. So a failure can be repeated by hand.
type journal struct {
	mu      sync.Mutex
	entries []entry
	next    int
	length  int // how many are kept; 0 is journalLength
}

type entry struct {
	server, method, target, contentType string
	body                                []byte
	question                            candidate.Question // to the DNS of the cluster, instead of a request
}

const journalLength = 6

func (j *journal) add(e entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	length := cmp.Or(j.length, journalLength)
	if len(j.entries) < length {
		j.entries = append(j.entries, e)
		return
	}
	j.entries[j.next] = e
	j.next = (j.next + 1) % length
}

// aside begins what is no step of the check, such as a control. The function that it returns ends it, and forgets its requests.
func (j *journal) aside() (end func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	entries, next := slices.Clone(j.entries), j.next
	return func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.entries, j.next = entries, next
	}
}

// commands returns the requests, oldest first, as kubectl commands where kubectl can express them.
func (j *journal) commands() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []string
	for i := range j.entries {
		out = append(out, j.entries[(j.next+i)%len(j.entries)].full())
	}
	return out
}

// CommandOf is a request to this API server as a kubectl command, where kubectl can express it: for checks that show requests themselves.
func (cp *ControlPlane) CommandOf(method, path, contentType string, body []byte, options ...RequestOption) string {
	return (&entry{server: cp.server, method: method, target: targetOf(path, options), contentType: contentType, body: body}).full()
}

// full is the command, with the server where there are several.
func (e *entry) full() string {
	if e.server == "" {
		return e.command()
	}
	return e.command() + " # through the " + e.server
}

// command is the request as a kubectl command, or for curl where kubectl has none; and a question for dig.
func (e *entry) command() string {
	if q := e.question; q.Name != "" {
		return fmt.Sprintf("dig +search %s %s # in a pod", q.Type, q.Name)
	}
	if command := e.asWritten(); command != "" {
		return command
	}
	raw := fmt.Sprintf("--raw %s", quote([]byte(e.target)))
	switch {
	case e.method == http.MethodGet && len(e.body) == 0:
		return "kubectl get " + raw
	case e.method == http.MethodDelete && len(e.body) == 0:
		return "kubectl delete " + raw
	case e.method == http.MethodPost && isJSON(e.contentType):
		return "kubectl create " + raw + " -f - <<<" + quote(e.body)
	case e.method == http.MethodPut && isJSON(e.contentType):
		return "kubectl replace " + raw + " -f - <<<" + quote(e.body)
	}
	command := fmt.Sprintf("curl -X %s %s", e.method, quote([]byte(proxied+e.target)))
	if len(e.body) > 0 {
		command += fmt.Sprintf(" -H 'Content-Type: %s' --data-binary %s", e.contentType, quote(e.body))
	}
	return command + " # beside: kubectl proxy"
}

// proxied is where `kubectl proxy` serves the API.
const proxied = "http://localhost:8001"

func isJSON(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	return kind == "" || kind == "application/json"
}

// asWritten is a request for Services or EndpointSlices as people write it, and empty where that would not be the same request.
func (e *entry) asWritten() string {
	path, query, _ := strings.Cut(e.target, "?")
	parts, resource := strings.Split(strings.Trim(path, "/"), "/"), "service"
	if rest, of := strings.CutPrefix(path, "/apis/discovery.k8s.io/v1/"); of {
		parts, resource = append([]string{"api", "v1"}, strings.Split(strings.Trim(rest, "/"), "/")...), "endpointslice"
	}
	if len(parts) < 5 || len(parts) > 7 || parts[0] != "api" || parts[2] != "namespaces" || parts[4] != resource+"s" {
		return ""
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return ""
	}
	flags := " -n " + parts[3]
	for _, key := range slices.Sorted(maps.Keys(values)) {
		switch value := values.Get(key); {
		case key == "dryRun" && value == "All":
			flags += " --dry-run=server"
		case key == "fieldManager":
			flags += " --field-manager=" + value
		case key == "fieldValidation":
			flags += " --validate=" + strings.ToLower(value)
		case key == "force" && value == "true":
			flags += " --force-conflicts"
		default:
			return ""
		}
	}
	name := ""
	if len(parts) > 5 {
		name = " " + parts[5]
	}
	if len(parts) > 6 {
		if parts[6] != "status" {
			return ""
		}
		flags += " --subresource=status"
	}
	patches := map[string]string{"application/json-patch+json": "json", "application/merge-patch+json": "merge", "application/strategic-merge-patch+json": "strategic"}
	switch {
	case e.method == http.MethodPost && name == "" && isJSON(e.contentType):
		return "kubectl create" + flags + " -f - <<<" + quote(e.body)
	case e.method == http.MethodPut && isJSON(e.contentType):
		return "kubectl replace" + flags + " -f - <<<" + quote(e.body)
	case e.method == http.MethodGet && name == "" && flags == " -n "+parts[3]:
		return "kubectl get " + resource + "s" + flags + " -o yaml"
	case e.method == http.MethodGet && name != "":
		return "kubectl get " + resource + flags + name + " -o yaml"
	case e.method == http.MethodDelete && name != "" && len(e.body) == 0:
		return "kubectl delete " + resource + flags + name
	case e.method == http.MethodPatch && strings.HasPrefix(e.contentType, "application/apply-patch"):
		return "kubectl apply --server-side" + flags + " -f - <<<" + quote(e.body)
	case e.method == http.MethodPatch && patches[e.contentType] != "":
		return "kubectl patch " + resource + flags + name + " --type=" + patches[e.contentType] + " -p " + quote(e.body)
	}
	return ""
}

// longestBody is how many bytes of a request are shown. More is of no use to a reader, and a shell takes no word of 128
// KiB.
const longestBody = 16 << 10

func quote(body []byte) string {
	cut := ""
	if n := len(body); n > longestBody {
		body, cut = body[:longestBody], fmt.Sprintf(" # cut: %d bytes in all", n)
	}
	return "'" + strings.ReplaceAll(string(body), "'", `'\''`) + "'" + cut
}
