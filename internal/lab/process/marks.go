package process

// LabVariable names the folder of the lab in the environment of what runs in a shell, by which it is found when the lab goes down.
const LabVariable = "CONFORMANCE_LAB"
