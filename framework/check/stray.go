package check

import (
	"context"
	"errors"
	"fmt"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/candidate"
)

// removeStrays removes IPAddress objects that stand for Services of earlier checks, which are gone. The repair of kube-apiserver makes one now and then, and it
// stays for minutes: that is for a check of spec.AllocFreedStaysFree to find. In a small range it would take an address from this check, which would accuse something
// else. So do reservations that a killed check has left, which have the label of runs. Objects of others stay: those whose parent is in a namespace that the suite did not make. It is for a range that the check has for itself.
func (cp *ControlPlane) removeStrays(ctx context.Context) error {
	addresses := cp.client.NetworkingV1().IPAddresses()
	list, err := addresses.List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) { // an API server that shows none
		return nil
	}
	if err != nil {
		return fmt.Errorf("list the IPAddress objects: %w", err)
	}
	var errs []error
	for i := range list.Items {
		object := &list.Items[i]
		if object.Labels[candidate.RunLabel] != "" {
			if err := addresses.Delete(ctx, object.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				errs = append(errs, fmt.Errorf("delete IPAddress %s, which a killed check has reserved: %w", object.Name, err))
			}
			continue
		}
		parent, ours := parentOfOurs(object)
		if !ours {
			continue
		}
		if _, err := cp.client.CoreV1().Services(parent.Namespace).Get(ctx, parent.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			continue // it is there; or what hinders the request will hinder the check, too
		}
		err := addresses.Delete(ctx, object.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &object.UID}})
		if err == nil {
			Record("stray IPAddress "+object.Name+" removed", "it stood for Service %s/%s of an earlier check, which is gone", parent.Namespace, parent.Name)
		} else if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("delete IPAddress %s, which stands for a Service that is gone: %w", object.Name, err))
		}
	}
	return errors.Join(errs...)
}

// parentOfOurs is the Service that an IPAddress stands for, if the suite made it.
func parentOfOurs(object *networkingv1.IPAddress) (*networkingv1.ParentReference, bool) {
	p := object.Spec.ParentRef
	return p, p != nil && p.Resource == "services" && strings.HasPrefix(p.Namespace, namespacePrefix)
}
