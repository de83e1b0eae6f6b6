package programs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"

	"github.com/service-conformance/conformance/internal/processgroup"
	"github.com/service-conformance/conformance/internal/scratch"
)

// Binaries are the programs of one Kubernetes version.
type Binaries struct {
	// Dir holds the programs under their own names.
	Dir string
	// Version of Kubernetes as stamped into them, for example "v1.37.1".
	Version string
	// EtcdVersion and GoVersion are for reports; empty where they are not known.
	EtcdVersion, GoVersion string

	Servers ServerOptions // what runs in place of them
	coreDNS string        // its version, where the cache knows it
	// lacking are programs that a lab runs without and that are not there, whatever Dir holds.
	lacking []Component
}

// Path is where the program of a component is.
func (b *Binaries) Path(c Component) string { return filepath.Join(b.Dir, binaryName(c)) }

// Progress is told how far a long operation is: done of total, where total is 0 while it is not known. It may
// be called from another goroutine, never concurrently.
type Progress func(stage string, done, total int)

// BuildOptions say what to build.
type BuildOptions struct {
	// Version of Kubernetes; empty means DefaultVersion.
	Version string
	// CacheDir is where the programs are kept; empty means DefaultCacheDir.
	CacheDir string
	// Components to build; empty means etcd and kube-apiserver.
	Components []Component
	// Progress may be nil.
	Progress Progress
	// Compiling, if not nil, is called once before something is built that Fetch could download: a build takes minutes.
	Compiling func()
}

// Build returns the programs of a Kubernetes version from the cache, building first those that the cache does
// not hold or holds damaged. Everything comes from Go modules through the go tool in PATH, which
// verifies checksums. A cold build takes minutes. Processes that build the same version wait for each other.
func Build(ctx context.Context, o BuildOptions) (_ *Binaries, err error) {
	v, err := ParseVersion(o.Version)
	if err != nil {
		return nil, err
	}
	if o.CacheDir == "" {
		if o.CacheDir, err = DefaultCacheDir(); err != nil {
			return nil, err
		}
	}
	if len(o.Components) == 0 {
		o.Components = ControlPlaneComponents
	}
	if o.Progress == nil {
		o.Progress = func(string, int, int) {}
	}
	if b, err := lookUpCache(o.CacheDir, v, o.Components); err == nil {
		return b, nil
	}

	dir := cacheFolder(o.CacheDir, v)
	l, err := scratch.LockFile(ctx, lockOf(o.CacheDir, v), func() {
		o.Progress("waiting for another process that fetches or builds Kubernetes "+v.String(), 0, 0)
	})
	if err != nil {
		return nil, err
	}
	defer l.Remove()
	// Another process may have built it meanwhile.
	b, err := lookUpCache(o.CacheDir, v, o.Components)
	var corrupt *corruptError
	switch {
	case err == nil:
		return b, nil
	case errors.As(err, &corrupt):
		o.Progress("building again: "+corrupt.reason, 0, 0)
	case !errors.Is(err, errNotCached):
		return nil, fmt.Errorf("read the cache of Kubernetes binaries: %w", err)
	}

	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	removeStaleWork(dir)
	work, err := os.MkdirTemp(dir, workPrefix)
	if err != nil {
		return nil, err
	}
	defer func() {
		os.RemoveAll(work)
		if err != nil { // leave no empty folders; others stay
			os.Remove(dir)
			os.Remove(filepath.Dir(dir))
		}
	}()
	// What the cache holds unharmed stays: somebody may be running it.
	m := manifest{Kubernetes: v.String(), Platform: platform()}
	keep := cachedComponents(dir, v)
	if old, err := readManifest(dir, v); err == nil {
		m = *old
	}
	missing := slices.DeleteFunc(slices.Clone(o.Components), func(c Component) bool { return slices.Contains(keep, c) })
	release := slices.DeleteFunc(slices.Clone(missing), func(c Component) bool { return c == CoreDNS })
	if o.Compiling != nil && slices.ContainsFunc(missing, func(c Component) bool { return c != ServiceController }) {
		o.Compiling()
	}
	if len(release) > 0 {
		etcd, goVersion, err := compile(ctx, work, v, release, o.Progress)
		if err != nil {
			return nil, fmt.Errorf("build Kubernetes %s: %w", v, err)
		}
		if slices.Contains(release, Etcd) { // else it may have been fetched, of another version
			m.Etcd = etcd
		}
		if slices.Contains(release, APIServer) {
			m.Go = goVersion
		}
	}
	if slices.Contains(missing, ServiceController) {
		m.ServiceController = serviceControllerDigest()
	}
	if len(release) < len(missing) {
		m.CoreDNS = coreDNSVersion
		if err := compileCoreDNS(ctx, filepath.Join(work, "dns"), filepath.Join(work, "bin"), o.Progress); err != nil {
			return nil, err
		}
	}

	// The manifest goes last: a reader that comes before sees programs without a stamp and waits for the lock.
	for _, c := range missing {
		if err := os.Rename(filepath.Join(work, "bin", binaryName(c)), filepath.Join(dir, binaryName(c))); err != nil {
			return nil, err
		}
		delete(m.Fetched, c)
	}
	os.RemoveAll(filepath.Join(dir, partsFolder)) // of no use any more
	if err := writeManifest(dir, m, append(keep, missing...)); err != nil {
		return nil, err
	}
	return lookUpCache(o.CacheDir, v, o.Components)
}

