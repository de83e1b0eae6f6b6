package download

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// Sums are SHA-256 checksums in hexadecimal, by the names of files.
type Sums map[string]string

var sumPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// ParseSums reads what sha256sum writes: a line for each file. alone is the name of the file that a checksum without a
// name is of. It is empty where each needs one.
func ParseSums(text, alone string) (Sums, error) {
	sums := Sums{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		sum, named := strings.ToLower(fields[0]), alone
		if len(fields) == 2 {
			named = path.Clean(strings.TrimPrefix(fields[1], "*")) // which marks binary files
		}
		if !sumPattern.MatchString(sum) || len(fields) > 2 || named == "" {
			return nil, fmt.Errorf("line %d is no SHA-256 checksum with the name of a file", number)
		}
		if other := sums[named]; other != "" && other != sum {
			return nil, fmt.Errorf("line %d: a second checksum of %s", number, named)
		}
		sums[named] = sum
	}
	if len(sums) == 0 {
		return nil, fmt.Errorf("no checksum is in it")
	}
	return sums, nil
}

// Of returns the checksum of the file at a path. It looks for the whole path, and then for its last part. It is empty
// if there is none.
func (s Sums) Of(file string) string {
	if sum := s[file]; sum != "" {
		return sum
	}
	return s[path.Base(file)]
}
