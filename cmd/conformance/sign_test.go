package main

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aead.dev/minisign"

	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/report/bundle"
)

// keyPair makes a pair of minisign keys, the secret one encrypted if there is a password, and returns the paths of their files.
func keyPair(t *testing.T, password string) (secret, public string) {
	t.Helper()
	p, s, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	if password == "" {
		text, err = s.MarshalText()
	} else {
		text, err = minisign.EncryptKey(password, s)
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	publicText, err := p.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	secret, public = filepath.Join(dir, "minisign.key"), filepath.Join(dir, "minisign.pub")
	for path, data := range map[string][]byte{secret: text, public: publicText} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return secret, public
}

// signed certifies with a key, and returns the folder of the bundle.
func signed(t *testing.T, env []string, secret string) (bundleDir, stderr string, code int) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "implementation.yaml"), []byte(claimOfTests+"suites: [apischema]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, stderr, code = conformanceWith(t, dir, env, "certify", "--implementation", "implementation.yaml", "--out", "b", "--sign", secret)
	return filepath.Join(dir, "b"), stderr, code
}

func TestASignedBundleIsVerifiedByItsKeyAlone(t *testing.T) {
	secret, public := keyPair(t, "")
	_, other := keyPair(t, "")
	dir, stderr, code := signed(t, nil, secret)
	if code != report.ExitConformant {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	files, err := bundle.Open(dir + ".tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{bundle.ManifestFile, report.JSONFile} {
		if strings.Contains(string(files[name]), filepath.Base(secret)) {
			t.Errorf("%s tells where the key is", name)
		}
	}
	verify := func(args ...string) (string, int) {
		stdout, stderr, code := conformance(t, t.TempDir(), append([]string{"report", "verify"}, args...)...)
		return stdout + stderr, code
	}
	if said, code := verify(dir+".tar.gz", "--key", public); code != report.ExitConformant || strings.Contains(said, "signed") {
		t.Errorf("exit code %d: %s", code, said)
	}
	if said, code := verify(dir); code != report.ExitConformant || !strings.Contains(said, "verify the signature with --key") {
		t.Errorf("without a key: exit code %d: %s", code, said)
	}
	if said, code := verify(dir, "--key", other); code != report.ExitNonConformant || !strings.Contains(said, "the signature is not of this key") {
		t.Errorf("with another key: exit code %d: %s", code, said)
	}
	if said, code := verify(certified(t, "unsigned"), "--key", public); code != report.ExitNonConformant || !strings.Contains(said, "it is not signed") {
		t.Errorf("unsigned: exit code %d: %s", code, said)
	}
	if said, code := verify(dir, "--key", secret); code != report.ExitUsage || !strings.Contains(said, "read the public key") {
		t.Errorf("a secret key for a public one: exit code %d: %s", code, said)
	}
	if _, stderr, code := conformance(t, t.TempDir(), "report", "render", dir); code != report.ExitUsage || !strings.Contains(stderr, "--to") {
		t.Errorf("render into it: exit code %d: %s", code, stderr)
	}
	// Changing a file and its digest is not enough to sign the digests.
	if err := os.WriteFile(filepath.Join(dir, bundle.LogFile), []byte("all was well"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := bundle.Sum(dir); err != nil {
		t.Fatal(err)
	}
	if said, code := verify(dir, "--key", public); code != report.ExitNonConformant || !strings.Contains(said, "or of other digests") {
		t.Errorf("changed: exit code %d: %s", code, said)
	}
}

func TestAKeyThatCannotBeUsedIsToldBeforeTheRun(t *testing.T) {
	plain, public := keyPair(t, "")
	encrypted, _ := keyPair(t, "open")
	for name, c := range map[string]struct {
		env    []string
		secret string
		says   string
	}{
		"no password":    {nil, encrypted, "put its password into " + passwordVariable},
		"wrong password": {[]string{passwordVariable + "=shut"}, encrypted, "decrypt the key"},
		"no file":        {nil, plain + ".gone", "read the key"},
		"no secret key":  {nil, public, "read the key"},
		"not a key":      {nil, "implementation.yaml", "read the key"},
	} {
		dir, stderr, code := signed(t, c.env, c.secret)
		if code != report.ExitUsage || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: exit code %d: %s", name, code, stderr)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: there is a bundle", name)
		}
	}
	if dir, stderr, code := signed(t, []string{passwordVariable + "=open"}, encrypted); code != report.ExitConformant || !bundle.IsSigned(dir) {
		t.Errorf("the right password: exit code %d: %s", code, stderr)
	}
}
