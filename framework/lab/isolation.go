package lab

// Abandon ends the processes of this one's labs and removes their folders. The process is about to end without waiting for those who use them.
func Abandon() {
	abandonIsolated()
	abandonAll()
}

// attachedVariable names, in the environment of a process that Enter has started, the folder of the lab.
const attachedVariable = "CONFORMANCE_LAB_ATTACHED"