// workPrefix starts the names of the folders that builds work in.
const workPrefix = ".build-"

// removeStaleWork removes what killed builds left. The caller holds the lock of the version.
func removeStaleWork(dir string) {
	old, _ := filepath.Glob(filepath.Join(dir, workPrefix+"*")) // the pattern is well formed
	for _, d := range old {
		os.RemoveAll(d)
	}
}

// compile builds the components into work/bin and returns the versions of etcd and of Go.
func compile(ctx context.Context, work string, v Version, components []Component, progress Progress) (etcd, goVersion string, err error) {
	tool, err := newGoTool(work)
	if err != nil {
		return "", "", err
	}
	if goVersion, err = tool.version(ctx); err != nil {
		return "", "", err
	}

	progress("fetching Kubernetes "+v.String(), 0, 0)
	goMod, err := tool.downloadGoMod(ctx, v)
	if err != nil {
		return "", "", err
	}
	upstream, err := modfile.Parse(kubernetesModule+"/go.mod", goMod, nil)
	if err != nil {
		return "", "", err
	}
	if etcd, err = etcdVersion(upstream); err != nil {
		return "", "", err
	}
	missing, err := tool.unpublished(ctx, v, stagingModules(upstream))
	if err != nil {
		return "", "", err
	}
	if err := writeModule(work, goMod, v, missing); err != nil {
		return "", "", err
	}

	var pkgs, names []string
	for _, c := range components {
		pkgs = append(pkgs, c.pkg())
		names = append(names, string(c))
	}
	progress("fetching the modules of Kubernetes "+v.String(), 0, 0)
	err = tool.compilePackages(ctx, "compiling "+strings.Join(names, " and "), filepath.Join(work, "bin"), v.stamps(), pkgs, progress)
	switch {
	case err != nil && len(missing) > 0 && ctx.Err() == nil:
		return "", "", fmt.Errorf("this release is incomplete, %d of its modules have no version %s: %s; choose another patch release (known to work: %s): %w",
			len(missing), v.staging(), strings.Join(missing, ", "), strings.Join(SupportedVersions, ", "), err)
	case err != nil:
		return "", "", err
	}

	if slices.Contains(components, APIServer) {
		got, err := reportedVersion(ctx, filepath.Join(work, "bin", binaryName(APIServer)))
		if err != nil {
			return "", "", err
		}
		if got != v.String() {
			return "", "", fmt.Errorf("the built %s says that it is %s", APIServer, got)
		}
	}
	return etcd, goVersion, nil
}

// writeModule lays out the temporary module.
func writeModule(work string, kubernetesGoMod []byte, v Version, missing []string) error {
	goMod, err := generateModule(kubernetesGoMod, v, missing)
	if err != nil {
		return err
	}
	for _, path := range missing {
		folder := filepath.Join(work, filepath.FromSlash(missingFolder(path)))
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, "go.mod"), []byte("module "+path+"\n"), 0o644); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(work, "go.mod"), goMod, 0o644); err != nil {
		return err
	}
	for c, main := range map[Component]string{Etcd: etcdMain, ServiceController: serviceControllerMain} {
		dir := filepath.Join(work, string(c))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(main), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// goTool runs the go command in the folder of the temporary module.
type goTool struct {
	path, dir string
	env       []string
}

func newGoTool(dir string) (*goTool, error) {
	path, err := exec.LookPath("go")
	if err != nil {
		return nil, fmt.Errorf("the go tool is not in PATH: install Go, have `conformance lab fetch` download released programs, or name a folder that holds kube-apiserver and etcd: %w", err)
	}
	var flags []string
	for f := range strings.FieldsSeq(os.Getenv("GOFLAGS")) {
		// -mod=vendor and the like are about the user's module, not about this one.
		if !strings.HasPrefix(strings.TrimLeft(f, "-"), "mod") {
			flags = append(flags, f)
		}
	}
	env := append(os.Environ(), "GO111MODULE=on", "GOWORK=off", "CGO_ENABLED=0", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH,
		"GOFLAGS="+strings.Join(append(flags, "-mod=mod"), " "))
	return &goTool{path: path, dir: dir, env: env}, nil
}

// run executes the go command and returns what it prints; eachLine, if not nil, sees every line of its standard
// error. The error holds the command's own last words.
func (g *goTool) run(ctx context.Context, eachLine func(string), args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, g.path, args...)
	cmd.Dir, cmd.Env = g.dir, g.env
	processgroup.Own(cmd)
	cmd.Cancel = func() error { return processgroup.Kill(cmd.Process) } // the compilers that it started, too
	cmd.WaitDelay = 5 * time.Second
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	stderr, w := io.Pipe()
	cmd.Stderr = w
	complaints := make(chan []string, 1)
	go func() {
		var kept []string
		scanner := bufio.NewScanner(stderr)
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			line := scanner.Text()
			if eachLine != nil {
				eachLine(line)
			}
			if line != "" && !strings.HasPrefix(line, "go: downloading ") && !packageLine.MatchString(line) {
				kept = append(kept, line)
			}
		}
		_, _ = io.Copy(io.Discard, stderr) // a line beyond the limit must not block the command
		complaints <- kept
	}()
	err := cmd.Run()
	w.Close()
	kept := <-complaints
	if ctx.Err() != nil {
		return stdout.Bytes(), fmt.Errorf("go %s: %w", args[0], context.Cause(ctx))
	}
	if err != nil {
		if len(kept) > 8 {
			kept = kept[len(kept)-8:]
		}
		return stdout.Bytes(), fmt.Errorf("go %s: %w: %s", args[0], err, strings.Join(kept, "; "))
	}
	return stdout.Bytes(), nil
}

