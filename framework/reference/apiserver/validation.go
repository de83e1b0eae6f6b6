package apiserver

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/service"
)

// What the strategies of this package check is enough that the data of Services, nodes and endpoints is sound. It is
// less than a real server checks of a Pod or a Node, which are only the surroundings of a Service here.

// refusal is the Status of a failed validation, nil when there are no errors.
func refusal(res *resource, name string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(res.gvk.GroupKind(), name, errs)
}

func validateMetadata(res *resource, m *metav1.ObjectMeta, name apivalidation.ValidateNameFunc) field.ErrorList {
	return append(apivalidation.ValidateObjectMeta(m, res.namespaced, name, field.NewPath("metadata")), validateFinalizers(m)...)
}

// validateFinalizers asks of finalizers what those of a Service are asked.
func validateFinalizers(m *metav1.ObjectMeta) field.ErrorList {
	return service.ValidateFinalizers(m.Finalizers, field.NewPath("metadata", "finalizers"))
}

func validateMetadataUpdate(m, old *metav1.ObjectMeta) field.ErrorList {
	return apivalidation.ValidateObjectMetaUpdate(m, old, field.NewPath("metadata"))
}

// validateReachable accepts of the valid addresses those that traffic can be sent to.
func validateReachable(text string, path *field.Path) (errs field.ErrorList) {
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return field.ErrorList{field.Invalid(path, text, err.Error())}
	}
	for _, special := range []struct {
		is   bool
		what string
	}{
		{ip.IsUnspecified(), fmt.Sprintf("may not be unspecified (%v)", text)},
		{ip.IsLoopback(), "may not be in the loopback range (127.0.0.0/8, ::1/128)"},
		{ip.IsLinkLocalUnicast(), "may not be in the link-local range (169.254.0.0/16, fe80::/10)"},
		{ip.IsLinkLocalMulticast(), "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"},
	} {
		if special.is {
			errs = append(errs, field.Invalid(path, text, special.what))
		}
	}
	return errs
}

var protocols = []corev1.Protocol{corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP}

func validateProtocol(p corev1.Protocol, path *field.Path) field.ErrorList {
	if slices.Contains(protocols, p) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, p, protocols)}
}

func validateAppProtocol(p *string, path *field.Path) (errs field.ErrorList) {
	if p == nil {
		return nil
	}
	for _, message := range validation.IsQualifiedName(*p) {
		errs = append(errs, field.Invalid(path, *p, message))
	}
	return errs
}

func validateDNSLabel(text string, path *field.Path) field.ErrorList {
	if messages := validation.IsDNS1123Label(text); len(messages) > 0 {
		return field.ErrorList{field.Invalid(path, text, strings.Join(messages, ", "))}
	}
	return nil
}

// validateNodeName accepts the name that a Node may have; nil is no name.
func validateNodeName(name *string, path *field.Path) (errs field.ErrorList) {
	if name == nil {
		return nil
	}
	for _, message := range apivalidation.NameIsDNSSubdomain(*name, false) {
		errs = append(errs, field.Invalid(path, *name, message))
	}
	return errs
}

func validatePortNumber(port int32, path *field.Path) field.ErrorList {
	if messages := validation.IsValidPortNum(int(port)); len(messages) > 0 {
		return field.ErrorList{field.Invalid(path, port, strings.Join(messages, ", "))}
	}
	return nil
}

// anyName is for objects whose names need only fit into a path.
func anyName(name string, prefix bool) []string {
	if prefix {
		name = strings.TrimSuffix(name, "-") + "x"
	}
	return apivalidation.NameIsDNSSubdomain(name, false)
}
