package fault

import "github.com/service-conformance/conformance/framework/spec"

// Bugs that show beyond a number of Services or endpoints only.
var (
	ServicesBeyondTable = NewSlow("services-beyond-500-not-served", "Of more than 500 Services, the others are not served.",
		spec.ProxyManyServices)
	EndpointsBeyondTable = NewSlow("endpoints-beyond-5000-lost", "Of a Service whose endpoints come after 5,000 of others, only the first is used.",
		spec.ProxyManyServices)
	LateAmongMany = NewSlow("changes-late-among-many", "With more than 500 Services, a change is followed two minutes late.",
		spec.ProxyScale)
)
