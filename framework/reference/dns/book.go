package dns

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/rule"
)

// The kinds of rules.
type (
	// A finding rule returns the Service of a name, and nil if the name is of none.
	finding = func(z *Zone, name, namespace string) *corev1.Service
	// A recording rule returns the records of a name, and whether the name exists.
	recording = func(z *Zone, q *query) (records []candidate.Record, exists bool)
)

// book is the rules of DNS-based service discovery. It is read only once it is in use.
type book struct {
	nameCompared  rule.Rule[func(asked string) (compared string)]
	serviceFound  rule.Rule[finding]
	schemaVersion rule.Rule[recording]

	// The name of a Service.
	aliasOfExternalName  rule.Rule[recording]
	aliasFollowed        rule.Rule[func() bool]
	danglingAliasTold    rule.Rule[func() bool]
	externalNameComplete rule.Rule[func(externalName string) (target string)]
	clusterIPsOfService  rule.Rule[recording]
	everyClusterIP       rule.Rule[func(*corev1.Service) []string]
	endpointsOfHeadless  rule.Rule[recording]

	// The names below it.
	nothingBelowAlias  rule.Rule[recording]
	hostnameOfEndpoint rule.Rule[recording]
	portsOfService     rule.Rule[recording]
	portsOfHeadless    rule.Rule[recording]
	portAsked          rule.Rule[func(q *query, port string, protocol corev1.Protocol) bool]
	servicePortNumber  rule.Rule[func(*corev1.ServicePort) int32]
	srvTarget          rule.Rule[func(e *endpoint, service string) string]

	// The names of addresses.
	namesOfClusterIP rule.Rule[listing]
	nameOfEndpoint   rule.Rule[func(e *endpoint, service string) (name string)]

	// Endpoints.
	endpointReady rule.Rule[func(*discoveryv1.EndpointConditions) bool]
}

// newBook is the right rules.
func newBook() *book {
	return &book{
		nameCompared:  nameCompared,
		serviceFound:  serviceFound,
		schemaVersion: schemaVersion,

		aliasOfExternalName:  aliasOfExternalName,
		aliasFollowed:        aliasFollowed,
		danglingAliasTold:    danglingAliasTold,
		externalNameComplete: externalNameComplete,
		clusterIPsOfService:  clusterIPsOfService,
		everyClusterIP:       everyClusterIP,
		endpointsOfHeadless:  endpointsOfHeadless,

		nothingBelowAlias:  nothingBelowAlias,
		hostnameOfEndpoint: hostnameOfEndpoint,
		portsOfService:     portsOfService,
		portsOfHeadless:    portsOfHeadless,
		portAsked:          portAsked,
		servicePortNumber:  servicePortNumber,
		srvTarget:          srvTarget,

		namesOfClusterIP: namesOfClusterIP,
		nameOfEndpoint:   nameOfEndpoint,

		endpointReady: endpointReady,
	}
}

// Book returns the rules of DNS-based service discovery with the requirements that they follow, sorted by name.
func Book() []rule.Entry { return rule.Entries(newBook()) }
