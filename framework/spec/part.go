package spec

// Part is one of the two implementations that make up a cluster's Services. The author of a proxy does not answer for
// the API server.
type Part string

// The parts.
const (
	ControlPlanePart Part = "control plane" // the API server, its controllers, and what else of a cluster no proxy makes: DNS, the environment of containers
	DataPlanePart    Part = "data plane"    // the service proxy
)

// Part returns the implementation that the requirement is about.
func (r *Requirement) Part() Part {
	switch r.Feature {
	case FeatureEndpointControllers, FeatureServiceDNS, FeatureServiceEnvironment:
		return ControlPlanePart
	}
	if r.Area == Proxy {
		return DataPlanePart
	}
	return ControlPlanePart
}
