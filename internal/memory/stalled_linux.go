package memory

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"time"
)

// Stalled is for how long, since the machine started, some process could not run because it waited for memory (Linux, pressure stall information). A machine with
// enough memory has next to none of it, however busy it is. ok is false if the system does not tell.
func Stalled() (total time.Duration, ok bool) {
	pressure, err := os.ReadFile("/proc/pressure/memory")
	if err != nil {
		return 0, false
	}
	return parsePressure(pressure)
}

// parsePressure finds the total, in microseconds, of the line "some avg10=0.00 avg60=0.00 avg300=0.00 total=0".
func parsePressure(text []byte) (time.Duration, bool) {
	for line := range bytes.Lines(text) {
		if !bytes.HasPrefix(line, []byte("some ")) {
			continue
		}
		_, number, _ := strings.Cut(string(line), "total=")
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		return time.Duration(n) * time.Microsecond, err == nil
	}
	return 0, false
}
