package controlplane

import "github.com/service-conformance/conformance/internal/memory"

// serverMemory is what one API server with the small objects of a test needs at most, in bytes.
const serverMemory = 400 << 20

// maxServers bounds the number of API servers whatever the memory. An idle one costs no processor time, starting one again costs
// seconds, and a run of both suites uses some twenty different ones.
const maxServers = 32

// ServersThatFit says how many API servers may run at a time: always one, and more while memory lasts.
func ServersThatFit() int {
	available, ok := memory.Available()
	if !ok {
		return maxServers / 4
	}
	// One share is left for etcd and the suite itself.
	return int(min(max(available/serverMemory-1, 1), maxServers))
}
