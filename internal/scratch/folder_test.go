package scratch

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func exists(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

func makeFolder(t *testing.T, parent, kind string) *Folder {
	t.Helper()
	f, err := newFolder(parent, kind)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(f.Path, "content"), nil, 0o600))
	return f
}

func TestFolderIsRemoved(t *testing.T) {
	f := makeFolder(t, t.TempDir(), "work")
	f.Remove()
	if exists(t, f.Path) {
		t.Error("the folder is still there")
	}
}

// parentVariable makes this program one that makes a folder in what the variable names, and is killed.
const parentVariable = "SCRATCH_TEST_PARENT"

func TestMain(m *testing.M) {
	if parent := os.Getenv(parentVariable); parent != "" {
		if _, err := newFolder(parent, "work"); err != nil {
			os.Exit(3)
		}
		self, _ := os.FindProcess(os.Getpid())
		_ = self.Kill()
		select {}
	}
	os.Exit(m.Run())
}

func TestNextStartRemovesWhatKilledProcessesLeft(t *testing.T) {
	parent := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), parentVariable+"="+parent)
	if exit := (*exec.ExitError)(nil); !errors.As(cmd.Run(), &exit) || exit.ExitCode() == 3 {
		t.Fatal("the process was not killed")
	}
	left, err := filepath.Glob(filepath.Join(parent, "*"))
	must(t, err)
	if len(left) != 1 {
		t.Fatalf("the killed process left %v", left)
	}

	running, other, kept := makeFolder(t, parent, "other"), makeFolder(t, parent, "other"), makeFolder(t, parent, "other")
	must(t, kept.Keep())
	unfinished, foreign := filepath.Join(parent, prefix+"work-unfinished"), filepath.Join(parent, "something")
	must(t, os.Mkdir(unfinished, 0o700))
	must(t, os.Mkdir(foreign, 0o700))
	if !exists(t, left[0]) {
		t.Error("a folder of another kind was removed")
	}

	makeFolder(t, parent, "work")
	makeFolder(t, parent, "other")
	if exists(t, left[0]) {
		t.Error("what the killed process left is still there")
	}
	for what, path := range map[string]string{
		"a running process": running.Path, "the same process": other.Path, "the user": kept.Path,
		"a process that is making it": unfinished, "another program": foreign,
	} {
		if !exists(t, path) {
			t.Errorf("a folder of %s was removed", what)
		}
	}
}

func TestFolderThatIsALinkStays(t *testing.T) {
	parent, elsewhere := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(elsewhere, ownerFile), nil, 0o600))
	must(t, os.Symlink(elsewhere, filepath.Join(parent, prefix+"work-1")))
	makeFolder(t, parent, "work")
	if !exists(t, filepath.Join(elsewhere, ownerFile)) {
		t.Error("a sweep followed a link")
	}
}

func TestWhatAFolderTellsOfIsRemovedFirst(t *testing.T) {
	parent := t.TempDir()
	var told []string
	fails := errors.New("busy")
	OnSweep("telling", func(path string) error {
		told = append(told, path)
		return fails
	})
	t.Cleanup(func() { lefts.Delete("telling") })
	f, err := newFolder(parent, "telling")
	if err != nil {
		t.Fatal(err)
	}
	Abandon()
	if _, err := os.Stat(f.Path); err != nil {
		t.Errorf("a folder that tells the next start of something went: %v", err)
	}
	live.Delete(f)
	f.owner.Unlock() // as if the process had ended
	if removed, err := sweep(parent, "*"); len(removed) > 0 || !errors.Is(err, fails) || len(told) != 1 || told[0] != f.Path {
		t.Errorf("removed %v, %v, told %v", removed, err, told)
	}
	fails = nil
	if removed, err := sweep(parent, "*"); len(removed) != 1 || err != nil || len(told) != 2 {
		t.Errorf("removed %v, %v, told %v", removed, err, told)
	}
}
