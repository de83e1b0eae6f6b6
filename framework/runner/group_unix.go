//go:build unix

package runner

import "syscall"

// leaveGroup takes this worker out of the process group that its parent shares with a terminal, or with a program such
// as timeout. A signal to all of the group would interrupt it beside its parent. The second interrupt makes Ginkgo skip
// the cleanup.
func leaveGroup() error { return syscall.Setpgid(0, 0) }
