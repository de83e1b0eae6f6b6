package programs

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/service-conformance/conformance/internal/lab/download"
	"github.com/service-conformance/conformance/internal/scratch"
)

// FetchOptions say what to fetch.
type FetchOptions struct {
	// Version of Kubernetes; empty means DefaultVersion.
	Version string
	// EtcdVersion is that of etcd; empty means one that fits the version of Kubernetes, or whichever the cache holds.
	EtcdVersion string
	// CacheDir is where the programs are kept; empty means DefaultCacheDir.
	CacheDir string
	// Sources are where they come from; zero means OfficialSources.
	Sources Sources
	// Sums are the checksums of all files, by their paths at the source or their names; none means to ask the source for them.
	Sums download.Sums
	// Say is told a line of what takes longer than usual. Progress is told how many bytes are there of how many (0
	// while that is not known). They are never called concurrently, and may be nil.
	Say      func(line string)
	Progress func(done, total int64)
}

// Fetched is what Fetch returns.
type Fetched struct {
	*Binaries
	// New are the programs that were downloaded now.
	New []Component
	// Lacking are the programs that a lab with nodes could use and that were not downloaded, each with the reason.
	Lacking map[Component]string
}

// partsFolder, in a folder of the cache, holds downloads until all of them are there.
const partsFolder = ".fetch"

// Fetch downloads the released programs of a Kubernetes version into the cache, where New and Up find them, unless the
// cache holds them unharmed. Each is verified by its checksum, and none is put there before all are. What has come when
// Fetch fails is kept, and the next call continues. Nothing is kept of a source that a checksum does not fit. Processes
// that fetch or build the same version wait for each other.
func Fetch(ctx context.Context, o FetchOptions) (_ *Fetched, err error) {
	v, err := ParseVersion(o.Version)
	if err != nil {
		return nil, err
	}
	etcd := etcdFor(v)
	if o.EtcdVersion != "" {
		if etcd, err = parseEtcd(o.EtcdVersion); err != nil {
			return nil, err
		}
	}
	if runtime.GOOS != "linux" {
		return nil, errors.New("there are released programs for Linux only: `conformance lab build` builds them for this system")
	}
	if o.CacheDir == "" {
		if o.CacheDir, err = DefaultCacheDir(); err != nil {
			return nil, err
		}
	}
	if o.Sources == (Sources{}) {
		o.Sources = OfficialSources()
	}
	f := newFetch(o, v, etcd)
	l, err := scratch.LockFile(ctx, lockOf(o.CacheDir, v), func() {
		f.say("waiting for another process that fetches or builds Kubernetes " + v.String())
	})
	if err != nil {
		return nil, err
	}
	defer l.Remove()
	if err := os.MkdirAll(f.parts(), 0o755); err != nil {
		return nil, err
	}
	defer f.removeEmpty()
	got, err := f.run(ctx)
	mismatch, wrong := (*download.MismatchError)(nil), (*wrongFileError)(nil)
	if errors.As(err, &mismatch) || errors.As(err, &wrong) {
		return nil, errors.Join(err, os.RemoveAll(f.parts()))
	}
	return got, err
}

// wrongFileError says that a file is whole, and not the one that was wanted.
type wrongFileError struct{ error }

func (e *wrongFileError) Unwrap() error { return e.error }

// lockOf is the file by which processes that fill the same folder of the cache wait for each other.
func lockOf(cacheDir string, v Version) string { return filepath.Join(cacheDir, v.String()+".lock") }

// fetch is one call of Fetch.
type fetch struct {
	o      FetchOptions
	v      Version
	etcd   string
	dir    string // of the cache
	client *download.Client

	mu sync.Mutex // of what is told
}

func newFetch(o FetchOptions, v Version, etcd string) *fetch {
	f := &fetch{o: o, v: v, etcd: etcd, dir: cacheFolder(o.CacheDir, v)}
	f.client = download.New(f.say)
	return f
}

func (f *fetch) parts() string { return filepath.Join(f.dir, partsFolder) }

func (f *fetch) say(line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.o.Say != nil {
		f.o.Say(line)
	}
}

// removeEmpty leaves no folder in which nothing is.
func (f *fetch) removeEmpty() {
	os.Remove(f.parts())
	os.Remove(f.dir)
	os.Remove(filepath.Dir(f.dir))
}

