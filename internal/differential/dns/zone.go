// Package dns compares what two clusters' DNS says of the same Services and EndpointSlices: the reference, and a real one.
package dns

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"

	"github.com/service-conformance/conformance/internal/differential/random"
)

// Zone is Services with EndpointSlices made by hand, and how both change. It names addresses by number, so that each side can have it.
type Zone struct {
	// States follow each other. Each is whole: what it does not name is deleted.
	States []State `json:"states"`
}

// State is what there is at a time, and what is asked.
type State struct {
	Services  []Service  `json:"services"`
	Slices    []Slice    `json:"slices,omitempty"`
	Questions []Question `json:"questions"`
}

// Kind is a kind of Service.
type Kind string

// The kinds: with a virtual address, without one, and an alias.
const (
	Virtual  Kind = "virtual"
	Headless Kind = "headless"
	Alias    Kind = "alias"
)

// Service is a Service without a selector. ID is the same in all states.
type Service struct {
	ID   int  `json:"id"`
	Kind Kind `json:"kind"`
	// Digit has its name begin with a digit.
	Digit bool `json:"digit,omitempty"`
	// Families are "4", "6", "46" or "64". An alias has none.
	Families string `json:"families,omitempty"`
	Ports    []Port `json:"ports,omitempty"`
	// Target is the name that an alias is for. "service N" is the name of a Service of the topology.
	Target string `json:"target,omitempty"`
}

// Port is a port of a Service.
type Port struct {
	Name     string          `json:"name,omitempty"`
	Protocol corev1.Protocol `json:"protocol"`
	Number   int32           `json:"number"`
}

// Slice is an EndpointSlice of a Service, ID the same in all states.
type Slice struct {
	ID      int `json:"id"`
	Service int `json:"service"`
	// Family is 4 or 6.
	Family    int         `json:"family"`
	Ports     []SlicePort `json:"ports,omitempty"`
	Endpoints []Endpoint  `json:"endpoints,omitempty"`
}

// SlicePort is a port of a slice. A name or a number that is nil is left out.
type SlicePort struct {
	Name     *string         `json:"name,omitempty"`
	Protocol corev1.Protocol `json:"protocol"`
	Number   *int32          `json:"number,omitempty"`
}

// Endpoint is an endpoint of a slice.
type Endpoint struct {
	// Address is its number among those of the Service.
	Address     int    `json:"address"`
	Hostname    string `json:"hostname,omitempty"`
	Ready       *bool  `json:"ready,omitempty"`
	Serving     *bool  `json:"serving,omitempty"`
	Terminating *bool  `json:"terminating,omitempty"`
}

// Question is what is asked. It is of the name of the Service, of names below it, or of an address.
type Question struct {
	Service int                  `json:"service"`
	Type    candidate.RecordType `json:"type"`
	// Below are the labels before the name of the Service.
	Below string `json:"below,omitempty"`
	// Capital writes the name in capital letters.
	Capital bool `json:"capital,omitempty"`
	// Of asks for the names of an address: of the Service, or of an endpoint by number.
	Of Of `json:"of,omitempty"`
	// Address is the number of an endpoint, and Family that of its address: 4 or 6.
	Address int `json:"address,omitempty"`
	Family  int `json:"family,omitempty"`
}

// Of is whose address a question is about.
type Of string

// The addresses; none is a question about a name.
const (
	OfName     Of = ""
	OfService  Of = "service"
	OfEndpoint Of = "endpoint"
)

func (q Question) String() string {
	switch q.Of {
	case OfService:
		return fmt.Sprintf("PTR of the IPv%d address of Service %d", q.Family, q.Service)
	case OfEndpoint:
		return fmt.Sprintf("PTR of the IPv%d address of endpoint %d of Service %d", q.Family, q.Address, q.Service)
	}
	letters := ""
	if q.Capital {
		letters = ", in capital letters"
	}
	below := ""
	if q.Below != "" {
		below = q.Below + " below "
	}
	return fmt.Sprintf("%s of %sService %d%s", q.Type, below, q.Service, letters)
}

func (s *State) service(id int) *Service {
	if i := slices.IndexFunc(s.Services, func(v Service) bool { return v.ID == id }); i >= 0 {
		return &s.Services[i]
	}
	return nil
}

// Parse reads a zone, and finds what no side could have.
func Parse(data []byte) (Zone, error) {
	return random.Parse(data, func(z *Zone) []State { return z.States }, (*State).valid)
}

func (s *State) valid() error {
	for i := range s.Services {
		v := &s.Services[i]
		if v.ID < 0 || v.ID >= maxServices || s.service(v.ID) != v || (v.Families == "") != (v.Kind == Alias) || strings.Trim(v.Families, "46") != "" {
			return fmt.Errorf("service %d: its id or its families", v.ID)
		}
		if !slices.Contains([]Kind{Virtual, Headless, Alias}, v.Kind) {
			return fmt.Errorf("service %d: there is no kind %q", v.ID, v.Kind)
		}
	}
	for _, l := range s.Slices {
		if s.service(l.Service) == nil || l.Family != 4 && l.Family != 6 {
			return fmt.Errorf("slice %d: its service or its family", l.ID)
		}
		for _, e := range l.Endpoints {
			if e.Address < 0 || e.Address >= addresses {
				return fmt.Errorf("slice %d: there is no address %d", l.ID, e.Address)
			}
		}
	}
	for _, q := range s.Questions {
		if q.Service < 0 || q.Service >= maxServices || q.Address < 0 || q.Address >= addresses || q.Of != OfName && q.Family != 4 && q.Family != 6 {
			return fmt.Errorf("question %s: there is no such name or address", q)
		}
	}
	return nil
}
