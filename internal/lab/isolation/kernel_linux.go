package isolation

import (
	"os"

	"golang.org/x/sys/unix"
)

// SCTPWorks reports whether the kernel has SCTP.
func SCTPWorks() bool {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_SCTP)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}

// KernelHasIPVS reports whether the kernel has IPVS, loaded or to be loaded.
func KernelHasIPVS() bool {
	_, err := os.Stat("/proc/net/ip_vs")
	return err == nil
}
