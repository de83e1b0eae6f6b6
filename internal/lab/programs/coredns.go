package programs

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// CoreDNS is the DNS server of clusters. Unlike the other components it is no part of a Kubernetes release.
const CoreDNS Component = "coredns"

const (
	coreDNSModule = "github.com/coredns/coredns"
	// coreDNSVersion is the one that Kubernetes v1.37.1 is installed with (cmd/kubeadm/app/constants/constants.go, line 368).
	coreDNSVersion = "v1.14.6"
)

// coreDNSMain is the program that makes a server of CoreDNS' module, with the plugins of coreFile only. A whole CoreDNS
// has the clients of three clouds in it, which take long to build.
const coreDNSMain = `package main

import (
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
)

func main() { coremain.Run() }
`

// coreDNSGoMod is the go.mod of its own module: CoreDNS asks for other versions of Kubernetes' clients than the release that is tested.
const coreDNSGoMod = "module " + buildModule + "\n\ngo 1.26.0\n\nrequire " + coreDNSModule + " " + coreDNSVersion + "\n"

// CoreFile is the configuration of CoreDNS. It follows the one that kubeadm writes
// (cmd/kubeadm/app/phases/addons/dns/manifests.go). It leaves out what has nothing to do with the names of Services,
// which that one does not cache either.
func CoreFile(kubeconfig string) string {
	return fmt.Sprintf(`.:%d {
    errors
    kubernetes %s in-addr.arpa ip6.arpa {
        kubeconfig %q
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }
}
`, DNSPort, ClusterDomain, kubeconfig)
}

// ClusterDomain is the domain of the cluster, dnsPort the port of its DNS.
const (
	ClusterDomain = "cluster.local"
	DNSPort       = 53
)

// CoreDNSIn returns the version of CoreDNS among the programs; empty if it is not there.
func CoreDNSIn(b *Binaries) string {
	switch {
	case slices.Contains(b.lacking, CoreDNS):
		return ""
	case b.coreDNS != "":
		return b.coreDNS
	}
	info, err := buildinfo.ReadFile(b.Path(CoreDNS))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ""
	case err != nil:
		return "unknown"
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == coreDNSModule {
			return m.Version
		}
	}
	return "unknown"
}

// compileCoreDNS builds it into out, with a module of its own in the folder work.
func compileCoreDNS(ctx context.Context, work, out string, progress Progress) error {
	program := filepath.Join(work, string(CoreDNS))
	if err := os.MkdirAll(program, 0o755); err != nil {
		return err
	}
	for path, content := range map[string]string{filepath.Join(work, "go.mod"): coreDNSGoMod, filepath.Join(program, "main.go"): coreDNSMain} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	tool, err := newGoTool(work)
	if err != nil {
		return err
	}
	progress("fetching the modules of CoreDNS "+coreDNSVersion, 0, 0)
	if err := tool.compilePackages(ctx, "compiling "+string(CoreDNS), out, "-s -w", []string{"./" + string(CoreDNS)}, progress); err != nil {
		return fmt.Errorf("build CoreDNS %s: %w", coreDNSVersion, err)
	}
	return nil
}

// SearchList are the domains in which a pod looks for short names.
func SearchList(namespace string) string {
	return strings.Join([]string{namespace + ".svc." + ClusterDomain, "svc." + ClusterDomain, ClusterDomain}, " ")
}
