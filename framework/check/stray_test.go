package check

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/candidate/apiclient/fromclientset"
)

// TestOnlyAddressesOfChecksWhoseServicesAreGoneAreRemoved demands that nothing of others goes, and nothing that is in use.
func TestOnlyAddressesOfChecksWhoseServicesAreGoneAreRemoved(t *testing.T) {
	address := func(name, resource, namespace, parent string) runtime.Object {
		a := &networkingv1.IPAddress{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if resource != "" {
			a.Spec.ParentRef = &networkingv1.ParentReference{Resource: resource, Namespace: namespace, Name: parent}
		}
		return a
	}
	client := fake.NewClientset(
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "conformance-a-1", Name: "there"}},
		address("10.96.0.2", "services", "conformance-a-1", "there"),
		address("10.96.0.3", "services", "conformance-a-1", "gone"),
		address("10.96.0.4", "services", "shop", "gone"),
		address("10.96.0.5", "gateways", "conformance-a-1", "gone"),
		address("10.96.0.6", "", "", ""),
		&networkingv1.IPAddress{ObjectMeta: metav1.ObjectMeta{Name: "10.96.0.7", Labels: map[string]string{candidate.RunLabel: "conformance-a-2"}}}, // that a killed check has reserved
	)
	cp := &ControlPlane{client: fromclientset.Of(client)}
	if err := cp.removeStrays(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := client.NetworkingV1().IPAddresses().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, a := range list.Items {
		left = append(left, a.Name)
	}
	if slices.Sort(left); !slices.Equal(left, []string{"10.96.0.2", "10.96.0.4", "10.96.0.5", "10.96.0.6"}) {
		t.Errorf("left are %v", left)
	}
}
