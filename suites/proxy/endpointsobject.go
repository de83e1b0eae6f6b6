package proxy

import (
	"context"
	"fmt"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
)

// endpointsObject reads the Endpoints object with the name of the Service; nil if there is none.
func endpointsObject(ctx context.Context, net *check.Network, svc *corev1.Service) *corev1.Endpoints {
	ginkgo.GinkgoHelper()
	object, err := net.Client().CoreV1().Endpoints(svc.Namespace).Get(ctx, svc.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	check.Must(err)
	return object
}

// objectAddresses are the addresses that an Endpoints object lists: those that are ready, and those that are not.
func objectAddresses(object *corev1.Endpoints) (ready, notReady []string) {
	if object == nil {
		return nil, nil
	}
	for _, s := range object.Subsets {
		for _, a := range s.Addresses {
			ready = append(ready, a.IP)
		}
		for _, a := range s.NotReadyAddresses {
			notReady = append(notReady, a.IP)
		}
	}
	return ready, notReady
}

// addressesOfObject are the addresses that the Endpoints object of the Service lists, ready or not.
func addressesOfObject(ctx context.Context, net *check.Network, svc *corev1.Service) []string {
	ginkgo.GinkgoHelper()
	ready, notReady := objectAddresses(endpointsObject(ctx, net, svc))
	return append(ready, notReady...)
}

// hasNoEndpointsObject demands that no Endpoints object has the name of the Service.
func hasNoEndpointsObject(ctx context.Context, net *check.Network, svc *corev1.Service) {
	ginkgo.GinkgoHelper()
	if endpointsObject(ctx, net, svc) != nil {
		ginkgo.Fail(fmt.Sprintf("there is an Endpoints object with the name of Service %s", svc.Name))
	}
}

// createEndpoints makes an Endpoints object by hand, with the name of a Service.
func createEndpoints(ctx context.Context, net *check.Network, svc *corev1.Service, labels map[string]string, subsets ...corev1.EndpointSubset) *corev1.Endpoints {
	ginkgo.GinkgoHelper()
	object, err := candidate.Create(ctx, net.Client().CoreV1().Endpoints(svc.Namespace),
		&corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: svc.Name, Labels: labels}, Subsets: subsets})
	check.Must(err)
	return object
}

// endpointsOf makes an Endpoints object by hand that lists the pods for the ports of the Service.
func endpointsOf(ctx context.Context, net *check.Network, svc *corev1.Service, pods ...candidate.Pod) *corev1.Endpoints {
	ginkgo.GinkgoHelper()
	subset := corev1.EndpointSubset{}
	for _, a := range addressesOf(net.PrimaryFamily(), pods...) {
		subset.Addresses = append(subset.Addresses, corev1.EndpointAddress{IP: a})
	}
	for _, p := range svc.Spec.Ports {
		subset.Ports = append(subset.Ports, corev1.EndpointPort{Name: p.Name, Port: p.TargetPort.IntVal, Protocol: p.Protocol})
	}
	return createEndpoints(ctx, net, svc, nil, subset)
}

// replaceEndpoints writes an Endpoints object.
func replaceEndpoints(ctx context.Context, net *check.Network, object *corev1.Endpoints) *corev1.Endpoints {
	ginkgo.GinkgoHelper()
	object, err := candidate.Update(ctx, net.Client().CoreV1().Endpoints(object.Namespace), object)
	check.Must(err)
	return object
}
