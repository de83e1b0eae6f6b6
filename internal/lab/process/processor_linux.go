package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// tick is the unit of times in proc_pid_stat(5): Linux tells programs of 100 a second, whatever it counts itself.
const tick = 10 * time.Millisecond

// processorTime is what a process took up to now, with the children that it waited for; zero if it has ended.
func processorTime(pid int) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The second field is a name in parentheses that may hold anything. The times are fields 14 to 17.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 15 {
		return 0
	}
	var ticks int
	for _, field := range fields[11:15] {
		n, _ := strconv.Atoi(string(field))
		ticks += n
	}
	return time.Duration(ticks) * tick
}
