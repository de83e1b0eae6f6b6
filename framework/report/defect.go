package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// ErrNoDefect says that a report has nothing to tell to the maintainers of an implementation about a requirement.
var ErrNoDefect = errors.New("no check of it is non-conformant in that report")

// shownDefects bounds how many checks of a requirement the text of a defect shows. The report has the others.
const shownDefects = 2

// runNamespace is the name of a namespace of a check, and defectNamespace what it is called where a person repeats its requests.
var runNamespace = regexp.MustCompile(`conformance-[a-z0-9]{6}-(lent|[0-9]+)-[0-9]+(-again)?`)

const defectNamespace = "defect"

// Defect is a requirement that is not met, told to the maintainers of the implementation, as Markdown: what the documents say, what happens, the requests that show
// it on any cluster, and what was judged. It is ErrNoDefect where the requirement is met, or nobody has judged it.
func (r *Report) Defect(id spec.ID) ([]byte, error) {
	requirement := spec.Default().Get(id)
	if requirement == nil {
		return nil, fmt.Errorf("there is no requirement %q; `conformance list` shows them", id)
	}
	var failing []*CheckVerdict
	for i := range r.Checks {
		if c := &r.Checks[i]; slices.Contains(c.Requirements, id) && c.VerdictOn(id) == check.NonConformant && c.Failure != nil {
			failing = append(failing, c)
		}
	}
	if len(failing) == 0 {
		return nil, fmt.Errorf("%s: %w", id, ErrNoDefect)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s does not meet: %s\n\n## What the documents say\n\n%s (%s)\n\n", MarkdownText(r.accused(id)), MarkdownText(requirement.Statement), MarkdownText(requirement.Statement), requirement.Level)
	for _, s := range spec.Default().References(requirement) {
		name := s.Document.Title
		if s.Section != "" {
			name += ", " + s.Section
		}
		fmt.Fprintf(&b, "- [%s](%s)\n", MarkdownText(name), s.URL)
	}
	b.WriteString("\n## What happens\n")
	for _, c := range failing[:min(len(failing), shownDefects)] {
		fmt.Fprintf(&b, "\nThe check \"%s\":\n\n```\n%s\n```\n", MarkdownText(c.Check), fenced(c.Failure.Message))
	}
	if n := len(failing) - shownDefects; n > 0 {
		fmt.Fprintf(&b, "\n%d more checks saw it.\n", n)
	}
	if known := failing[0].KnownDeviation; known != nil {
		fmt.Fprintf(&b, "\n## Cause\n\n%s\n", MarkdownText(known.Reason))
		if known.Source != "" {
			fmt.Fprintf(&b, "\nSource: %s\n", MarkdownText(known.Source))
		}
		if known.Link != "" {
			fmt.Fprintf(&b, "\nDiscussed at %s\n", MarkdownText(known.Link))
		}
	}
	b.WriteString("\n## How to see it\n\n")
	if requests := failing[0].Failure.Reproduce; len(requests) > 0 {
		fmt.Fprintf(&b, "These are the last requests of the check, for any cluster:\n\n```sh\nkubectl create namespace %s\n%s\n```\n\n", defectNamespace,
			fenced(runNamespace.ReplaceAllString(strings.Join(elsewhere(requests), "\n"), defectNamespace)))
	}
	fmt.Fprintf(&b, "The whole check:\n\n```sh\nconformance run --tier cluster --kubeconfig KUBECONFIG --focus %s\n```\n\n## What was judged\n\n%s", id, r.circumstances())
	return []byte(b.String()), nil
}

// elsewhere are requests as another cluster takes them. An object that was read before goes without what its server had set: another one has another identity,
// and other addresses.
func elsewhere(requests []string) []string {
	said := make([]string, len(requests))
	for i, request := range requests {
		said[i] = request
		command, body, found := strings.Cut(request, " <<<'")
		if !found || !strings.HasSuffix(body, "}'") {
			continue
		}
		var object struct {
			APIVersion string         `json:"apiVersion"`
			Kind       string         `json:"kind"`
			Metadata   map[string]any `json:"metadata"`
			Spec       map[string]any `json:"spec,omitempty"`
			Status     map[string]any `json:"status,omitempty"`
		}
		if json.Unmarshal([]byte(strings.ReplaceAll(strings.TrimSuffix(body, "'"), `'\''`, "'")), &object) != nil || object.Metadata["managedFields"] == nil {
			continue
		}
		for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "namespace"} {
			delete(object.Metadata, field)
		}
		if ip, _ := object.Spec["clusterIP"].(string); ip != "" && !slices.ContainsFunc(said[:i], func(before string) bool { return strings.Contains(before, `"`+ip+`"`) }) {
			if ips, _ := object.Spec["clusterIPs"].([]any); len(ips) > 0 && ips[0] == ip {
				delete(object.Spec, "clusterIP")
				delete(object.Spec, "clusterIPs")
			}
		}
		if text, err := json.Marshal(object); err == nil {
			said[i] = command + " <<<'" + strings.ReplaceAll(string(text), "'", `'\''`) + "'"
		}
	}
	return said
}

// accused is the implementation that a requirement is about: the proxy, the DNS, what makes load balancers, or the API server with its controllers.
func (r *Report) accused(id spec.ID) string {
	requirement := spec.Default().Get(id)
	if version := r.Candidate.Components["coredns"]; version != "" && requirement.Feature == spec.FeatureServiceDNS {
		return "CoreDNS v" + version
	}
	if s := r.Submitter; s != nil && requirement.Feature == spec.FeatureLoadBalancer && r.Candidate.Declarations[spec.LoadBalancers] == "another-way" { // it makes load balancers, beside a proxy
		return strings.TrimSpace(s.Project + " " + s.Version)
	}
	if d := r.Candidate.DataPlane; d.Name != "" && requirement.Part() == spec.DataPlanePart {
		name := d.String()
		if r.Candidate.ProxyMode != "" {
			name += " in " + r.Candidate.ProxyMode + " mode"
		}
		return name
	}
	return strings.TrimSpace(r.Candidate.Implementation + " " + r.Candidate.Version)
}

// circumstances lists what was judged, where and by what.
func (r *Report) circumstances() string {
	var b strings.Builder
	add := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "- %s: %s\n", name, MarkdownText(value))
		}
	}
	c := &r.Candidate
	add("control plane", strings.TrimSpace(c.Implementation+" "+c.Version))
	if c.DataPlane.Name != "" {
		add("service proxy", c.DataPlane.String())
	}
	if s := r.Submitter; s != nil && s.Project != c.DataPlane.Name {
		add("judged for", strings.TrimSpace(s.Project+" "+s.Version))
	}
	add("mode of kube-proxy", c.ProxyMode)
	for _, name := range slices.Sorted(maps.Keys(c.Components)) {
		add(name, c.Components[name])
	}
	add("tier", c.Tier)
	add("suite", r.SuiteVersion)
	add("seed", fmt.Sprint(r.Seed))
	return b.String()
}

// fenced is a text for a code block of Markdown, which it cannot end.
func fenced(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, l := range lines {
		lines[i] = visible(strings.TrimRight(l, " \t"))
	}
	return strings.ReplaceAll(strings.Join(lines, "\n"), "```", "'''")
}
