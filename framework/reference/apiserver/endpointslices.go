package apiserver

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The limits of an EndpointSlice (API reference of discovery.k8s.io/v1).
const (
	maxSliceEndpoints = 1000
	maxSliceAddresses = 100
	maxSlicePorts     = 20000
	maxSliceHints     = 8
)

// endpointSliceStrategy keeps EndpointSlices of any writer.
type endpointSliceStrategy struct{}

func (endpointSliceStrategy) defaults(_ *Server, obj object) {
	ports := obj.(*discoveryv1.EndpointSlice).Ports
	for i := range ports {
		if ports[i].Name == nil {
			ports[i].Name = new(string)
		}
		if ports[i].Protocol == nil {
			ports[i].Protocol = new(corev1.ProtocolTCP)
		}
	}
}

func (endpointSliceStrategy) create(_ *Server, obj object, _ bool) (transaction, error) {
	slice := obj.(*discoveryv1.EndpointSlice)
	slice.Generation = 1
	settleEndpointSlice(slice)
	errs := validateMetadata(endpointSlices, &slice.ObjectMeta, apivalidation.NameIsDNSSubdomain)
	return noTransaction{}, refusal(endpointSlices, slice.Name, append(errs, validateEndpointSlice(slice)...))
}

func (endpointSliceStrategy) update(_ *Server, obj, old object, _ string, _ bool) (transaction, error) {
	slice, was := obj.(*discoveryv1.EndpointSlice), old.(*discoveryv1.EndpointSlice)
	settleEndpointSlice(slice)
	if !equality.Semantic.DeepEqual(slice.Endpoints, was.Endpoints) || !equality.Semantic.DeepEqual(slice.Ports, was.Ports) ||
		!equality.Semantic.DeepEqual(slice.Labels, was.Labels) {
		slice.Generation = was.Generation + 1
	}
	errs := validateMetadataUpdate(&slice.ObjectMeta, &was.ObjectMeta)
	errs = append(errs, validateFinalizers(&slice.ObjectMeta)...)
	errs = append(errs, validateEndpointSlice(slice)...)
	errs = append(errs, apivalidation.ValidateImmutableField(slice.AddressType, was.AddressType, field.NewPath("addressType"))...)
	return noTransaction{}, refusal(endpointSlices, slice.Name, errs)
}

func (endpointSliceStrategy) deleted(*Server, object) {}

func (endpointSliceStrategy) warnings(_ *Server, obj, old object, _ string) []string {
	if old == nil && obj.(*discoveryv1.EndpointSlice).AddressType == discoveryv1.AddressTypeFQDN {
		return []string{"spec.addressType: FQDN endpoints are deprecated"}
	}
	return nil
}

// settleEndpointSlice removes what v1 does not store: the topology of v1beta1, and the difference between an empty list and none.
func settleEndpointSlice(slice *discoveryv1.EndpointSlice) {
	for i := range slice.Endpoints {
		slice.Endpoints[i].DeprecatedTopology = nil
	}
	if len(slice.Endpoints) == 0 {
		slice.Endpoints = nil
	}
	if len(slice.Ports) == 0 {
		slice.Ports = nil
	}
}

func validateEndpointSlice(slice *discoveryv1.EndpointSlice) (errs field.ErrorList) {
	switch slice.AddressType {
	case "":
		errs = append(errs, field.Required(field.NewPath("addressType"), ""))
	case discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6, discoveryv1.AddressTypeFQDN:
	default:
		errs = append(errs, field.NotSupported(field.NewPath("addressType"), slice.AddressType,
			[]discoveryv1.AddressType{discoveryv1.AddressTypeFQDN, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6}))
	}
	errs = append(errs, validateSlicePorts(slice.Ports)...)
	if len(slice.Endpoints) > maxSliceEndpoints {
		return append(errs, field.TooMany(field.NewPath("endpoints"), len(slice.Endpoints), maxSliceEndpoints))
	}
	for i, e := range slice.Endpoints {
		errs = append(errs, validateSliceEndpoint(e, slice.AddressType, field.NewPath("endpoints").Index(i))...)
	}
	return errs
}

