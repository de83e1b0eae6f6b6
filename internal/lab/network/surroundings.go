package network

import (
	"fmt"
	"slices"
)

// Surroundings are what the network around the nodes does with addresses that nobody has.
type Surroundings string

// The surroundings. Verdicts must not depend on them.
const (
	Unreachable Surroundings = "unreachable" // says that there is no way to them
	Silent      Surroundings = "silent"      // drops what is sent to them
	Resetting   Surroundings = "resetting"   // refuses every connection and datagram
	Accepting   Surroundings = "accepting"   // accepts every connection, and resets it once something is sent on it, as some proxies at the edge of a network do; else silent
)

// AllSurroundings are those that there are, the default first.
var AllSurroundings = []Surroundings{Unreachable, Silent, Resetting, Accepting}

// ParseSurroundings reads a name; empty is the default.
func ParseSurroundings(name string) (Surroundings, error) {
	switch s := Surroundings(name); {
	case name == "":
		return Unreachable, nil
	case slices.Contains(AllSurroundings, s):
		return s, nil
	}
	return "", fmt.Errorf("unknown surroundings %q; there are %v", name, AllSurroundings)
}
