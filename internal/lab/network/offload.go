//go:build linux

package network

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// withoutOffload lets the kernel compute the checksums of what an interface of this thread's namespace sends (ethtool
// -K NAME tx off). A virtual cable leaves them out by default, because nobody could damage a packet on it. A program on
// the node that rewrites packets before the kernel does (XDP, tc) would correct a checksum that is not there.
func withoutOffload(name string) error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	value := struct{ command, data uint32 }{command: unix.ETHTOOL_STXCSUM}
	request := struct { // ifreq of netdevice(7)
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}{data: unsafe.Pointer(&value)}
	copy(request.name[:unix.IFNAMSIZ-1], name)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(socket), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	if errno != 0 {
		return fmt.Errorf("switch checksum offload off: %w", errno)
	}
	return nil
}
