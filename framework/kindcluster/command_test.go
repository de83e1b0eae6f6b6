//go:build unix

package kindcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
)

// nodeless is the kubeconfig of a server that has no nodes.
func nodeless(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"NodeList","apiVersion":"v1"}`)
	}))
	t.Cleanup(server.Close)
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`, server.URL)
}

// commanded is a cluster whose commands are lines that find $D, a folder, and $D/kc, the kubeconfig of a server.
func commanded(t *testing.T, create string) (c Command, dir string) {
	t.Helper()
	dir = t.TempDir()
	t.Setenv("D", dir)
	if err := os.WriteFile(filepath.Join(dir, "kc"), []byte(nodeless(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	return Command{Name: "n", ServiceCIDR: "10.96.0.0/16,fd00::/112", Create: create, Teardown: "echo {name} {service-cidr} >>$D/gone", Folder: t.TempDir()}, dir
}

func fits(context.Context, string) error { return nil }

// gone is how often the teardown was called.
func gone(t *testing.T, dir string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "gone"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Count(string(text), "n 10.96.0.0/16,fd00::/112\n")
}

func demandRecord(t *testing.T, folder string, want int) {
	t.Helper()
	if names, err := Commands(folder); err != nil || len(names) != want {
		t.Errorf("clusters that the next start would remove: %v, error %v, want %d", names, err, want)
	}
}

func TestCommandMakesAClusterAndRemovesIt(t *testing.T) {
	// What goes on when the command has ended holds its outputs open, as a cluster of processes does.
	c, dir := commanded(t, `echo made {name} {service-cidr} >&2; echo "$KUBECONFIG" >$D/own; sleep 1000 & echo $! >$D/pid; cat $D/kc`)
	made, err := CreateByCommand(t.Context(), c, "", func(_ context.Context, kubeconfig string) error {
		_, err := clientcmd.LoadFromFile(kubeconfig)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(pidIn(t, dir), syscall.SIGKILL) }()
	if own, err := os.ReadFile(filepath.Join(dir, "own")); err != nil || !strings.HasPrefix(string(own), c.Folder) {
		t.Errorf("KUBECONFIG of the command is %q, error %v: it is not a file of the run's own", own, err)
	}
	if syscall.Kill(pidIn(t, dir), 0) != nil {
		t.Error("what the command has left running was ended")
	}
	logs := filepath.Join(t.TempDir(), "logs")
	if err := made.ExportLogs(t.Context(), logs); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(logs, commandLog)); err != nil || string(text) != "made n 10.96.0.0/16,fd00::/112\n" {
		t.Errorf("log %q, error %v", text, err)
	}
	demandRecord(t, c.Folder, 1)
	if err := made.Delete(t.Context()); err != nil || gone(t, dir) != 1 {
		t.Errorf("error %v, the teardown was called %d times", err, gone(t, dir))
	}
	demandRecord(t, c.Folder, 0)
}

func pidIn(t *testing.T, dir string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestCommandThatFailsIsTornDown(t *testing.T) {
	misfit := errors.New("another range")
	for name, c := range map[string]struct {
		create string
		fits   func(context.Context, string) error
		want   string
	}{
		"exit code":         {"echo one >&2; echo no quota >&2; exit 3", fits, "cluster command: exit status 3: no quota; its logs are in "},
		"no such program":   {"conformance-no-such-program", fits, "exit status 127: "},
		"nothing printed":   {"echo all went well >&2", fits, "it printed nothing: all went well"},
		"a progress report": {"echo making; cat $D/kc", fits, `something else, which begins with "making"`},
		"a path":            {"echo $D/kc", fits, "something else, which begins with"},
		"cluster misfits":   {"cat $D/kc", func(context.Context, string) error { return misfit }, "another range"},
		"too much":          {"yes | head -c 2000000", fits, "more than 1 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			command, dir := commanded(t, c.create)
			logs := filepath.Join(t.TempDir(), "logs")
			_, err := CreateByCommand(t.Context(), command, logs, c.fits)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want one line with %q", err, c.want)
			}
			if gone(t, dir) != 1 {
				t.Errorf("the teardown was called %d times", gone(t, dir))
			}
			if _, err := os.Stat(filepath.Join(logs, commandLog)); err != nil {
				t.Error(err)
			}
			demandRecord(t, command.Folder, 0)
		})
	}
}

func TestCommandThatIsInterruptedEndsAndIsTornDown(t *testing.T) {
	for name, heeds := range map[string]string{"heeds it": "", "does not": "trap '' TERM; "} {
		t.Run(name, func(t *testing.T) {
			c, dir := commanded(t, heeds+"sleep 1000 & echo $! >$D/pid.new; mv $D/pid.new $D/pid; wait; sleep 1000")
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				defer cancel()
				gomega.NewWithT(t).Eventually(filepath.Join(dir, "pid")).WithTimeout(time.Minute).Should(gomega.BeAnExistingFile())
			}()
			_, err := CreateByCommand(ctx, c, "", fits)
			if !errors.Is(err, context.Canceled) || gone(t, dir) != 1 {
				t.Errorf("error %v, the teardown was called %d times", err, gone(t, dir))
			}
			gomega.NewWithT(t).Eventually(running).WithArguments(pidIn(t, dir)).WithTimeout(time.Minute).Should(gomega.BeFalse(), "the process is there") // who inherited it has to notice
			demandRecord(t, c.Folder, 0)
		})
	}
}

// running reports whether a process is there and no zombie.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) == nil && !errors.Is(err, os.ErrNotExist)
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}

