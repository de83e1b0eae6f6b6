package bundle

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// SumsFile holds the SHA-256 digest of every other file, as sha256sum writes and checks it.
const SumsFile = "SHA256SUMS"

// sums is the text of the file. The signature is of this text, so it is not in it.
func (files Files) sums() []byte {
	var b bytes.Buffer
	for _, name := range files.names() {
		if name != SumsFile && name != SignatureFile {
			fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(files[name]), name)
		}
	}
	return b.Bytes()
}

// verifySums finds files that differ from their digests, that are missing, and that have none.
func (files Files) verifySums() (findings []string) {
	find := func(format string, args ...any) { findings = append(findings, fmt.Sprintf(format, args...)) }
	text, there := files[SumsFile]
	if !there {
		return []string{SumsFile + " is missing"}
	}
	named := map[string]bool{SumsFile: true, SignatureFile: true}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		digest, name, ok := strings.Cut(lines.Text(), "  ")
		if raw, err := hex.DecodeString(digest); !ok || err != nil || len(raw) != sha256.Size {
			find("%s:%d: this is no digest and name of a file", SumsFile, n)
			continue
		}
		data, there := files[name]
		switch {
		case named[name]:
			find("%s:%d: %q stands there twice", SumsFile, n, name)
		case !there:
			find("%q is missing, which %s names", name, SumsFile)
		case fmt.Sprintf("%x", sha256.Sum256(data)) != digest:
			find("%q differs from its digest in %s", name, SumsFile)
		}
		named[name] = true
	}
	if err := lines.Err(); err != nil {
		find("%s: %v", SumsFile, err)
	}
	for _, name := range files.names() {
		if !named[name] {
			find("%q has no digest in %s", name, SumsFile)
		}
	}
	return findings
}
