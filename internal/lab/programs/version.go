// Package programs has the programs that a lab runs: which versions fit together, and how they are built, downloaded or found in a folder.
package programs

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/service-conformance/conformance/framework/spec"
)

// DefaultVersion is the Kubernetes version that the lab runs when none is asked for.
const DefaultVersion = "v1.37.1"

// SupportedVersions are the Kubernetes versions that the lab was seen to build and run, oldest first. Other
// versions from v1.28 on may work: what decides is whether all their modules are published.
var SupportedVersions = []string{"v1.28.15", "v1.31.0", "v1.33.13", "v1.34.4", "v1.35.4", "v1.36.3", "v1.37.1"}

// Version is a released Kubernetes version.
type Version spec.Version

// oldestMinor is the oldest minor version that the lab's flags and build recipe fit.
const oldestMinor = 28

// ParseVersion reads "v1.37.1" or "1.37.1"; empty means DefaultVersion. Only releases have the modules that the lab builds.
func ParseVersion(s string) (Version, error) {
	s = cmp.Or(s, DefaultVersion)
	parsed, err := spec.ParseVersion(s)
	v := Version(parsed)
	if err != nil || "v"+strings.TrimPrefix(s, "v") != v.String() {
		return Version{}, fmt.Errorf("kubernetes version %q: want a release such as %s", s, DefaultVersion)
	}
	if v.Minor < oldestMinor {
		return Version{}, fmt.Errorf("kubernetes version %q: the oldest that the lab can run is v1.%d; it is known to work with %s",
			s, oldestMinor, strings.Join(SupportedVersions, ", "))
	}
	return v, nil
}

func (v Version) String() string { return spec.Version(v).String() }

// staging is the version of the modules k8s.io/api, k8s.io/client-go … that belong to this release.
func (v Version) staging() string { return fmt.Sprintf("v0.%d.%d", v.Minor, v.Patch) }

// ServiceCIDRAPI reports whether networking.k8s.io/v1 serves ServiceCIDR and IPAddress objects by default (KEP-1880).
func (v Version) ServiceCIDRAPI() bool { return v.Minor >= 33 }

// LargeRanges reports whether kube-apiserver may be given a range of more than 2^20 addresses. Until v1.34 it keeps a
// bitmap of the range in etcd beside the IPAddress objects (feature gate DisableAllocatorDualWrite).
func (v Version) LargeRanges() bool { return v.Minor >= 34 }

// stamps are the linker flags that make the binaries report their version. Without them they report a
// placeholder that some clients cannot parse.
func (v Version) stamps() string {
	const p = "k8s.io/component-base/version."
	var b strings.Builder
	b.WriteString("-s -w")
	for _, s := range []struct{ name, value string }{
		{"gitVersion", v.String()},
		{"gitMajor", "1"},
		{"gitMinor", strconv.Itoa(v.Minor)},
		{"gitCommit", v.String()},
		{"gitTreeState", "clean"},
		{"buildDate", "1970-01-01T00:00:00Z"}, // a constant keeps builds reproducible
	} {
		fmt.Fprintf(&b, " -X %s%s=%s", p, s.name, s.value)
	}
	return b.String()
}

// ServesServicesOnly reports whether API servers of this version start sooner that way. Those of 1.37 do, while a run
// on 1.31 took half as long again. The versions between were not tried.
func (v Version) ServesServicesOnly() bool { return v.Minor >= 37 }
