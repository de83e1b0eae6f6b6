package spec

import (
	"fmt"

	"github.com/blang/semver/v4"
)

// Version is a release of Kubernetes 1: its minor version and its patch.
type Version struct{ Minor, Patch int }

// maxVersionPart bounds the parts of a version: a larger number is a typing error.
const maxVersionPart = 9999

// ParseVersion reads "v1.37.1", "1.37" and what vendors make of them ("v1.37.1-gke.100", "v1.37.1+k3s1").
func ParseVersion(text string) (Version, error) {
	v, err := semver.ParseTolerant(text)
	if err != nil || v.Major != 1 || v.Minor > maxVersionPart || v.Patch > maxVersionPart {
		return Version{}, fmt.Errorf("kubernetes version %q: want one such as v1.37.1", text)
	}
	return Version{Minor: int(v.Minor), Patch: int(v.Patch)}, nil
}

func (v Version) String() string { return fmt.Sprintf("v1.%d.%d", v.Minor, v.Patch) }
