package programs

import (
	"context"
	"fmt"

	"github.com/service-conformance/conformance/framework/spec"
	"github.com/service-conformance/conformance/internal/lab/process"
)

// ServerOptions replace what a lab stores in and serves the API with, and change how it is called. Commands are run by a shell.
type ServerOptions struct {
	// EtcdCommand, if set, runs instead of etcd. {endpoint} in it stands for the URL where it must listen, of a Unix
	// socket or of HTTP on loopback. {data} stands for an empty folder of its own.
	EtcdCommand string
	// APIServerCommand, if set, runs instead of kube-apiserver. It is given the flags of kube-apiserver after its own words, and must
	// answer --version as kube-apiserver does.
	APIServerCommand string
	// APIServerFlags are given to every API server after those of the lab.
	APIServerFlags []string
}

// Replaced reports whether the API server differs from the one that the lab would run.
func (o *ServerOptions) Replaced() bool { return o.APIServerCommand != "" || len(o.APIServerFlags) > 0 }

// APIServer is the program that serves the API, and the arguments that come before those of the lab.
func (b *Binaries) APIServer() (path string, args []string) {
	if c := b.Servers.APIServerCommand; c != "" {
		return process.Shell, append(process.ShellLine(c+` "$@"`), string(APIServer))
	}
	return b.Path(APIServer), nil
}

// reportedVersion asks the API server for its version, for example "v1.37.1".
func (b *Binaries) reportedVersion(ctx context.Context) (string, error) {
	path, args := b.APIServer()
	return reportedVersion(ctx, path, args...)
}

// ServedVersion is the release that the API server says it is, which must be the one asked for, if one is.
func (b *Binaries) ServedVersion(ctx context.Context, want string) (v Version, err error) {
	if b.Version, err = b.reportedVersion(ctx); err != nil {
		return Version{}, err
	}
	path, _ := b.APIServer()
	if path == process.Shell {
		path = b.Servers.APIServerCommand
	}
	return releaseOf(path, b.Version, want)
}

// releaseOf reads what a kube-apiserver calls itself.
func releaseOf(program, reported, want string) (Version, error) {
	parsed, err := spec.ParseVersion(reported)
	if err != nil {
		return Version{}, fmt.Errorf("%s says that its version is %q, which is none: it was built without version stamps", program, reported)
	}
	v := Version(parsed)
	if want != "" {
		w, err := ParseVersion(want)
		if err != nil {
			return Version{}, err
		}
		if w != v {
			return Version{}, fmt.Errorf("%s is Kubernetes %s, not %s as asked for", program, reported, w)
		}
	}
	return v, nil
}
