package e2e_test

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/framework/e2e"
	"github.com/service-conformance/conformance/framework/gotest"
	"github.com/service-conformance/conformance/framework/reference/apiserver"
	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/framework/runner"

	_ "github.com/service-conformance/conformance/suites/allocation"
	_ "github.com/service-conformance/conformance/suites/apischema"
	_ "github.com/service-conformance/conformance/suites/proxy"
)

// TestServices is what a user writes. It runs in processes of other tests alone.
func TestServices(t *testing.T) {
	if testenv == nil {
		t.Skip("it is a part of the other tests")
	}
	testenv.Test(t, e2e.Features(t, e2e.Options{Options: gotest.Options{ReportDir: os.Getenv(asUser) + ".reports", Selection: runner.Selection{
		Focus: []string{"api-port-name-optional", "api-port-names-unique", "api-node-port-unneeded", "alloc-repair-unused", "proxy-clusterip-reachable"},
	}}})...)
}

// startReference starts the API server of the reference and returns its kubeconfig.
func startReference(t *testing.T, faults ...string) string {
	t.Helper()
	wrong, err := fault.Parse(faults...)
	if err != nil {
		t.Fatal(err)
	}
	server, err := apiserver.New(apiserver.Options{ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/24")}, TLS: true, Token: "secret", Faults: wrong})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := server.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// asUsers runs the test of a user on a cluster, and returns what it printed and whether it passed.
func asUsers(t *testing.T, kubeconfig string, flags ...string) (printed string, passed bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{"-test.run=^TestServices$", "-test.v"}, flags...)...)
	cmd.Env = append(os.Environ(), asUser+"="+kubeconfig)
	out, err := cmd.CombinedOutput()
	gone, _ := os.ReadFile(kubeconfig + ".gone")
	if string(gone) != "users\n" {
		t.Errorf("the cluster was destroyed: %q, want once\n%s", gone, out)
	}
	return string(out), err == nil
}

// outcome is what a feature or an assessment did: the word after --- in what go test prints, "" if it is not told.
func outcome(printed, name string) string {
	found := regexp.MustCompile(`(?m)^\s*--- (\w+): TestServices/` + regexp.QuoteMeta(strings.ReplaceAll(name, " ", "_")) + ` \(`).FindStringSubmatch(printed)
	if found == nil {
		return ""
	}
	return found[1]
}

func TestAFeatureTellsWhatItsChecksFound(t *testing.T) {
	kubeconfig := startReference(t, "port-names-repeated")
	printed, passed := asUsers(t, kubeconfig)
	if passed {
		t.Errorf("it passed\n%s", printed)
	}
	for name, want := range map[string]string{
		"api-port-name-optional":                                     "PASS",
		"api-port-name-optional/may be missing if there is one port": "PASS",
		"api-port-names-unique":                                      "FAIL",
		"api-port-names-unique/occurs once":                          "FAIL",
		"api-node-port-unneeded/is refused for type ExternalName":    "FAIL",
		"alloc-repair-unused/is removed a minute after it was made for a Service that does not exist": "SKIP",
	} {
		if got := outcome(printed, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, want := range []string{
		"Processing Feature: All ports of a Service have different names.",
		"not met (MUST)", "requirement api-port-names-unique (MUST): ", "last requests:",
		"this known deviation has gone, so correct the list: A node port on a Service of type ExternalName",
		"not judged: kubernetes does not offer the capability data-plane (judged by: a cluster with nodes, and --agent-image)",
		"the checks of all features:",
	} {
		if !strings.Contains(printed, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if t.Failed() {
		t.Log(printed)
	}
	if _, err := os.Stat(filepath.Join(kubeconfig+".reports", "report.json")); err != nil {
		t.Error(err)
	}
}

func TestTheFlagsOfTheEnvironmentSelectWhatRuns(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags []string
		runs  []string // assessments
		not   []string // features
		count int      // of checks that ran
	}{
		{
			"labels", []string{"-labels", "area=apischema,level=MUST", "-skip-labels", "feature=NodePort"},
			[]string{"api-port-names-unique/occurs once"}, []string{"api-node-port-unneeded", "alloc-repair-unused", "proxy-clusterip-reachable"}, 3,
		},
		{
			"names", []string{"-feature", "^api-port-name-", "-assess", "needed"},
			[]string{"api-port-name-optional/is needed if there are several ports"}, []string{"api-port-names-unique"}, 1,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			printed, passed := asUsers(t, startReference(t), c.flags...)
			if !passed {
				t.Error("it failed")
			}
			for _, name := range c.runs {
				if got := outcome(printed, name); got != "PASS" {
					t.Errorf("%s: %q", name, got)
				}
			}
			for _, name := range c.not {
				if got := outcome(printed, name); got != "SKIP" {
					t.Errorf("%s: %q", name, got)
				}
			}
			if !regexp.MustCompile(fmt.Sprintf(`checks +%d conformant`, c.count)).MatchString(printed) {
				t.Errorf("not %d checks ran", c.count)
			}
			if t.Failed() {
				t.Log(printed)
			}
		})
	}
}
