package spec

import (
	"fmt"
	"strconv"
	"strings"
)

// PortRange is a range of ports, both ends included.
type PortRange struct{ First, Last int }

// DefaultNodePorts is the node-port range of an API server that is given no other one (docs/concepts/services-networking/service,
// "NodePort").
var DefaultNodePorts = PortRange{First: 30000, Last: 32767}

// ParsePortRange reads "30000-32767". Empty text is DefaultNodePorts.
func ParsePortRange(text string) (PortRange, error) {
	if text == "" {
		return DefaultNodePorts, nil
	}
	first, last, _ := strings.Cut(text, "-")
	var r PortRange
	var errFirst, errLast error
	r.First, errFirst = strconv.Atoi(first)
	r.Last, errLast = strconv.Atoi(last)
	if errFirst != nil || errLast != nil || r.First < 1 || r.Last < r.First || r.Last > 65535 {
		return PortRange{}, fmt.Errorf("node-port range %q: want two ports within 1-65535 such as %s", text, DefaultNodePorts)
	}
	return r, nil
}

func (r PortRange) String() string { return fmt.Sprintf("%d-%d", r.First, r.Last) }
