package lab

// labVariable names the folder of the lab in the environment of what runs in a shell, by which it is found when the lab goes down.
const labVariable = "CONFORMANCE_LAB"
