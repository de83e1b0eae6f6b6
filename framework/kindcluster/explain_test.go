package kindcluster

import (
	"errors"
	"strings"
	"testing"

	kinderrors "sigs.k8s.io/kind/pkg/errors"
	"sigs.k8s.io/kind/pkg/exec"
)

func failed(output string) error {
	return kinderrors.Wrap(&exec.RunError{Command: []string{"docker", "run"}, Output: []byte(output), Inner: errors.New("exit status 125")}, "failed to create cluster")
}

func TestExplainedSaysWhatTheCommandPrinted(t *testing.T) {
	said := &journal{}
	said.V(0).Infof(" • %s  ...\n", "Starting control-plane 🕹️")
	said.V(0).Infof(" ✗ %s\n", "Starting control-plane 🕹️")
	for name, c := range map[string]struct {
		err  error
		said *journal
		want []string
	}{
		"output":       {failed("I0 starting\nerror: the port is taken\nbye\n"), said, []string{`at stage "Starting control-plane"`, "`docker run`", "error: the port is taken"}},
		"only one":     {failed("exit\n"), nil, []string{"exit"}},
		"no command":   {errors.New("two clusters"), said, []string{"two clusters", "Starting control-plane"}},
		"no such tag":  {failed("Unable to find image 'kindest/node:v9' locally\ndocker: Error response from daemon: not found"), nil, []string{"node image kindest/node:v9", "--node-image"}},
		"denied":       {failed("Error response from daemon: pull access denied for a/b, repository does not exist"), nil, []string{"node image a/b", "--node-image"}},
		"no connexion": {failed("Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"), nil, []string{"Cannot connect to the Docker daemon"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := explained(c.err, c.said).Error()
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in %q", want, text)
				}
			}
			if strings.Contains(text, "\n") {
				t.Errorf("several lines: %q", text)
			}
		})
	}
	pull := &exec.RunError{Command: []string{"docker", "pull", "a/b:v1"}, Output: []byte("no such host"), Inner: errors.New("exit status 1")}
	if text := explained(pull, said).Error(); !strings.Contains(text, "node image a/b:v1") {
		t.Errorf("a pull that failed is told as %q", text)
	}
	if explained(nil, said) != nil {
		t.Error("no error became one")
	}
}

func TestInotifyHintOnlyWhereItIsLikely(t *testing.T) {
	if hint := inotifyHint(128); !strings.Contains(hint, "max_user_instances=1024") {
		t.Errorf("got %q", hint)
	}
	for _, n := range []int{0, 1024} {
		if hint := inotifyHint(n); hint != "" {
			t.Errorf("%d: %q", n, hint)
		}
	}
}