func TestCommandThatNeverBeganIsNotTornDown(t *testing.T) {
	c, dir := commanded(t, "cat $D/kc")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := CreateByCommand(ctx, c, "", fits); !errors.Is(err, context.Canceled) || gone(t, dir) != 0 {
		t.Errorf("error %v, the teardown was called %d times", err, gone(t, dir))
	}
	demandRecord(t, c.Folder, 0)
}

// TestTheNextStartTearsDownWhatIsLeft demands that a teardown is called again, in the folder where the user called it first, until it succeeds.
func TestTheNextStartTearsDownWhatIsLeft(t *testing.T) {
	c, dir := commanded(t, "cat $D/kc")
	c.Teardown = "echo busy >&2; test -e $D/free && pwd >$D/where"
	here := t.TempDir()
	t.Chdir(here)
	made, err := CreateByCommand(t.Context(), c, "", fits)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if err := made.Delete(t.Context()); err == nil || !strings.Contains(err.Error(), "exit status 1: busy") || !strings.Contains(err.Error(), c.Teardown) {
		t.Errorf("error %v", err)
	}
	demandRecord(t, c.Folder, 1)
	if err := deleteLeft(c.Folder); err == nil || !strings.Contains(err.Error(), "cluster n: ") {
		t.Errorf("error %v", err)
	}
	demandRecord(t, c.Folder, 1)
	if err := os.WriteFile(filepath.Join(dir, "free"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := deleteLeft(c.Folder); err != nil {
		t.Error(err)
	}
	demandRecord(t, c.Folder, 0)
	if where, err := os.ReadFile(filepath.Join(dir, "where")); err != nil || strings.TrimSpace(string(where)) != here {
		t.Errorf("the teardown was called in %q, error %v, want %s", where, err, here)
	}
}

func TestPasswordOfAKeyReachesNoCommand(t *testing.T) {
	t.Setenv("CONFORMANCE_SIGN_PASSWORD", "open")
	c, dir := commanded(t, "env >$D/env; cat $D/kc")
	if _, err := CreateByCommand(t.Context(), c, "", fits); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "env")); err != nil || strings.Contains(string(text), "CONFORMANCE_SIGN_PASSWORD") {
		t.Errorf("error %v, the command sees\n%s", err, text)
	}
}

func TestCheckKubeconfig(t *testing.T) {
	good := nodeless(t)
	if err := checkKubeconfig([]byte("\n" + good + "\n")); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"": "nothing", " \n": "nothing", "{": "something else", "a: b": "something else", "[]": "something else",
		strings.Replace(good, `"current-context":"c"`, `"current-context":"d"`, 1):          "d",
		strings.Replace(good, `"server":`, `"certificate-authority":"ca.crt","server":`, 1): "names the file ca.crt",
	} {
		if err := checkKubeconfig([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

func FuzzCheckKubeconfig(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1'}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"))
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if checkKubeconfig(text) != nil {
			return
		}
		if config, err := clientcmd.RESTConfigFromKubeConfig(text); err != nil || config.Host == "" {
			t.Errorf("taken, and of no use: %v, %v", config, err)
		}
	})
}