// run fetches what the cache does not hold. The lock is held.
func (f *fetch) run(ctx context.Context) (*Fetched, error) {
	keep := cachedComponents(f.dir, f.v)
	m := manifest{Kubernetes: f.v.String(), Platform: platform()}
	if old, err := readManifest(f.dir, f.v); err == nil {
		m = *old
	}
	if f.o.EtcdVersion != "" && m.Etcd != f.etcd {
		keep = slices.DeleteFunc(keep, func(c Component) bool { return c == Etcd })
	}
	missing := slices.DeleteFunc(published(f.o.Sources, f.v, f.etcd, runtime.GOARCH), func(p publication) bool { return slices.Contains(keep, p.component) })
	got := &Fetched{Lacking: map[Component]string{}}
	if len(missing) > 0 {
		missing, sums, err := f.checksums(ctx, missing, got.Lacking)
		if err == nil {
			err = f.download(ctx, missing, sums)
		}
		if err == nil {
			got.New, err = f.install(ctx, &m, keep, missing, sums)
		}
		if err != nil {
			return nil, err
		}
		keep = append(keep, got.New...)
	}
	if !slices.Contains(keep, ServiceController) {
		got.Lacking[ServiceController] = "it is a library of Kubernetes, which nobody publishes as a program"
	}
	var err error
	got.Binaries, err = lookUpCache(f.o.CacheDir, f.v, keep)
	return got, err
}

// checksums returns what there is of the publications, and the checksums of their files. The checksum of a program that a lab runs without may be missing.
func (f *fetch) checksums(ctx context.Context, all []publication, lacking map[Component]string) (there []publication, sums map[Component]string, err error) {
	texts := make([]string, len(all))
	errs := make([]error, len(all))
	if f.o.Sums == nil {
		var asked sync.WaitGroup
		for i, p := range all {
			asked.Go(func() { texts[i], errs[i] = f.client.Text(ctx, p.source.JoinPath(p.sums)) })
		}
		asked.Wait()
	}
	sums = map[Component]string{}
	for i, p := range all {
		var sum string
		switch {
		case errs[i] != nil && p.optional && download.IsMissing(errs[i]):
			lacking[p.component] = errs[i].Error()
			continue
		case errs[i] != nil && download.IsMissing(errs[i]):
			known := ""
			if p.component != Etcd {
				known = "; the lab is known to work with " + strings.Join(SupportedVersions, ", ")
			}
			return nil, nil, fmt.Errorf("%s is not published there: %w%s", f.title(p.component), errs[i], known)
		case errs[i] != nil:
			return nil, nil, fmt.Errorf("fetch the checksum of %s: %w", p.component, errs[i])
		case f.o.Sums != nil:
			sum = f.o.Sums.Of(p.file)
		default:
			listed, err := download.ParseSums(texts[i], path.Base(p.file))
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", p.source.JoinPath(p.sums).Redacted(), err)
			}
			sum = listed.Of(p.file)
		}
		switch {
		case sum == "" && p.optional:
			lacking[p.component] = "there is no checksum of " + path.Base(p.file)
			continue
		case sum == "":
			return nil, nil, fmt.Errorf("there is no checksum of %s", p.file)
		}
		sums[p.component] = sum
		there = append(there, p)
	}
	return there, sums, nil
}

// title is what people call a program and its version.
func (f *fetch) title(c Component) string {
	switch c {
	case Etcd:
		return "etcd " + f.etcd
	case CoreDNS:
		return "CoreDNS " + coreDNSVersion
	}
	return string(c) + " " + f.v.String()
}

// partOf is where the file of a publication comes to. Another file has another name, so that no part continues one that it does not belong to.
func (f *fetch) partOf(p publication, sum string) string {
	return filepath.Join(f.parts(), string(p.component)+"-"+sum[:16])
}

// progressEvery is how often it is told how far the downloads are.
const progressEvery = 200 * time.Millisecond

