package kubelet

import (
	"strings"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// replaceReferences replaces each reference $(NAME) to a variable of a Service, unless the pod has one of its own of that
// name. What is no reference stays as it is.
//
// References among the pod's own variables depend on their order, which a candidate.Pod does not have.
func replaceReferences(r *Rules, value string, own map[string]string, ofServices variables) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(value, "$")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		if rest, escaped := r.escapeKept.Do(after); escaped {
			out.WriteByte('$')
			value = rest
			continue
		}
		name, rest, closed := strings.Cut(strings.TrimPrefix(after, "("), ")")
		known, ok := ofServices[name]
		if _, hides := own[name]; !closed || !strings.HasPrefix(after, "(") || !ok || hides {
			out.WriteByte('$')
			value = after
			continue
		}
		out.WriteString(known)
		value = rest
	}
}

// $$ stands for $, and begins no reference.
var escapeKept = rule.New("environment-escape-kept", func(afterDollar string) (rest string, escaped bool) {
	return strings.CutPrefix(afterDollar, "$")
}, spec.ProxyEnvironmentReferences)
