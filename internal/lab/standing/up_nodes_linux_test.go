package standing

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/internal/lab"
	"github.com/service-conformance/conformance/internal/lab/dataplane"
	"github.com/service-conformance/conformance/internal/lab/fakes"
	"github.com/service-conformance/conformance/internal/lab/isolation"
	"github.com/service-conformance/conformance/internal/lab/process"
)

func init() {
	fakes.Programs["lab-up"] = func(args []string) {
		fakes.Check(isolation.Prepare(Stay)) // it starts itself again
		_, err := Up(context.Background(), UpOptions{
			Options: lab.Options{BinDir: args[0], Proxy: dataplane.ProxyOptions{Command: "sleep 1000"}}, StateDir: args[1], Nodes: 2,
		})
		fakes.Check(err)
	}
}

// upNodesOptions are those of a lab of fakes with nodes, which begin to start and cannot come up.
func upNodesOptions(t *testing.T) UpOptions {
	t.Helper()
	if err := isolation.Works(); err != nil {
		t.Fatalf("the test needs a machine that lets this user make network namespaces: %v", err)
	}
	programs := fakes.Install(t, "etcd", "kube-apiserver", "kube-controller-manager")
	o := upOptions(t)
	o.BinDir, o.Nodes, o.Proxy = programs, 2, dataplane.ProxyOptions{Command: "sleep 1000"}
	return o
}

func TestAFailureInsideIsToldAndLeavesNothing(t *testing.T) {
	o := upNodesOptions(t)
	t.Setenv("FAKE_APISERVER_ERROR", "no such flag")
	if r, err := Up(t.Context(), o); err == nil || !strings.Contains(err.Error(), "no such flag") {
		t.Errorf("%+v, %v", r, err)
	}
	expectNoLab(t, o)
}

func TestAnInterruptedUpLeavesNothing(t *testing.T) {
	o := upNodesOptions(t)
	t.Setenv("FAKE_APISERVER", "hang")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		fakes.Until(t, "the lab begins to start", begun)
	}()
	if r, err := Up(ctx, o); err == nil {
		t.Errorf("up after an interrupt: %+v", r)
	}
	expectNoLab(t, o)
}

// begun reports whether a lab has begun to start its servers.
func begun() bool {
	found, _ := filepath.Glob(filepath.Join(os.TempDir(), process.RunDirPrefix+"*", "etcd-*"))
	return len(found) > 0
}

func TestAnUpThatIsKilledLeavesNothing(t *testing.T) {
	o := upNodesOptions(t)
	t.Setenv("FAKE_APISERVER", "hang")
	cmd := exec.Command(filepath.Join(fakes.Install(t, "lab-up"), "lab-up"), o.BinDir, o.StateDir)
	fakes.Must(t, cmd.Start())
	fakes.Until(t, "the lab begins to start", begun)
	fakes.Must(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	fakes.Until(t, "what was started cleans up", func() bool {
		left, _ := filepath.Glob(filepath.Join(os.TempDir(), process.RunDirPrefix+"*"))
		return len(left) == 0
	})
}

// expectNoLab fails if something of a lab is left.
func expectNoLab(t *testing.T, o UpOptions) {
	t.Helper()
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), process.RunDirPrefix+"*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if r, err := Status(o.StateDir, ""); r != nil || err != nil {
		t.Errorf("status: %+v, %v", r, err)
	}
}

func TestRangesOfTheNetworkAreNoServiceRanges(t *testing.T) {
	o := upNodesOptions(t)
	for _, r := range []string{"10.244.3.0/24", "10.0.0.0/8", "172.30.0.0/24", "fd00:10:244::/64"} {
		o.Request.ServiceCIDRs = fakes.Prefixes(r)
		if running, err := Up(t.Context(), o); err == nil || !strings.Contains(err.Error(), "choose another") && !strings.Contains(err.Error(), "Service CIDR") {
			t.Errorf("%s: %+v, %v", r, running, err)
		}
	}
}

func TestUpRefusesNumbersOfNodes(t *testing.T) {
	o := upOptions(t)
	for _, n := range []int{-1, MaxNodes + 1} {
		o.Nodes = n
		if r, err := Up(t.Context(), o); err == nil || !strings.Contains(err.Error(), "nodes, not") {
			t.Errorf("%d: %+v, %v", n, r, err)
		}
	}
}
