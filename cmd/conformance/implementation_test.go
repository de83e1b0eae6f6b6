package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/reference"
	"github.com/service-conformance/conformance/framework/runner"
	"github.com/service-conformance/conformance/framework/spec"
)

func TestTheExampleOfAnImplementationNamesEveryDeclaration(t *testing.T) {
	i, err := readImplementation("../../fixtures/implementation.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name := range spec.Declarables {
		if i.Declarations[name] == "" {
			t.Errorf("the example does not show %s", name)
		}
		if spec.About(name) == "" {
			t.Errorf("nothing says what %s is about", name)
		}
	}
	c, err := reference.New(reference.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var d candidate.Candidate = declared{c, i}
	if what := d.Describe(); what.DataPlane.Name != "my-proxy" || what.Declarations[spec.AffinityScope] != "service" {
		t.Errorf("described as %+v", what)
	}
}

func TestAWrongImplementationFileSaysWhatIsWrong(t *testing.T) {
	for content, want := range map[string]string{
		"declarations:\n  affinity-scope: pod\n":    `:2: affinity-scope is port or service, not "pod"`,
		"declarations: {colour: red}":               `:1: there is no declaration "colour"`,
		"title: x":                                  `:1: unknown field "title"`,
		"name: x\nfeatures: [NodePort, Teleport]\n": `:2: there is no feature "Teleport"`,
		"name: x\nsuites: [dns]\n":                  `:2: there is no suite "dns"`,
		"name: x\n\nprofiles:\n- core\n- corr\n":    `:5: there is no profile "corr"`,
		"features: [NodePort]\ndeclarations:\n  no-endpoints: drop\n  affinity-timer: fixed": `:4: affinity-timer is declared, but the feature SessionAffinity is not claimed`,
		"profiles: [core]\ndeclarations: {node-port-loopback: served}":                       `:2: node-port-loopback is declared, but the feature NodePort is not claimed`,
		"controlPlane: {name: x}\ndataPlane: {name: x}":                                      `:2: controlPlane and dataPlane are both "x"`,
		"name: x\ndataPlane: {name: y}":                                                      `:2: dataPlane is named by name on line 1 already`,
		"dataPlane: {version: \"1\"}":                                                        `:1: dataPlane needs a name`,
		"dataPlane: {name: x, colour: red}":                                                  `:1: unknown field "colour" of dataPlane`,
		"name: x\nname: y":                                                                   `:2: name stands there twice`,
		"- x":                                                                                `:1: an implementation file is a mapping`,
		"name: [x":                                                                           `:1: `,
		"features: NodePort":                                                                 `:1: features are a list`,
	} {
		path := filepath.Join(t.TempDir(), "i.yaml")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := readImplementation(path)
		if err == nil || !strings.HasPrefix(err.Error(), path+want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want one line that begins with the file and %s", content, err, want)
		}
	}
}

// TestPartsAreNamedByThemselves demands that a proxy of another name keeps what is known of the API server.
func TestPartsAreNamedByThemselves(t *testing.T) {
	c, err := reference.New(reference.Options{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "i.yaml")
	if err := os.WriteFile(path, []byte("dataPlane: {name: my-proxy, version: 1.2.3}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	i, err := readImplementation(path)
	if err != nil {
		t.Fatal(err)
	}
	what := declared{c, i}.Describe()
	if what.Implementation != reference.Implementation || what.DataPlane != (candidate.Implementation{Name: "my-proxy", Version: "1.2.3"}) {
		t.Errorf("described as %+v", what)
	}
}

func TestAFileCanClaimEverySuiteThatHasChecks(t *testing.T) {
	suites := map[string]bool{}
	runner.Plan(runner.Selection{})
	for _, d := range check.Declarations() {
		suites[d.Suite] = true
	}
	if got := slices.Sorted(maps.Keys(suites)); !slices.Equal(got, suiteNames) {
		t.Errorf("a file can claim %q; there are checks of %q", suiteNames, got)
	}
}

// TestLoadBalancersOfAnotherWayAreJudged has the reference declare that its load balancers are not those of the service controller.
func TestLoadBalancersOfAnotherWayAreJudged(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "implementation.yaml")
	if err := os.WriteFile(file, []byte("declarations: {load-balancers: another-way}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for fault, want := range map[string]string{
		"":                                     "conformant    0 non-conformant    0 unknown",
		"load-balancer-uses-excluded-nodes":    "non-conformant  proxy-loadbalancer-node-exclusion: ",
		"load-balancer-serves-on":              "non-conformant  proxy-loadbalancer-cleanup-type: ",
		"load-balancer-asks-health-check-once": "non-conformant  proxy-loadbalancer-local: ",
	} {
		args := []string{"run", "--implementation", file, "--focus", "proxy-loadbalancer-*", "--report-dir", filepath.Join(dir, "report")}
		if fault != "" {
			args = append(args, "--fault", fault)
		}
		if out, _, _ := conformance(t, dir, args...); !strings.Contains(out, want) {
			t.Errorf("fault %q: %q is not in\n%s", fault, want, out)
		}
	}
}
