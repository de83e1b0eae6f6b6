package programs

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/service-conformance/conformance/internal/lab/isolation"
	"github.com/service-conformance/conformance/internal/wholefile"
)

// manifestFile names the file beside cached binaries that says what they are.
const manifestFile = "manifest.json"

// manifest describes the binaries of one folder of the cache.
type manifest struct {
	// Kubernetes, Etcd, CoreDNS and Go are versions, for example "v1.37.1", "v3.7.0", "v1.14.6" and "go1.26.8".
	Kubernetes string `json:"kubernetes"`
	Etcd       string `json:"etcd"`
	CoreDNS    string `json:"coredns,omitempty"`
	// ServiceController is the digest of the source of the program, of which the rest is that of the release.
	ServiceController string                  `json:"serviceController,omitempty"`
	Go                string                  `json:"go"`
	Platform          string                  `json:"platform"` // "linux/amd64"
	Binaries          map[Component]fileStamp `json:"binaries"`
	// Fetched says of programs that were not built where they came from.
	Fetched map[Component]string `json:"fetched,omitempty"`
}

// fileStamp is what a file must look like.
type fileStamp struct {
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// errNotCached says that the cache holds nothing for a version, or not all that is asked for.
var errNotCached = errors.New("not in the cache")

// corruptError says that cached binaries are not what they were when they were built.
type corruptError struct{ dir, reason string }

func (e *corruptError) Error() string {
	return fmt.Sprintf("cached binaries in %s are damaged (%s): remove that folder and build again", e.dir, e.reason)
}

// DefaultCacheDir is where binaries are kept for the user: <user cache>/conformance/kubernetes.
func DefaultCacheDir() (string, error) {
	d, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache folder (set HOME or XDG_CACHE_HOME, or name a folder with binaries): %w", err)
	}
	return filepath.Join(d, "conformance", "kubernetes"), nil
}

// cacheFolder is the folder of one version for the platform that the program runs on.
func cacheFolder(cacheDir string, v Version) string {
	return filepath.Join(cacheDir, v.String(), runtime.GOOS+"-"+runtime.GOARCH)
}

// platform is what the manifest records.
func platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

// binaryName is the file name of a component on this platform.
func binaryName(c Component) string {
	if runtime.GOOS == "windows" {
		return string(c) + ".exe"
	}
	return string(c)
}

// stampFile reads a file to the end.
func stampFile(path string) (fileStamp, error) {
	f, err := os.Open(path)
	if err != nil {
		return fileStamp{}, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return fileStamp{}, fmt.Errorf("read %s: %w", path, err)
	}
	return fileStamp{Size: n, SHA256: hex.EncodeToString(h.Sum(nil))}, nil
}

// writeManifest stamps the components in dir.
func writeManifest(dir string, m manifest, components []Component) error {
	m.Binaries = map[Component]fileStamp{}
	for _, c := range components {
		s, err := stampFile(filepath.Join(dir, binaryName(c)))
		if err != nil {
			return err
		}
		m.Binaries[c] = s
	}
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return wholefile.Write(filepath.Join(dir, manifestFile), append(b, '\n'), 0o644) // others may be reading it
}

// readManifest returns the manifest of a folder of the cache. The error is errNotCached if there is none. It is a
// *corruptError if it cannot be understood or belongs to something else.
func readManifest(dir string, v Version) (*manifest, error) {
	b, err := os.ReadFile(filepath.Join(dir, manifestFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errNotCached
	case err != nil:
		return nil, err
	}
	var m manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, &corruptError{dir, manifestFile + " is not readable: " + err.Error()}
	}
	if m.Kubernetes != v.String() {
		return nil, &corruptError{dir, fmt.Sprintf("they are Kubernetes %s instead of %s", m.Kubernetes, v)}
	}
	if m.Platform != platform() {
		return nil, &corruptError{dir, fmt.Sprintf("they are for %s instead of %s", m.Platform, platform())}
	}
	return &m, nil
}

// verifyBinaries compares the components with what the manifest says: size and mode, then, if asked for, the checksum.
func verifyBinaries(dir string, m *manifest, components []Component, checksums bool) error {
	for _, c := range components {
		want, ok := m.Binaries[c]
		if !ok || c == CoreDNS && m.CoreDNS != coreDNSVersion || c == ServiceController && m.ServiceController != serviceControllerDigest() {
			return errNotCached
		}
		info, err := os.Stat(filepath.Join(dir, binaryName(c)))
		if errors.Is(err, fs.ErrNotExist) {
			return &corruptError{dir, string(c) + " is missing"}
		} else if err != nil {
			return err
		}
		if info.Size() != want.Size {
			return &corruptError{dir, fmt.Sprintf("%s has %d bytes instead of %d", c, info.Size(), want.Size)}
		}
		if runtime.GOOS != "windows" && info.Mode()&0o111 == 0 {
			return &corruptError{dir, string(c) + " is not executable"}
		}
	}
	if !checksums {
		return nil
	}
	errs := make([]error, len(components))
	var verified sync.WaitGroup
	for i, c := range components {
		verified.Go(func() {
			got, err := stampFile(filepath.Join(dir, binaryName(c)))
			if err == nil && got.SHA256 != m.Binaries[c].SHA256 {
				err = &corruptError{dir, string(c) + " has another checksum than when it was built"}
			}
			errs[i] = err
		})
	}
	verified.Wait()
	return cmp.Or(errs...)
}

// lookUpCache returns the binaries of a version if the cache holds them unharmed.
func lookUpCache(cacheDir string, v Version, components []Component) (*Binaries, error) {
	dir := cacheFolder(cacheDir, v)
	m, err := readManifest(dir, v)
	if err != nil {
		return nil, err
	}
	// What runs isolated was started by a process that has just read the files.
	if err := verifyBinaries(dir, m, components, !isolation.Isolated()); err != nil {
		return nil, err
	}
	b := &Binaries{Dir: dir, Version: v.String(), EtcdVersion: m.Etcd, GoVersion: m.Go}
	if slices.Contains(components, CoreDNS) {
		b.coreDNS = m.CoreDNS
	}
	return b, nil
}

// lookUpFetched is lookUpCache for a version that was fetched: programs that a lab runs without may be missing, because nobody publishes them. A build would take
// the time that fetching has spared.
func lookUpFetched(cacheDir string, v Version, components []Component) (*Binaries, error) {
	dir := cacheFolder(cacheDir, v)
	m, err := readManifest(dir, v)
	if err != nil {
		return nil, err
	}
	if m.Fetched[APIServer] == "" && m.Fetched[Etcd] == "" {
		return nil, errNotCached
	}
	there := withoutOptional(components)
	var lacking []Component
	for _, c := range components {
		switch {
		case slices.Contains(there, c):
		case verifyBinaries(dir, m, []Component{c}, false) == nil:
			there = append(there, c)
		default:
			lacking = append(lacking, c)
		}
	}
	b, err := lookUpCache(cacheDir, v, there)
	if err != nil {
		return nil, err
	}
	b.lacking = lacking
	return b, nil
}

// cachedComponents lists what a folder of the cache holds unharmed, so that a build of more keeps them.
func cachedComponents(dir string, v Version) []Component {
	m, err := readManifest(dir, v)
	if err != nil {
		return nil
	}
	var cs []Component
	for c := range m.Binaries {
		if verifyBinaries(dir, m, []Component{c}, true) == nil {
			cs = append(cs, c)
		}
	}
	slices.Sort(cs)
	return cs
}
