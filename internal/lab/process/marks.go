package process

// LabVariable names the folder of the lab in the environment of what runs in a shell. When the lab goes down, it finds
// these processes by it.
const LabVariable = "CONFORMANCE_LAB"