// packageLine is what "go build -v" prints when it compiles a package.
var packageLine = regexp.MustCompile(`^[A-Za-z0-9_.~/@-]+$`)

func (g *goTool) version(ctx context.Context) (string, error) {
	out, err := g.run(ctx, nil, "env", "GOVERSION")
	return strings.TrimSpace(string(out)), err
}

// moduleInfo is what the go command reports about a module.
type moduleInfo struct {
	Path, Version, GoMod string
	Error                json.RawMessage // a string or an object, by command
}

// reason is the text of the error on one line; empty if there is none.
func (m *moduleInfo) reason() string {
	var text string
	if json.Unmarshal(m.Error, &text) != nil {
		var object struct{ Err string }
		if json.Unmarshal(m.Error, &object) != nil {
			return string(m.Error)
		}
		text = object.Err
	}
	return strings.Join(strings.Fields(text), " ")
}

// isUnpublished reports whether the go command's words mean that a version does not exist, as opposed to a network that failed.
func isUnpublished(reason string) bool {
	for _, s := range []string{"unknown revision", "404 Not Found", "410 Gone", "no matching versions", "not found", "is not available"} {
		if strings.Contains(reason, s) {
			return true
		}
	}
	return false
}

// downloadGoMod fetches the module k8s.io/kubernetes and returns its go.mod.
func (g *goTool) downloadGoMod(ctx context.Context, v Version) ([]byte, error) {
	out, runErr := g.run(ctx, nil, "mod", "download", "-json", kubernetesModule+"@"+v.String())
	var m moduleInfo
	if err := json.Unmarshal(out, &m); err != nil {
		if runErr != nil {
			return nil, runErr
		}
		return nil, fmt.Errorf("go mod download: %w", err)
	}
	if reason := m.reason(); reason != "" {
		if isUnpublished(reason) {
			return nil, fmt.Errorf("%s is not published as a Go module (%s); the lab is known to work with %s", v, reason, strings.Join(SupportedVersions, ", "))
		}
		return nil, errors.New(reason)
	}
	if runErr != nil {
		return nil, runErr
	}
	return os.ReadFile(m.GoMod)
}

// unpublished reports which of the staging modules of a release were never published: some releases are incomplete.
func (g *goTool) unpublished(ctx context.Context, v Version, paths []string) (missing []string, err error) {
	args := []string{"list", "-m", "-e", "-json"}
	for _, p := range paths {
		args = append(args, p+"@"+v.staging())
	}
	// The command wants a module to stand in.
	goMod := filepath.Join(g.dir, "go.mod")
	if err := os.WriteFile(goMod, []byte("module "+buildModule+"\n"), 0o644); err != nil {
		return nil, err
	}
	out, runErr := g.run(ctx, nil, args...)
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var m moduleInfo
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if reason := m.reason(); reason != "" {
			if !isUnpublished(reason) {
				return nil, fmt.Errorf("look for %s %s: %s", m.Path, v.staging(), reason)
			}
			missing = append(missing, m.Path)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return missing, nil
	}
	return nil, runErr
}

// countPackages says how many packages a build of pkgs compiles at most, fetching their modules.
func (g *goTool) countPackages(ctx context.Context, pkgs []string) (int, error) {
	out, err := g.run(ctx, nil, append([]string{"list", "-deps", "-f", "{{if ne .Name \"\"}}{{.ImportPath}}{{end}}"}, pkgs...)...)
	return bytes.Count(out, []byte("\n")), err
}

// compilePackages builds the programs of pkgs into the folder out and tells progress how many packages are done.
func (g *goTool) compilePackages(ctx context.Context, stage, out, ldflags string, pkgs []string, progress Progress) error {
	total, err := g.countPackages(ctx, pkgs)
	if err != nil {
		return err
	}
	progress(stage, 0, total)
	done := 0
	args := append([]string{"build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", ldflags, "-o", out + string(filepath.Separator)}, pkgs...)
	_, err = g.run(ctx, func(line string) {
		if packageLine.MatchString(line) { // not printed for packages in Go's own cache
			done = min(done+1, total)
			progress(stage, done, total)
		}
	}, args...)
	if err == nil {
		progress(stage, total, total)
	}
	return err
}
