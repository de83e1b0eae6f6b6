package lab

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// programPath is the PATH of proxies. In a user namespace it leads to iptables-legacy where that works: iptables on nftables sends all changes as
// one message, whose size an ordinary user cannot raise above net.core.wmem_default, and some fifty Services are too many for it.
func programPath(d *runDir) (string, error) {
	if !inUserNamespace() || !legacyWorks() {
		return systemPath, nil
	}
	dir := d.file("programs")
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
	return dir + ":" + systemPath, errors.Join(errs...)
}

// inUserNamespace reports whether root here is an ordinary user of the machine.
func inUserNamespace() bool {
	b, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && strings.Join(strings.Fields(string(b)), " ") != "0 0 4294967295"
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
