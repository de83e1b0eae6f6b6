package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// ServerOptions replace what a lab stores in and serves the API with, and change how it is called. Commands are run by a shell.
type ServerOptions struct {
	// EtcdCommand, if set, runs instead of etcd. {endpoint} and {data} in it stand for the URL where it must listen, of a Unix socket or of
	// HTTP on loopback, and for an empty folder of its own.
	EtcdCommand string
	// APIServerCommand, if set, runs instead of kube-apiserver. It is given the flags of kube-apiserver after its own words, and must
	// answer --version as kube-apiserver does.
	APIServerCommand string
	// APIServerFlags are given to every API server after those of the lab.
	APIServerFlags []string
}

// replaced reports whether the API server differs from the one that the lab would run.
func (o *ServerOptions) replaced() bool { return o.APIServerCommand != "" || len(o.APIServerFlags) > 0 }

// apiServer is the program that serves the API, and the arguments that come before those of the lab.
func (b *Binaries) apiServer() (path string, args []string) {
	if c := b.servers.APIServerCommand; c != "" {
		return systemShell, append(shellLine(c+` "$@"`), string(APIServer))
	}
	return b.Path(APIServer), nil
}

// systemShell runs the commands of users.
const systemShell = "/bin/sh"

// shellLine are the arguments with which the shell runs a line of the user's, which may assign variables and hold several commands.
func shellLine(line string) []string { return []string{"-c", line} }

// reportedVersion asks the API server for its version, for example "v1.37.1".
func (b *Binaries) reportedVersion(ctx context.Context) (string, error) {
	path, args := b.apiServer()
	return reportedVersion(ctx, path, args...)
}

// servedVersion is the release that the API server says it is, which must be the one asked for, if one is.
func (b *Binaries) servedVersion(ctx context.Context, want string) (v version, err error) {
	if b.Version, err = b.reportedVersion(ctx); err != nil {
		return version{}, err
	}
	path, _ := b.apiServer()
	if path == systemShell {
		path = b.servers.APIServerCommand
	}
	return releaseOf(path, b.Version, want)
}

// checkCommands finds commands that cannot be started, before anything is built.
func checkCommands(o *Options) error {
	for _, c := range []struct{ what, command string }{
		{"proxy command", o.Proxy.Command}, {"proxy-ready command", o.Proxy.Ready}, {"node-setup command", o.Proxy.Setup},
		{"node-teardown command", o.Proxy.Teardown}, {"pod-setup command", o.Proxy.PodSetup}, {"pod-teardown command", o.Proxy.PodTeardown},
		{"etcd command", o.Servers.EtcdCommand}, {"kube-apiserver command", o.Servers.APIServerCommand},
	} {
		if err := startable(c.command); err != nil {
			return fmt.Errorf("%s: %w", c.what, err)
		}
	}
	return nil
}

// startable returns an error if the first word of a command names no program. What a shell would have to expand first is not judged.
func startable(command string) error {
	words := strings.Fields(command)
	if len(words) == 0 || strings.ContainsAny(words[0], "$`'\"\\={}()<>&|;~*?[!#") {
		return nil
	}
	program := words[0]
	if _, err := exec.LookPath(program); err == nil || !strings.Contains(program, "/") && onSystemPath(program) {
		return nil
	}
	if info, err := os.Stat(program); err == nil {
		if info.IsDir() {
			return fmt.Errorf("%s is a folder: name a program", program)
		}
		return fmt.Errorf("%s may not be executed: make it executable (chmod +x)", program)
	}
	if shellWords := []string{"if", "for", "while", "until", "case", "exec", "test", "true", "false", ":"}; slices.Contains(shellWords, program) {
		return nil
	}
	return fmt.Errorf("there is no program %s: name one that exists, by its path or by a name in PATH", program)
}

// fill replaces the placeholders of a command.
func fill(command string, placeholders ...string) string {
	return strings.NewReplacer(placeholders...).Replace(command)
}
