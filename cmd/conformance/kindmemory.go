package main

import (
	"fmt"
	"os"
	"strings"
)

// What a node of a kind cluster takes, in bytes: bounds above what was seen of one that runs pods of checks (830 MiB and 490 MiB, docs/performance.md).
const (
	controlPlaneMemory = 1200 << 20
	workerMemory       = 600 << 20
)

// availableMemory is what /proc/meminfo says programs can have without swapping; 0 where there is no such file.
func availableMemory() uint64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	return memAvailable(string(text))
}

func memAvailable(meminfo string) (bytes uint64) {
	for line := range strings.Lines(meminfo) {
		if n, err := fmt.Sscanf(line, "MemAvailable: %d kB", &bytes); n == 1 && err == nil {
			return bytes << 10
		}
	}
	return 0
}

// fitting is how many clusters of so many workers there may be at a time: those that are asked for, unless the memory would not hold them. One is always tried. why is for
// people, and empty if none is left out.
func fitting(asked, workers int, available uint64) (alive int, why string) {
	need := uint64(controlPlaneMemory + workers*workerMemory)
	if available == 0 || asked <= 1 || uint64(asked)*need <= available {
		return asked, ""
	}
	alive = max(1, int(available/need))
	return alive, fmt.Sprintf("--kind-parallel %d instead of %d: %.1f GiB of memory are available, and one takes up to %.1f GiB (a rough bound)",
		alive, asked, float64(available)/(1<<30), float64(need)/(1<<30))
}
