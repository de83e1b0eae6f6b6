// Package memory tells how much memory new processes can use, and for how long processes have waited for memory.
package memory

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"
)

// Available is how many bytes new processes can use before the system swaps or kills. It is the kernel's own estimate, or less
// where a control group limits this process. ok is false if the system does not tell.
func Available() (bytes int64, ok bool) {
	meminfo, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	available, ok := parse(meminfo)
	if !ok {
		return 0, false
	}
	// The files of control groups v2 as seen inside a container; absent at the root of the hierarchy.
	if limit, ok := readNumber("/sys/fs/cgroup/memory.max"); ok {
		used, _ := readNumber("/sys/fs/cgroup/memory.current")
		available = min(available, limit-used)
	}
	return max(available, 0), true
}

// parse finds the line "MemAvailable: N kB" of /proc/meminfo.
func parse(meminfo []byte) (int64, bool) {
	for s := bufio.NewScanner(bytes.NewReader(meminfo)); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "MemAvailable:"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 10, 64)
			return n << 10, err == nil
		}
	}
	return 0, false
}

func readNumber(path string) (int64, bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64) // "max" is no number and no limit
	return n, err == nil
}
