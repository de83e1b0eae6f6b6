package runner

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

func TestSelectionNamesWhatIsUnknown(t *testing.T) {
	declarations := []check.Declaration{{Suite: "allocation"}}
	known := string(spec.Default().Requirements[0].ID)
	for name, c := range map[string]struct {
		selection Selection
		want      string
	}{
		"suite":       {Selection{Suites: []string{"alloc"}}, `unknown suite "alloc"; there are allocation`},
		"feature":     {Selection{Features: []string{"Teleport"}}, `unknown feature "Teleport"`},
		"requirement": {Selection{Focus: []string{"alloc-no-such"}}, `no requirement and no check matches "alloc-no-such"; `},
		"nearly":      {Selection{Focus: []string{known[:len(known)-1]}}, "did you mean " + known},
		"skip":        {Selection{Skip: []string{"alloc-no-such"}}, `no requirement and no check matches "alloc-no-such"`},
		"no glob":     {Selection{Focus: []string{"[a"}}, `no requirement and no check matches "[a"`},
		"check":       {Selection{Focus: []string{declarations[0].Name}}, ""},
		"fine":        {Selection{Suites: []string{"allocation"}, Focus: []string{known, "proxy-*"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.selection.Validate(declarations)
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
			} else if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestFocusSelectsByRequirement(t *testing.T) {
	d := check.Declaration{Suite: "allocation", Requirements: []spec.ID{"alloc-a", "alloc-b-c"}}
	for focus, want := range map[string]bool{"alloc-a": true, "alloc-b-*": true, "alloc-?": true, "alloc": false, "api-*": false} {
		s := Selection{Focus: []string{focus}}
		if got := s.selects(d); got != want {
			t.Errorf("focus %s selects: %v, want %v", focus, got, want)
		}
	}
	d.Name = "alloc-a: gives (or not)"
	for skip, want := range map[string]bool{"alloc-b-c": false, "alloc-a: gives (or not)": false, "*: gives*": false, "api-*": true} {
		s := Selection{Focus: []string{"alloc-a: gives*"}, Skip: []string{skip}}
		if got := s.selects(d); got != want {
			t.Errorf("skip %s selects: %v, want %v", skip, got, want)
		}
	}
	if s := (Selection{Suites: []string{"apischema"}}); s.selects(d) {
		t.Error("a check of another suite was selected")
	}
}

func TestProgressLineTellsWhatRunsLongest(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(&out, false, 3)
	defer p.Stop()
	now := time.Now()
	p.Event(check.Event{Check: "young", Time: now})
	p.Event(check.Event{Check: "old", ServiceCIDR: "10.96.0.0/24", Time: now.Add(-5 * time.Second)})
	p.Event(check.Event{Check: "young", Time: now, Result: &check.Result{Verdict: check.NonConformant}})
	if line := p.line(100); !strings.HasPrefix(line, "1/3 checks, 1 non-conformant, ") || !strings.HasSuffix(line, "old [10.96.0.0/24]") {
		t.Errorf("line %q", line)
	}
	p.Known()
	if line := p.line(100); !strings.HasPrefix(line, "1/3 checks, 1 known, ") {
		t.Errorf("a known deviation is shown as %q", line)
	}
	if line := p.line(10); len([]rune(line)) != 10 {
		t.Errorf("line %q is not cut to 10 characters", line)
	}
}
