package programs

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Sources are where released programs are downloaded from.
type Sources struct {
	// Kubernetes and GitHub are the addresses under which files have the paths that they have at dl.k8s.io and github.com.
	Kubernetes, GitHub *url.URL
}

// The hosts of the official downloads.
const (
	kubernetesHost = "dl.k8s.io"
	gitHubHost     = "github.com"
)

// OfficialSources are those of the projects themselves.
func OfficialSources() Sources {
	return Sources{Kubernetes: &url.URL{Scheme: "https", Host: kubernetesHost}, GitHub: &url.URL{Scheme: "https", Host: gitHubHost}}
}

// ParseSources reads the addresses of mirrors: one for both hosts, or HOST=URL for one of them. What none is named for is official.
func ParseSources(mirrors []string) (Sources, error) {
	s := OfficialSources()
	for _, m := range mirrors {
		host, address, one := strings.Cut(m, "=")
		if !one || strings.Contains(host, "/") {
			host, address = "", m
		}
		u, err := url.Parse(address)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.RawQuery != "" || u.Fragment != "" {
			return Sources{}, fmt.Errorf("%q is no address of a mirror: name one such as https://mirror.example/k8s", address)
		}
		switch host {
		case "":
			s = Sources{u, u}
		case kubernetesHost:
			s.Kubernetes = u
		case gitHubHost:
			s.GitHub = u
		default:
			return Sources{}, fmt.Errorf("nothing is downloaded from %q: there are %s and %s", host, kubernetesHost, gitHubHost)
		}
	}
	return s, nil
}

// publication is a program that its project publishes.
type publication struct {
	component Component
	source    *url.URL
	file      string // its path at the source
	sums      string // the path of the file with its checksum
	member    string // the program in the archive; empty if the file is the program
	optional  bool   // a lab runs without it
}

func (p *publication) address() *url.URL { return p.source.JoinPath(p.file) }

// published lists the programs that a lab runs and that their projects publish, for Linux on an architecture. The service controller is not among them: it is
// a library.
func published(s Sources, v Version, etcd, arch string) []publication {
	var all []publication
	for _, c := range []Component{APIServer, ControllerManager, KubeProxy} {
		file := fmt.Sprintf("release/%s/bin/linux/%s/%s", v, arch, c)
		all = append(all, publication{component: c, source: s.Kubernetes, file: file, sums: file + ".sha256"})
	}
	folder := fmt.Sprintf("etcd-%s-linux-%s", etcd, arch)
	release := "etcd-io/etcd/releases/download/" + etcd
	dns := fmt.Sprintf("coredns/coredns/releases/download/%s/coredns_%s_linux_%s.tgz", coreDNSVersion, strings.TrimPrefix(coreDNSVersion, "v"), arch)
	return append(all,
		publication{component: Etcd, source: s.GitHub, file: release + "/" + folder + ".tar.gz", sums: release + "/SHA256SUMS", member: folder + "/etcd"},
		publication{component: CoreDNS, source: s.GitHub, file: dns, sums: dns + ".sha256", member: "coredns", optional: true},
	)
}

// etcdOfMinor is the version of etcd's server that the go.mod of Kubernetes 1.28, 1.29 … requires. It is that of the
// patch release of SupportedVersions where there is one: a build takes the same.
var etcdOfMinor = []string{"v3.5.9", "v3.5.10", "v3.5.10", "v3.5.13", "v3.5.16", "v3.5.21", "v3.6.4", "v3.6.5", "v3.6.8", "v3.7.0"}

// etcdFor is the version of etcd that is fetched for a release of Kubernetes.
func etcdFor(v Version) string { return etcdOfMinor[min(v.Minor-oldestMinor, len(etcdOfMinor)-1)] }

var etcdPattern = regexp.MustCompile(`^v?(3\.(?:0|[1-9][0-9]{0,3})\.(?:0|[1-9][0-9]{0,3}))$`)

// parseEtcd reads "v3.7.0" or "3.7.0".
func parseEtcd(s string) (string, error) {
	m := etcdPattern.FindStringSubmatch(s)
	if m == nil {
		return "", fmt.Errorf("etcd version %q: want a release such as %s", s, etcdOfMinor[len(etcdOfMinor)-1])
	}
	return "v" + m[1], nil
}

// withoutOptional leaves out what a lab runs without.
func withoutOptional(components []Component) []Component {
	return slices.DeleteFunc(slices.Clone(components), func(c Component) bool { return c == CoreDNS || c == ServiceController })
}
