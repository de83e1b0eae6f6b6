package process

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/internal/lab/fakes"
)

// startForever starts a process that goes on until it is killed.
func startForever(t *testing.T) *Process {
	t.Helper()
	p, err := Start(Command{Name: "forever", Path: filepath.Join(fakes.Install(t, "forever"), fakes.BinaryName("forever")), Log: filepath.Join(t.TempDir(), "log")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func TestKillEndsAProcess(t *testing.T) {
	p := startForever(t)
	if !p.Alive() {
		t.Fatal(p.DiedError())
	}
	p.Kill()
	if p.Alive() {
		t.Error("alive after kill")
	}
	p.Kill() // again, without harm
	if _, err := StartTime(p.PID); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the start time of an ended process: %v", err)
	}
}

func TestProcessStartTellsProcessesApart(t *testing.T) {
	a, err := StartTime(os.Getpid())
	if err != nil || a == "" {
		t.Fatalf("this process: %q, %v", a, err)
	}
	if again, _ := StartTime(os.Getpid()); again != a {
		t.Errorf("this process started at %q and at %q", a, again)
	}
	if p := startForever(t); p.Started == "" {
		t.Error("no start time of a child")
	}
}

func TestProcessesDieWithTheirParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("only Linux ties the life of a process to its parent; elsewhere sweep finds it")
		return
	}
	programs := fakes.Install(t, "parent", "forever")
	parent := exec.Command(filepath.Join(programs, "parent"), filepath.Join(programs, "forever"), filepath.Join(t.TempDir(), "log"))
	out, err := parent.StdoutPipe()
	fakes.Must(t, err)
	fakes.Must(t, parent.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	fakes.Must(t, err)
	started, err := StartTime(pid)
	fakes.Must(t, err)
	fakes.Must(t, parent.Process.Kill())
	if err := parent.Wait(); err == nil {
		t.Error("the killed parent ended well")
	}
	for {
		if now, err := StartTime(pid); err != nil || now != started {
			return // the test's own time limit ends the wait for a child that lives on
		}
		runtime.Gosched()
	}
}

func TestADeadServerIsExplainedByItsLog(t *testing.T) {
	t.Setenv("FAKE_APISERVER_ERROR", "the range is too small")
	p, err := Start(Command{Name: "kube-apiserver", Path: filepath.Join(fakes.Install(t, "kube-apiserver"), fakes.BinaryName("kube-apiserver")), Log: filepath.Join(t.TempDir(), "log")})
	fakes.Must(t, err)
	<-p.Done
	if err := p.StartError(); !strings.Contains(err.Error(), "the range is too small") || errors.Is(err, ErrPortTaken) {
		t.Errorf("error %v", err)
	}
}

func TestATakenPortIsRecognized(t *testing.T) {
	t.Setenv("FAKE_APISERVER_ERROR", "listen tcp 127.0.0.1:20000: bind: address already in use")
	p, err := Start(Command{Name: "kube-apiserver", Path: filepath.Join(fakes.Install(t, "kube-apiserver"), fakes.BinaryName("kube-apiserver")), Log: filepath.Join(t.TempDir(), "log")})
	fakes.Must(t, err)
	<-p.Done
	if err := p.StartError(); !errors.Is(err, ErrPortTaken) {
		t.Errorf("error %v", err)
	}
}

func TestAGateThatCannotBeSetIsRecognized(t *testing.T) {
	t.Setenv("FAKE_APISERVER_ERROR", "cannot set feature gate X to false, feature is locked to true")
	p, err := Start(Command{Name: "kube-apiserver", Path: filepath.Join(fakes.Install(t, "kube-apiserver"), fakes.BinaryName("kube-apiserver")), Log: filepath.Join(t.TempDir(), "log")})
	fakes.Must(t, err)
	<-p.Done
	if err := p.StartError(); !errors.Is(err, ErrGate) {
		t.Errorf("error %v", err)
	}
}

func TestLogTail(t *testing.T) {
	for name, c := range map[string]struct{ log, want string }{
		"empty":          {"", "(nothing)"},
		"plain":          {"one\ntwo\n\nthree\nfour\n", "two | three | four"},
		"errors first":   {"I1121 02:15:22 fine\nE1121 02:15:23 broken\nI1121 02:15:24 fine again\n", "E1121 02:15:23 broken"},
		"not a severity": {"Everything is well\n", "Everything is well"},
		"long":           {strings.Repeat("x", 50<<10) + "\nend\n", strings.Repeat("x", 400) + " | end"},
	} {
		path := filepath.Join(t.TempDir(), "log")
		fakes.Must(t, os.WriteFile(path, []byte(c.log), 0o600))
		if got := LogTail(path, 3); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if got := LogTail(filepath.Join(t.TempDir(), "none"), 3); !strings.Contains(got, "no log") {
		t.Errorf("missing log: %q", got)
	}
}

func TestTheUsersEtcdSettingsStayOut(t *testing.T) {
	t.Setenv("ETCD_DATA_DIR", "/elsewhere")
	for _, s := range ServerEnvironment() {
		if strings.HasPrefix(s, "ETCD_") {
			t.Errorf("%s reaches the servers", s)
		}
	}
	if len(ServerEnvironment()) == 0 {
		t.Error("the environment is empty")
	}
}

// TestAProgramThatMayEndMayNotCrash tells an end that a check may ask for, as by a wrong configuration, from one that nobody asks for.
func TestAProgramThatMayEndMayNotCrash(t *testing.T) {
	t.Setenv("FAKE_APISERVER_ERROR", "the configuration is wrong")
	ended, err := Start(Command{Name: "kube-proxy", Path: filepath.Join(fakes.Install(t, "kube-apiserver"), fakes.BinaryName("kube-apiserver")), Log: filepath.Join(t.TempDir(), "log"), Ends: true})
	fakes.Must(t, err)
	<-ended.Done
	if ended.Died() {
		t.Error("an end counts as a crash")
	}
	crashed, err := Start(Command{Name: "kube-proxy", Path: filepath.Join(fakes.Install(t, "forever"), fakes.BinaryName("forever")), Log: filepath.Join(t.TempDir(), "log"), Ends: true})
	fakes.Must(t, err)
	fakes.Must(t, crashed.OS.Kill())
	<-crashed.Done
	if fakes.OnWindows() {
		t.Log("there a process that is killed ends with code 1")
		return
	}
	if !crashed.Died() {
		t.Error("a crash counts as an end")
	}
}

func TestProgramsThatAreJudgedDoNotSeeWhatIsNotForThem(t *testing.T) {
	for name, seen := range map[string]bool{"CONFORMANCE_SIGN_PASSWORD": false, "ETCD_NAME": false, "VENDOR_OPTION": true} {
		t.Setenv(name, "x")
		if slices.Contains(ServerEnvironment(), name+"=x") != seen {
			t.Errorf("%s is seen: %v", name, !seen)
		}
	}
}

func init() {
	// parent starts a server, says which and goes on until it is killed.
	fakes.Programs["parent"] = func(args []string) {
		p, err := Start(Command{Name: "forever", Path: args[0], Log: args[1]})
		fakes.Check(err)
		fmt.Println(p.PID)
		select {}
	}
}
