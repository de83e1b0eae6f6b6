package dataplane

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/internal/lab/fakes"
	"github.com/service-conformance/conformance/internal/lab/isolation"
	"github.com/service-conformance/conformance/internal/lab/process"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/lab/network"
)

func init() {
	// plugger starts and stops a pod on a node with a proxy, and one with another command that fails.
	fakes.Programs["plugger"] = func(args []string) {
		fakes.Check(isolation.Prepare(nil))
		fabric, err := network.NewFabric()
		fakes.Check(err)
		fabric.PodInterfaces = "lxc"
		on, err := fabric.AddNode()
		fakes.Check(err)
		log := &process.RunDir{Path: args[0]}
		w := &World{Path: process.SystemPath, parts: Parts{Dir: log, Proxy: ProxyOptions{PodSetup: args[1], PodTeardown: args[2]}}}
		n := &Node{world: w, Name: "node-1", network: on, proxy: &process.Process{Done: make(chan struct{})}}
		p, err := n.startPod(candidate.Pod{PodName: candidate.PodName{Namespace: "of", Name: "p"}, Ports: []candidate.PodPort{{Number: 8080, Protocol: corev1.ProtocolTCP}}})
		if err == nil {
			p.stop()
		}
		fmt.Println(err)
	}
}

// plug runs plugger in namespaces of its own and returns what it says, and what its commands have written.
func plug(t *testing.T, setup, teardown string) (said, written string) {
	t.Helper()
	if err := isolation.Works(); err != nil {
		t.Fatalf("the test needs a machine that lets this user make network namespaces: %v", err)
	}
	dir := t.TempDir()
	to := filepath.Join(dir, "written")
	fakes.Must(t, os.WriteFile(to, nil, 0o600))
	cmd := isolation.Command([]string{dir, strings.ReplaceAll(setup, "FILE", to), strings.ReplaceAll(teardown, "FILE", to)}, "1")
	cmd.Args[0], cmd.Stderr = "plugger", os.Stderr
	said = runSaying(t, cmd)
	data, err := os.ReadFile(to)
	fakes.Must(t, err)
	return said, string(data)
}

func runSaying(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.StdoutPipe()
	fakes.Must(t, err)
	fakes.Must(t, process.OnSpawner(cmd.Start))
	line, err := bufio.NewReader(out).ReadString('\n')
	fakes.Must(t, err)
	fakes.Must(t, cmd.Wait())
	return line
}

// The interface is there on the node when either command runs: a CNI plugin looks at it.
func TestPodsArePluggedInAndOut(t *testing.T) {
	const see = `ip -o link show dev {pod-interface} | wc -l >>FILE`
	said, written := plug(t, "echo in {node} {pod-interface} {pod-namespace}/{pod-name} >>FILE; "+see, "echo out {node} {pod-interface} >>FILE; "+see)
	if want := "in node-1 lxc2 of/p\n1\nout node-1 lxc2\n1\n"; said != "<nil>\n" || written != want {
		t.Errorf("%s%s; want %s", said, written, want)
	}
}

func TestAPodThatIsNotPluggedInIsNotUsed(t *testing.T) {
	said, written := plug(t, "echo no such network; exit 3", "echo out >>FILE")
	for _, want := range []string{"pod-setup command on node-1", "exit status 3", "no such network"} {
		if !strings.Contains(said, want) {
			t.Errorf("%s lacks %q", said, want)
		}
	}
	if written != "" {
		t.Errorf("a pod that was not plugged in is plugged out: %s", written)
	}
}
