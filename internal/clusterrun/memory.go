package clusterrun

import "fmt"

// What a node of a kind cluster takes, in bytes. These are bounds above what was seen of one that runs pods of checks
// (830 MiB and 490 MiB).
const (
	controlPlaneMemory = 1200 << 20
	workerMemory       = 600 << 20
)

// fitting is how many clusters of so many workers there may be at a time. It is the number that is asked for, unless
// the memory would not hold them. One is always tried. available is 0 if it is not known. why is for people, and empty
// if none is left out.
func fitting(asked, workers int, available int64) (alive int, why string) {
	need := int64(controlPlaneMemory + workers*workerMemory)
	if available == 0 || asked <= 1 || int64(asked)*need <= available {
		return asked, ""
	}
	alive = max(1, int(available/need))
	return alive, fmt.Sprintf("--kind-parallel %d instead of %d: %.1f GiB of memory are available, and one takes up to %.1f GiB (a rough bound)",
		alive, asked, float64(available)/(1<<30), float64(need)/(1<<30))
}