// download gets all files side by side. The first one that fails ends the others.
func (f *fetch) download(ctx context.Context, all []publication, sums map[Component]string) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	transfers := make([]download.Transfer, len(all))
	errs := make([]error, len(all))
	var transferred sync.WaitGroup
	for i, p := range all {
		transferred.Go(func() {
			errs[i] = f.client.Get(ctx, p.address(), sums[p.component], f.partOf(p, sums[p.component]), &transfers[i])
			if errs[i] != nil {
				errs[i] = fmt.Errorf("fetch %s: %w", f.title(p.component), errs[i])
				end(errs[i])
			}
		})
	}
	done := make(chan bool)
	go func() {
		transferred.Wait()
		close(done)
	}()
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for told := false; ; {
		select {
		case <-ticker.C:
		case <-done:
			told = true
		}
		f.tell(transfers)
		if told {
			break
		}
	}
	for _, err := range errs {
		if mismatch := (*download.MismatchError)(nil); errors.As(err, &mismatch) {
			return err
		}
	}
	return context.Cause(ctx)
}

func (f *fetch) tell(transfers []download.Transfer) {
	if f.o.Progress == nil {
		return
	}
	var done, total int64
	known := true
	for i := range transfers {
		d, t := transfers[i].Bytes()
		done, total, known = done+d, total+t, known && t > 0
	}
	if !known {
		total = 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.o.Progress(done, total)
}

// install takes the programs out of what was downloaded, sees that they are what they should be, and puts them into the cache.
func (f *fetch) install(ctx context.Context, m *manifest, keep []Component, all []publication, sums map[Component]string) (installed []Component, err error) {
	programs := map[Component]string{}
	for _, p := range all {
		program := f.partOf(p, sums[p.component])
		if p.member != "" {
			archive := program
			program = filepath.Join(f.parts(), binaryName(p.component))
			if err := extract(archive, p.member, program); err != nil {
				return nil, &wrongFileError{fmt.Errorf("%s: %w", p.address().Redacted(), err)}
			}
		}
		if err := os.Chmod(program, 0o755); err != nil {
			return nil, err
		}
		if err := f.checkProgram(ctx, p.component, program); err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, &wrongFileError{fmt.Errorf("%s: %w", p.address().Redacted(), err)}
		}
		programs[p.component] = program
	}
	if m.Fetched == nil {
		m.Fetched = map[Component]string{}
	}
	// The manifest goes last: a reader that comes before sees programs without a stamp and waits for the lock.
	for _, p := range all {
		if err := os.Rename(programs[p.component], filepath.Join(f.dir, binaryName(p.component))); err != nil {
			return nil, err
		}
		installed = append(installed, p.component)
		m.Fetched[p.component] = (&url.URL{Scheme: p.source.Scheme, Host: p.source.Host, Path: p.address().Path}).String()
		switch p.component {
		case Etcd:
			m.Etcd = f.etcd
		case CoreDNS:
			m.CoreDNS = coreDNSVersion
		case APIServer:
			m.Go = ""
			if info, err := buildinfo.ReadFile(filepath.Join(f.dir, binaryName(APIServer))); err == nil {
				m.Go = info.GoVersion
			}
		}
	}
	if err := writeManifest(f.dir, *m, append(slices.Clone(keep), installed...)); err != nil {
		return nil, err
	}
	return installed, os.RemoveAll(f.parts())
}

// checkProgram has a program say its version.
func (f *fetch) checkProgram(ctx context.Context, c Component, program string) error {
	want, got := f.v.String(), ""
	var err error
	switch c {
	case CoreDNS:
		return nil
	case Etcd:
		want = f.etcd
		got, err = etcdSays(ctx, program)
	default:
		got, err = reportedVersion(ctx, program)
	}
	if err == nil && got != want {
		err = fmt.Errorf("the program says that it is %s, not %s", got, want)
	}
	return err
}

// extract writes one file of a compressed archive.
func extract(archive, member, to string) error {
	in, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer in.Close()
	unzipped, err := gzip.NewReader(in)
	if err != nil {
		return fmt.Errorf("read the archive: %w", err)
	}
	for entries := tar.NewReader(unzipped); ; {
		entry, err := entries.Next()
		switch {
		case errors.Is(err, io.EOF):
			return fmt.Errorf("the archive has no file %s", member)
		case err != nil:
			return fmt.Errorf("read the archive: %w", err)
		case path.Clean(entry.Name) != member || entry.Typeflag != tar.TypeReg:
			continue
		}
		out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o700)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, io.LimitReader(entries, maxProgram))
		return errors.Join(err, out.Close())
	}
}

// maxProgram is more than any program has, so that no archive fills the disk.
const maxProgram = 1 << 30
