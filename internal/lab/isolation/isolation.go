// Package isolation runs this program anew where nodes can be built: in namespaces of its own, or in user-mode-linux where the kernel lacks IPVS.
package isolation

import "github.com/service-conformance/conformance/internal/lab/process"

// Abandon ends the processes of this one's labs and removes their folders. The process is about to end without waiting for those who use them.
func Abandon() {
	abandonIsolated()
	process.AbandonAll()
}

// AttachedVariable names, in the environment of a process that Enter has started, the folder of the lab.
const AttachedVariable = "CONFORMANCE_LAB_ATTACHED"
