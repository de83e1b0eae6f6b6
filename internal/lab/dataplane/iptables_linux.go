package dataplane

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/service-conformance/conformance/internal/lab/isolation"
	"github.com/service-conformance/conformance/internal/lab/process"
)

// programPath is the PATH of proxies. It leads to iptables-legacy, where that works, in three cases. One is a user
// namespace: iptables on nftables sends all changes as one message, whose size an ordinary user cannot raise above
// net.core.wmem_default. Some fifty Services are too many for it. The second is a kernel without tables of nftables for
// iptables to be on, as Debian's user-mode-linux. The third is any guest, which takes twice the time for the other.
func programPath(d *process.RunDir) (string, error) {
	if !inUserNamespace() && !isolation.InGuest() && iptablesWorks() || !legacyWorks() {
		return process.SystemPath, nil
	}
	dir := d.File("programs")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	var errs []error
	for _, family := range []string{"iptables", "ip6tables"} {
		for _, action := range []string{"", "-save", "-restore"} {
			legacy, err := exec.LookPath("/usr/sbin/" + family + "-legacy" + action)
			errs = append(errs, err, os.Symlink(legacy, filepath.Join(dir, family+action)))
		}
	}
	return dir + ":" + process.SystemPath, errors.Join(errs...)
}

// inUserNamespace reports whether root here is an ordinary user of the machine.
func inUserNamespace() bool {
	b, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && strings.Join(strings.Fields(string(b)), " ") != "0 0 4294967295"
}

// iptablesWorks reports whether the machine's iptables, whatever it is on, can make a chain. It makes one in the namespace that it is in, and removes it.
var iptablesWorks = sync.OnceValue(func() bool {
	return probe("iptables -t nat -N CONFORMANCE-PROBE && iptables -t nat -X CONFORMANCE-PROBE")
})

// nftablesWork reports whether the kernel has what the nftables mode of kube-proxy needs: tables of family ip with a nat chain. It looks once, as
// iptablesWorks does: two that looked at the same time would take each other's table away.
var nftablesWork = sync.OnceValue(func() bool {
	return probe("nft 'add table ip conformance-probe; add chain ip conformance-probe nat { type nat hook output priority -100; }' && nft delete table ip conformance-probe")
})

func probe(script string) bool {
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Env = append(os.Environ(), "PATH="+process.SystemPath)
	return cmd.Run() == nil
}

// legacyWorks reports whether kernel and machine have the older iptables.
func legacyWorks() bool {
	for _, program := range []string{"iptables-legacy", "ip6tables-legacy"} {
		if exec.Command("/usr/sbin/"+program, "-t", "nat", "-S").Run() != nil {
			return false
		}
	}
	return true
}
