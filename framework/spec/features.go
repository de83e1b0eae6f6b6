package spec

import "slices"

// Features that an implementation may do without. A check uses one that its requirement is not about only where the candidate claims it.
const (
	FeatureDryRun              = "DryRun"
	FeatureDualStack           = "DualStack"
	FeatureEndpointControllers = "EndpointControllers"
	FeatureExternalIPs         = "ExternalIPs"
	FeatureExternalName        = "ExternalName"
	FeatureFieldValidation     = "FieldValidation"
	FeatureHeadlessService     = "HeadlessService"
	FeatureHealthCheckNodePort = "HealthCheckNodePort"
	FeatureLoadBalancer        = "LoadBalancer"
	FeatureNodePort            = "NodePort"
	FeatureOpenAPI             = "OpenAPI"
	FeatureSCTP                = "SCTP"
	FeatureServerSideApply     = "ServerSideApply"
	FeatureServiceCIDR         = "ServiceCIDR"
	FeatureServiceDNS          = "ServiceDNS"
	FeatureServiceEnvironment  = "ServiceEnvironment"
	FeatureSessionAffinity     = "SessionAffinity"
	FeatureSourceRanges        = "LoadBalancerSourceRanges"
	FeatureTrafficDistribution = "TrafficDistribution"
	FeatureUDP                 = "UDP"
	FeatureWarnings            = "Warnings"
)

// featureNeeds are features that make no sense without others.
var featureNeeds = map[string][]string{
	FeatureHealthCheckNodePort: {FeatureLoadBalancer},
	FeatureSourceRanges:        {FeatureLoadBalancer},
}

// FeaturesWithout returns the features of all requirements, sorted, but for the given ones and those that need one of them.
func (c *Catalogue) FeaturesWithout(absent ...string) (features []string) {
	for _, r := range c.Requirements {
		lacks := slices.Contains(absent, r.Feature) ||
			slices.ContainsFunc(featureNeeds[r.Feature], func(f string) bool { return slices.Contains(absent, f) })
		if !lacks && !slices.Contains(features, r.Feature) {
			features = append(features, r.Feature)
		}
	}
	slices.Sort(features)
	return features
}
