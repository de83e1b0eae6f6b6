package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"aead.dev/minisign"
)

// SignatureFile is the signature of SumsFile, and so of every file, as the program minisign writes and verifies it.
const SignatureFile = SumsFile + ".minisig"

// Key signs bundles.
type Key struct{ private minisign.PrivateKey }

// ReadKey reads a secret key of minisign. Only an encrypted one asks for the password.
func ReadKey(path string, password func() (string, error)) (*Key, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	if !minisign.IsEncrypted(text) {
		k := &Key{}
		if err := k.private.UnmarshalText(text); err != nil {
			return nil, fmt.Errorf("read the key %s, which is no secret key of minisign: %w", path, err)
		}
		return k, nil
	}
	secret, err := password()
	if err != nil {
		return nil, err
	}
	private, err := minisign.DecryptKey(secret, text)
	if err != nil {
		return nil, fmt.Errorf("decrypt the key %s: %w", path, err)
	}
	return &Key{private}, nil
}

// Sign signs the digests of a folder.
func (k *Key) Sign(dir string) error {
	sums, err := os.ReadFile(filepath.Join(dir, SumsFile))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, SignatureFile), minisign.Sign(k.private, sums), 0o644)
	}
	if err != nil {
		return fmt.Errorf("sign bundle: %w", err)
	}
	return nil
}

// IsSigned reports whether a folder is a signed bundle.
func IsSigned(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, SignatureFile))
	return !errors.Is(err, fs.ErrNotExist)
}

// PublicKey verifies signatures.
type PublicKey struct{ public minisign.PublicKey }

// ReadPublicKey reads a public key of minisign.
func ReadPublicKey(path string) (*PublicKey, error) {
	public, err := minisign.PublicKeyFromFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the public key %s: %w", path, err)
	}
	return &PublicKey{public}, nil
}

// VerifySignature finds what is wrong with the signature: "" if nothing is.
func (files Files) VerifySignature(key *PublicKey) (finding string) {
	signature, signed := files[SignatureFile]
	switch {
	case !signed:
		return "it is not signed"
	case !minisign.Verify(key.public, files[SumsFile], signature):
		return "the signature is not of this key, or of other digests"
	}
	return ""
}