func validateSlicePorts(ports []discoveryv1.EndpointPort) (errs field.ErrorList) {
	path := field.NewPath("ports")
	if len(ports) > maxSlicePorts {
		return field.ErrorList{field.TooMany(path, len(ports), maxSlicePorts)}
	}
	names := map[string]bool{}
	for i, p := range ports {
		if *p.Name != "" {
			errs = append(errs, validateDNSLabel(*p.Name, path.Index(i).Child("name"))...)
		}
		if names[*p.Name] {
			errs = append(errs, field.Duplicate(path.Index(i).Child("name"), *p.Name))
		}
		names[*p.Name] = true
		errs = append(errs, validateProtocol(*p.Protocol, path.Index(i).Child("protocol"))...)
		errs = append(errs, validateAppProtocol(p.AppProtocol, path.Index(i).Child("appProtocol"))...)
	}
	return errs
}

func validateSliceEndpoint(e discoveryv1.Endpoint, addressType discoveryv1.AddressType, path *field.Path) (errs field.ErrorList) {
	switch {
	case len(e.Addresses) == 0:
		errs = append(errs, field.Required(path.Child("addresses"), "must contain at least 1 address"))
	case len(e.Addresses) > maxSliceAddresses:
		errs = append(errs, field.TooMany(path.Child("addresses"), len(e.Addresses), maxSliceAddresses))
	}
	for i := range e.Addresses {
		errs = append(errs, validateSliceAddress(e.Addresses[i], addressType, path.Child("addresses"), i)...)
	}
	if e.Hostname != nil {
		errs = append(errs, validateDNSLabel(*e.Hostname, path.Child("hostname"))...)
	}
	errs = append(errs, validateNodeName(e.NodeName, path.Child("nodeName"))...)
	if e.Hints != nil {
		errs = append(errs, validateHints(e.Hints, path.Child("hints"))...)
	}
	return errs
}

// validateSliceAddress asks of address i of an endpoint what its type asks. An unknown type, which is refused itself, asks nothing.
func validateSliceAddress(text string, addressType discoveryv1.AddressType, path *field.Path, i int) field.ErrorList {
	var errs field.ErrorList
	switch addressType {
	case discoveryv1.AddressTypeFQDN:
		return validation.IsFullyQualifiedDomainName(path.Index(i), text)
	case discoveryv1.AddressTypeIPv4:
		errs = validation.IsValidIPForLegacyField(path.Index(i), text, true, nil)
	case discoveryv1.AddressTypeIPv6:
		errs = validation.IsValidIP(path.Index(i), text)
	default:
		return nil
	}
	if len(errs) > 0 {
		return errs
	}
	if ip, err := netip.ParseAddr(text); err == nil && ip.Is4() != (addressType == discoveryv1.AddressTypeIPv4) {
		errs = append(errs, field.Invalid(path, text, "must be an "+string(addressType)+" address"))
	}
	return append(errs, validateReachable(text, path.Index(i))...)
}

// validateHints accepts up to eight zones and eight nodes, each once.
func validateHints(hints *discoveryv1.EndpointHints, path *field.Path) (errs field.ErrorList) {
	zones, nodes := path.Child("forZones"), path.Child("forNodes")
	if len(hints.ForZones) > maxSliceHints {
		return field.ErrorList{field.TooMany(zones, len(hints.ForZones), maxSliceHints)}
	}
	seen := map[string]bool{}
	for i, zone := range hints.ForZones {
		at := zones.Index(i).Child("name")
		if seen[zone.Name] {
			errs = append(errs, field.Duplicate(at, zone.Name))
		}
		seen[zone.Name] = true
		for _, message := range validation.IsValidLabelValue(zone.Name) {
			errs = append(errs, field.Invalid(at, zone.Name, message))
		}
	}
	if len(hints.ForNodes) > maxSliceHints {
		return append(errs, field.TooMany(nodes, len(hints.ForNodes), maxSliceHints))
	}
	seen = map[string]bool{}
	for i, node := range hints.ForNodes {
		at := nodes.Index(i).Child("name")
		if seen[node.Name] {
			errs = append(errs, field.Duplicate(at, node.Name))
		}
		seen[node.Name] = true
		errs = append(errs, validateNodeName(&node.Name, at)...)
	}
	return errs
}
