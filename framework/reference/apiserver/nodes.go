package apiserver

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// nodeStrategy keeps nodes as objects; nobody runs on them.
type nodeStrategy struct{}

func (nodeStrategy) defaults(*Server, object) {}

func (nodeStrategy) create(_ *Server, obj object, _ bool) (transaction, error) {
	node := obj.(*corev1.Node)
	errs := validateMetadata(nodes, &node.ObjectMeta, apivalidation.NameIsDNSSubdomain)
	return noTransaction{}, refusal(nodes, node.Name, append(errs, validateNodeAddresses(node)...))
}

func (nodeStrategy) update(_ *Server, obj, old object, subresource string, _ bool) (transaction, error) {
	node, was := obj.(*corev1.Node), old.(*corev1.Node)
	if subresource == "status" {
		node.Spec = was.Spec
	} else {
		node.Status = was.Status
	}
	errs := validateMetadataUpdate(&node.ObjectMeta, &was.ObjectMeta)
	return noTransaction{}, refusal(nodes, node.Name, append(errs, validateNodeAddresses(node)...))
}

func (nodeStrategy) deleted(*Server, object) {}

func (nodeStrategy) warnings(_ *Server, _, _ object, _ string) []string { return nil }

func validateNodeAddresses(node *corev1.Node) (errs field.ErrorList) {
	seen := map[corev1.NodeAddress]bool{}
	for i, a := range node.Status.Addresses {
		if seen[a] {
			errs = append(errs, field.Duplicate(field.NewPath("status", "addresses").Index(i), a))
		}
		seen[a] = true
	}
	return errs
}

func nodeFields(o object, set fields.Set) {
	set["spec.unschedulable"] = strconv.FormatBool(o.(*corev1.Node).Spec.Unschedulable)
}
