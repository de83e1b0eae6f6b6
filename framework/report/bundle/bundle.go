package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/spec"
)

// Names of files that a bundle holds beside the report and its faces.
const (
	ImplementationFile = "implementation.yaml"
	ManifestFile       = "bundle.yaml"
	LogFile            = "run.log"
)

// Manifest is bundle.yaml: how the bundle was made, and how somebody else makes one of the same claim.
type Manifest struct {
	SchemaVersion int       `json:"schemaVersion"`
	Created       time.Time `json:"created"`
	// Suite is the version of the program, Program the SHA-256 digest of its file, Catalogue that of the requirements.
	Suite     string `json:"suite"`
	Program   string `json:"program"`
	Catalogue string `json:"catalogue"`
	// Reproduce is the command that makes the bundle again.
	Reproduce string `json:"reproduce"`
}

// manifestVersion grows when a field of the manifest changes its meaning or goes.
const manifestVersion = 1

// Seal makes a bundle of a folder that holds a report, its faces, the implementation file and logs. It adds the
// manifest, the digests and, with a key, their signature. It writes the archive beside the folder, and returns its
// path. What a run before has left there is not part of it.
func Seal(dir string, m Manifest, key *Key) (archive string, err error) {
	m.SchemaVersion = manifestVersion
	text, err := yaml.Marshal(m)
	if err != nil {
		return "", err
	}
	if err := os.RemoveAll(filepath.Join(dir, report.PreviousFolder)); err != nil {
		return "", fmt.Errorf("seal bundle: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, ManifestFile), text, 0o644); err != nil {
		return "", fmt.Errorf("seal bundle: %w", err)
	}
	if err := Sum(dir); err != nil {
		return "", err
	}
	if key != nil {
		if err := key.Sign(dir); err != nil {
			return "", err
		}
	}
	files, err := openFolder(dir)
	if err != nil {
		return "", err
	}
	name := filepath.Base(filepath.Clean(dir))
	data, err := files.archive(name)
	if err != nil {
		return "", fmt.Errorf("seal bundle: %w", err)
	}
	archive = filepath.Join(filepath.Dir(filepath.Clean(dir)), name+".tar.gz")
	if err := os.WriteFile(archive, data, 0o644); err != nil {
		return "", fmt.Errorf("seal bundle: %w", err)
	}
	return archive, nil
}

// Manifest reads bundle.yaml.
func (f Files) Manifest() (*Manifest, error) {
	m := &Manifest{}
	if err := yaml.UnmarshalStrict(f[ManifestFile], m); err != nil {
		return nil, fmt.Errorf("%s: %w", ManifestFile, err)
	}
	if m.SchemaVersion != manifestVersion {
		return nil, fmt.Errorf("%s has schema version %d, this program knows %d", ManifestFile, m.SchemaVersion, manifestVersion)
	}
	return m, nil
}

// Sum writes the digests of the files of a folder anew.
func Sum(dir string) error {
	files, err := openFolder(dir)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, SumsFile), files.sums(), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write digests: %w", err)
	}
	return nil
}

// Is reports whether a folder is a bundle.
func Is(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, SumsFile))
	return !errors.Is(err, fs.ErrNotExist)
}

// Claim is what an implementation file says, as far as a report must follow it.
type Claim struct {
	Submitter    report.Submitter
	Suites       []string
	Features     []string
	Profiles     []string
	Declarations map[string]string
}

// Suite is what Verify needs to know of the suites of this program.
type Suite struct {
	// Program is the SHA-256 digest of the file of this program, as in Manifest.
	Program string
	// ReadClaim reads an implementation file.
	ReadClaim func(data []byte) (Claim, error)
	// Claimed are the requirements that a claim covers and that a check decides.
	Claimed func(c Claim) map[spec.ID]bool
	// Checks are the names of the checks that a run with the selection has results of.
	Checks func(*report.Selection) []string
}
