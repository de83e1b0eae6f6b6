package apiserver

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// endpointsStrategy keeps the deprecated Endpoints objects.
type endpointsStrategy struct{}

func (endpointsStrategy) defaults(_ *Server, obj object) {
	for _, subset := range obj.(*corev1.Endpoints).Subsets {
		for i := range subset.Ports {
			if subset.Ports[i].Protocol == "" {
				subset.Ports[i].Protocol = corev1.ProtocolTCP
			}
		}
	}
}

func (endpointsStrategy) create(_ *Server, obj object, _ bool) (transaction, error) {
	e := obj.(*corev1.Endpoints)
	errs := validateMetadata(endpoints, &e.ObjectMeta, apivalidation.NameIsDNSSubdomain)
	return noTransaction{}, refusal(endpoints, e.Name, append(errs, validateSubsets(e.Subsets)...))
}

func (endpointsStrategy) update(_ *Server, obj, old object, _ string, _ bool) (transaction, error) {
	e, was := obj.(*corev1.Endpoints), old.(*corev1.Endpoints)
	errs := validateMetadataUpdate(&e.ObjectMeta, &was.ObjectMeta)
	errs = append(errs, validateFinalizers(&e.ObjectMeta)...)
	if !equality.Semantic.DeepEqual(e.Subsets, was.Subsets) {
		errs = append(errs, validateSubsets(e.Subsets)...)
	}
	return noTransaction{}, refusal(endpoints, e.Name, errs)
}

func (endpointsStrategy) deleted(*Server, object) {}

func (endpointsStrategy) warnings(_ *Server, _, _ object, _ string) []string { return nil }

// endpointsDeprecated is what every request to Endpoints is told (KEP-4974).
func endpointsDeprecated(minor int) []string {
	if minor < 33 {
		return nil
	}
	return []string{"v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"}
}

func validateSubsets(subsets []corev1.EndpointSubset) (errs field.ErrorList) {
	for i, subset := range subsets {
		path := field.NewPath("subsets").Index(i)
		if len(subset.Addresses)+len(subset.NotReadyAddresses) == 0 {
			errs = append(errs, field.Required(path, "must specify `addresses` or `notReadyAddresses`"))
		}
		for j, a := range subset.Addresses {
			errs = append(errs, validateSubsetAddress(a, path.Child("addresses").Index(j))...)
		}
		for j, a := range subset.NotReadyAddresses {
			errs = append(errs, validateSubsetAddress(a, path.Child("notReadyAddresses").Index(j))...)
		}
		for j, p := range subset.Ports {
			portPath := path.Child("ports").Index(j)
			if p.Name != "" {
				errs = append(errs, validateDNSLabel(p.Name, portPath.Child("name"))...)
			} else if len(subset.Ports) > 1 {
				errs = append(errs, field.Required(portPath.Child("name"), ""))
			}
			errs = append(errs, validatePortNumber(p.Port, portPath.Child("port"))...)
			errs = append(errs, validateProtocol(p.Protocol, portPath.Child("protocol"))...)
			errs = append(errs, validateAppProtocol(p.AppProtocol, portPath.Child("appProtocol"))...)
		}
	}
	return errs
}

func validateSubsetAddress(a corev1.EndpointAddress, path *field.Path) field.ErrorList {
	errs := validation.IsValidIPForLegacyField(path.Child("ip"), a.IP, true, nil)
	if len(errs) == 0 {
		errs = validateReachable(a.IP, path.Child("ip"))
	}
	if a.Hostname != "" {
		errs = append(errs, validateDNSLabel(a.Hostname, path.Child("hostname"))...)
	}
	return append(errs, validateNodeName(a.NodeName, path.Child("nodeName"))...)
}
