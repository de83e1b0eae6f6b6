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
	maxSliceEndpoints     = 1000
	maxSliceAddresses     = 100
	maxSlicePorts         = 20000
	maxSliceTopologyItems = 16
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
	errs := validateMetadata(endpointSlices, &slice.ObjectMeta, apivalidation.NameIsDNSSubdomain)
	return noTransaction{}, refusal(endpointSlices, slice.Name, append(errs, validateEndpointSlice(slice)...))
}

func (endpointSliceStrategy) update(_ *Server, obj, old object, _ string, _ bool) (transaction, error) {
	slice, was := obj.(*discoveryv1.EndpointSlice), old.(*discoveryv1.EndpointSlice)
	if !equality.Semantic.DeepEqual(slice.Endpoints, was.Endpoints) || !equality.Semantic.DeepEqual(slice.Ports, was.Ports) ||
		!equality.Semantic.DeepEqual(slice.Labels, was.Labels) {
		slice.Generation = was.Generation + 1
	}
	errs := validateMetadataUpdate(&slice.ObjectMeta, &was.ObjectMeta)
	errs = append(errs, validateEndpointSlice(slice)...)
	errs = append(errs, apivalidation.ValidateImmutableField(slice.AddressType, was.AddressType, field.NewPath("addressType"))...)
	return noTransaction{}, refusal(endpointSlices, slice.Name, errs)
}

func (endpointSliceStrategy) deleted(*Server, object) {}

func (endpointSliceStrategy) warnings(*Server, object, string) []string { return nil }

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
	for i, text := range e.Addresses {
		at := path.Child("addresses").Index(i)
		if addressType == discoveryv1.AddressTypeFQDN {
			errs = append(errs, validation.IsFullyQualifiedDomainName(at, text)...)
			continue
		}
		invalid := validateEndpointAddress(text, at)
		if ip, err := netip.ParseAddr(text); err == nil && ip.Is4() != (addressType == discoveryv1.AddressTypeIPv4) {
			invalid = append(invalid, field.Invalid(at, text, "must be an address of type "+string(addressType)))
		}
		errs = append(errs, invalid...)
	}
	if e.Hostname != nil {
		errs = append(errs, validateDNSLabel(*e.Hostname, path.Child("hostname"))...)
	}
	if e.NodeName != nil {
		for _, message := range apivalidation.NameIsDNSSubdomain(*e.NodeName, false) {
			errs = append(errs, field.Invalid(path.Child("nodeName"), *e.NodeName, message))
		}
	}
	if len(e.DeprecatedTopology) > maxSliceTopologyItems {
		errs = append(errs, field.TooMany(path.Child("deprecatedTopology"), len(e.DeprecatedTopology), maxSliceTopologyItems))
	}
	return errs
}
