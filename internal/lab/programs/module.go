package programs

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

const (
	kubernetesModule = "k8s.io/kubernetes"
	etcdServer       = "go.etcd.io/etcd/server/v3"
	etcdClient       = "go.etcd.io/etcd/client/v3"
	// buildModule is the path of the temporary module that the binaries are built in.
	buildModule = "conformance.invalid/build"
)

// Component is a program of a Kubernetes release that the lab can build.
type Component string

// The components.
const (
	Etcd              Component = "etcd"
	APIServer         Component = "kube-apiserver"
	ControllerManager Component = "kube-controller-manager"
	KubeProxy         Component = "kube-proxy"
)

// ControlPlaneComponents are those that a lab without a data plane runs.
var ControlPlaneComponents = []Component{Etcd, APIServer}

// pkg is the package to build, as seen from the temporary module.
func (c Component) pkg() string {
	if c == Etcd || c == ServiceController {
		return "./" + string(c)
	}
	return kubernetesModule + "/cmd/" + string(c)
}

// etcdMain is the program that makes an etcd server of etcd's module.
const etcdMain = `package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
`

// stagingModules lists the modules that Kubernetes' own go.mod replaces by folders of its repository. They
// are published under versions of their own, which the temporary module has to name.
func stagingModules(m *modfile.File) []string {
	var paths []string
	for _, r := range m.Replace {
		if strings.HasPrefix(r.New.Path, "./staging/") {
			paths = append(paths, r.Old.Path)
		}
	}
	slices.Sort(paths)
	return paths
}

// etcdVersion is the version of the etcd module that this Kubernetes release requires.
func etcdVersion(m *modfile.File) (string, error) {
	var client string
	for _, r := range m.Require {
		switch r.Mod.Path {
		case etcdServer:
			return r.Mod.Version, nil
		case etcdClient:
			client = r.Mod.Version
		}
	}
	if client == "" {
		return "", fmt.Errorf("the go.mod of %s requires no etcd module", kubernetesModule)
	}
	return client, nil // the modules of etcd are released together
}

// generateModule writes the go.mod of the temporary module from the content of Kubernetes' own go.mod. It has the same
// go and godebug lines, the same requirements, and the published version of each staging module. Folders without
// packages replace those that are missing because no version was published. So a release can be built as long as no
// program imports them.
func generateModule(kubernetesGoMod []byte, v Version, missing []string) ([]byte, error) {
	upstream, err := modfile.Parse(kubernetesModule+"@"+v.String()+"/go.mod", kubernetesGoMod, nil)
	if err != nil {
		return nil, fmt.Errorf("parse the go.mod of %s %s: %w", kubernetesModule, v, err)
	}
	staging := stagingModules(upstream)
	if len(staging) == 0 {
		return nil, fmt.Errorf("the go.mod of %s %s replaces no staging module: the build recipe does not fit this version", kubernetesModule, v)
	}
	etcd, err := etcdVersion(upstream)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", v, err)
	}

	out := new(modfile.File)
	if err := out.AddModuleStmt(buildModule); err != nil {
		return nil, err
	}
	if upstream.Go != nil {
		if err := out.AddGoStmt(upstream.Go.Version); err != nil {
			return nil, err
		}
	}
	for _, g := range upstream.Godebug {
		if err := out.AddGodebug(g.Key, g.Value); err != nil {
			return nil, err
		}
	}
	out.AddNewRequire(kubernetesModule, v.String(), false)
	out.AddNewRequire(etcdServer, etcd, false)
	for _, r := range upstream.Require {
		if r.Mod.Path == etcdServer {
			continue
		}
		version := r.Mod.Version
		if slices.Contains(staging, r.Mod.Path) {
			version = v.staging()
		}
		out.AddNewRequire(r.Mod.Path, version, r.Indirect)
	}
	for _, path := range staging {
		if err := module.CheckPath(path); err != nil {
			return nil, err
		}
		// A requirement is a minimum; the replacement makes it the version, whatever other modules ask for.
		to, version := path, v.staging()
		if slices.Contains(missing, path) {
			to, version = "./"+missingFolder(path), ""
		}
		if err := out.AddReplace(path, "", to, version); err != nil {
			return nil, err
		}
	}
	// Other replacements and exclusions of the main module do not reach a module that requires it.
	for _, r := range upstream.Replace {
		if !strings.HasPrefix(r.New.Path, "./") {
			if err := out.AddReplace(r.Old.Path, r.Old.Version, r.New.Path, r.New.Version); err != nil {
				return nil, err
			}
		}
	}
	for _, e := range upstream.Exclude {
		if err := out.AddExclude(e.Mod.Path, e.Mod.Version); err != nil {
			return nil, err
		}
	}
	out.Cleanup()
	return out.Format()
}

// missingFolder stands in for a module that was not published.
func missingFolder(path string) string { return "missing/" + strings.ReplaceAll(path, "/", "-") }

// HasServiceCIDRController reports whether kube-controller-manager is there, which a folder of the user's need not have.
func (b *Binaries) HasServiceCIDRController() bool {
	info, err := os.Stat(b.Path(ControllerManager))
	return err == nil && info.Mode().IsRegular()
}
