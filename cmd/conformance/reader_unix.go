//go:build unix

package main

import "golang.org/x/sys/unix"

// output is where the program prints.
var output = []int{unix.Stdout, unix.Stderr}

// unread reports whether one of the files is a pipe that nobody reads any more. A signal SIGPIPE alone does not tell: once a program asks for it, the system
// sends it for each broken connection.
func unread(files ...int) bool {
	for _, fd := range files {
		looked := []unix.PollFd{{Fd: int32(fd)}}
		if n, err := unix.Poll(looked, 0); err == nil && n > 0 && looked[0].Revents&unix.POLLERR != 0 {
			return true
		}
	}
	return false
}
