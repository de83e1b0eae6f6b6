//go:build unix

package main

import "golang.org/x/sys/unix"

// unread reports whether what read the output of the program, through a pipe, has gone. A signal SIGPIPE alone does not tell: once a program asks for it, the system
// sends it for each broken connection.
func unread() bool {
	for _, fd := range []int{unix.Stdout, unix.Stderr} {
		looked := []unix.PollFd{{Fd: int32(fd)}}
		if n, err := unix.Poll(looked, 0); err == nil && n > 0 && looked[0].Revents&unix.POLLERR != 0 {
			return true
		}
	}
	return false
}
