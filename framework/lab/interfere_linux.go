package lab

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/service-conformance/conformance/framework/candidate"
)

// Interfere implements candidate.DataPlane.
func (d *dataPlane) Interfere(ctx context.Context, name string, what candidate.Interference) error {
	n, err := d.ownNode(name)
	if err != nil {
		return err
	}
	var script string
	switch what {
	case candidate.CutOff:
		return n.network.CutOff()
	case candidate.FlushRules:
		script = flushScript
	case candidate.DropRealServers:
		script = dropRealServersScript
	case candidate.AddRealServer:
		script = addRealServerScript
	default:
		return fmt.Errorf("unknown interference %q", what)
	}
	out, err := n.run(ctx, script)
	if err != nil {
		return fmt.Errorf("%s on %s: %w: %s", what, name, err, strings.TrimSpace(out))
	}
	return nil
}

// flushScript deletes the tables of kube-proxy in every mode, whichever of the programs there are.
const flushScript = `
for program in iptables ip6tables; do
	command -v $program >/dev/null || continue
	for table in nat filter mangle; do $program -w -t $table -F && $program -w -t $table -X; done
done
if command -v nft >/dev/null; then
	for family in ip ip6; do
		if nft list table $family kube-proxy >/dev/null 2>&1; then nft delete table $family kube-proxy; fi
	done
fi
if test -e /proc/net/ip_vs; then ipvsadm -C; fi
true`

// The lines of "ipvsadm -Sn" are "-A -t 10.96.0.1:443 -s rr" for a virtual server and "-a -t 10.96.0.1:443 -r 10.244.1.2:6443 -m -w 1" for a real one.
// The kernel lists by position while the proxy goes on, so that a list may name one twice: the second try would fail, and if the proxy had undone the first
// by then it would look as if that had never been. What has gone since the list was begun is not missed: a failure counts only if it stands there still.
const (
	dropRealServersScript = `ipvsadm -Sn | grep '^-a' | sort -u -k1,5 | while read -r _ kind virtual _ real _; do
		ipvsadm -d $kind $virtual -r $real || case $(ipvsadm -Sn) in
			*"-a $kind $virtual -r $real "*) exit 1;;
		esac
	done`
	addRealServerScript = `ipvsadm -Sn | grep '^-A' | sort -u | while read -r _ kind virtual _; do
		case $virtual in \[*) real='[2001:db8:dead::1]:9';; *) real=192.0.2.66:9;; esac
		ipvsadm -a $kind $virtual -r $real -m -w 100 || case $(ipvsadm -Sn) in
			*"-a $kind $virtual -r $real "*) ;;
			*"-A $kind $virtual "*) exit 1;;
		esac
	done`
)

// run runs a shell script in the namespace of the node and returns what it prints.
func (n *node) run(ctx context.Context, script string) (string, error) {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", script)
	cmd.Env = append(serverEnvironment(), "PATH="+n.world.path)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := spawnIn(n.network.Namespace)(cmd); err != nil {
		return "", err
	}
	err := cmd.Wait()
	return out.String(), err
}
