package check

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// journal keeps the last requests of a check, so that a failure can be repeated by hand.
type journal struct {
	mu      sync.Mutex
	entries []entry
	next    int
}

type entry struct {
	server, method, target, contentType string
	body                                []byte
}

const journalLength = 6

func (j *journal) add(e entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.entries) < journalLength {
		j.entries = append(j.entries, e)
		return
	}
	j.entries[j.next] = e
	j.next = (j.next + 1) % journalLength
}

// commands returns the requests, oldest first, as kubectl commands where kubectl can express them.
func (j *journal) commands() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []string
	for i := range j.entries {
		e := &j.entries[(j.next+i)%len(j.entries)]
		command := e.command()
		if e.server != "" {
			command += " # through the " + e.server
		}
		out = append(out, command)
	}
	return out
}

func (e *entry) command() string {
	path, _, _ := strings.Cut(e.target, "?")
	parts := strings.Split(strings.Trim(path, "/"), "/")
	flags := ""
	if strings.Contains(e.target, "dryRun=All") {
		flags = " --dry-run=server"
	}
	if len(parts) >= 5 && parts[0] == "api" && parts[2] == "namespaces" && parts[4] == "services" {
		ns, name := parts[3], ""
		if len(parts) > 5 {
			name = parts[5]
		}
		if len(parts) > 6 {
			flags += " --subresource=" + parts[6]
		}
		switch {
		case e.method == http.MethodPost:
			return fmt.Sprintf("kubectl create -n %s%s -f - <<<%s", ns, flags, quote(e.body))
		case e.method == http.MethodPut:
			return fmt.Sprintf("kubectl replace -n %s%s -f - <<<%s", ns, flags, quote(e.body))
		case e.method == http.MethodGet && !strings.Contains(e.target, "watch="):
			return strings.TrimSpace(fmt.Sprintf("kubectl get services -n %s -o yaml %s", ns, name))
		case e.method == http.MethodDelete && name != "":
			return fmt.Sprintf("kubectl delete service -n %s%s %s", ns, flags, name)
		case e.method == http.MethodPatch && strings.Contains(e.contentType, "apply"):
			return fmt.Sprintf("kubectl apply --server-side -n %s%s -f - <<<%s", ns, flags, quote(e.body))
		case e.method == http.MethodPatch:
			kind := map[string]string{"application/json-patch+json": "json", "application/merge-patch+json": "merge"}[e.contentType]
			if kind == "" {
				kind = "strategic"
			}
			return fmt.Sprintf("kubectl patch service -n %s%s %s --type=%s -p %s", ns, flags, name, kind, quote(e.body))
		}
	}
	if len(e.body) > 0 {
		return fmt.Sprintf("curl -X %s -H 'Content-Type: %s' \"$SERVER%s\" -d %s", e.method, e.contentType, e.target, quote(e.body))
	}
	return fmt.Sprintf("kubectl get --raw '%s' # method %s", e.target, e.method)
}

func quote(body []byte) string { return "'" + strings.ReplaceAll(string(body), "'", `'\''`) + "'" }
