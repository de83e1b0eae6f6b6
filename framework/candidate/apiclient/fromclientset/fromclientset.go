// Package fromclientset makes an apiclient.Interface of a client of all API groups, such as the one that client-go has for tests.
package fromclientset

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/client-go/kubernetes"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	typeddiscoveryv1 "k8s.io/client-go/kubernetes/typed/discovery/v1"
	typednetworkingv1 "k8s.io/client-go/kubernetes/typed/networking/v1"

	"github.com/service-conformance/conformance/framework/candidate/apiclient"
)

// Of is the client, seen as one of the groups that apiclient knows.
func Of(client kubernetes.Interface) apiclient.Interface { return clientset{client} }

type (
	clientset struct{ client kubernetes.Interface }
	apps      struct{ typedappsv1.AppsV1Interface }
	core      struct{ typedcorev1.CoreV1Interface }
	discovery struct {
		typeddiscoveryv1.DiscoveryV1Interface
	}
	networking struct {
		typednetworkingv1.NetworkingV1Interface
	}
)

func (c clientset) AppsV1() apiclient.AppsV1             { return apps{c.client.AppsV1()} }
func (c clientset) CoreV1() apiclient.CoreV1             { return core{c.client.CoreV1()} }
func (c clientset) DiscoveryV1() apiclient.DiscoveryV1   { return discovery{c.client.DiscoveryV1()} }
func (c clientset) NetworkingV1() apiclient.NetworkingV1 { return networking{c.client.NetworkingV1()} }

func (a apps) DaemonSets(namespace string) apiclient.Objects[*appsv1.DaemonSet, *appsv1.DaemonSetList] {
	return a.AppsV1Interface.DaemonSets(namespace)
}

func (a apps) Deployments(namespace string) apiclient.Objects[*appsv1.Deployment, *appsv1.DeploymentList] {
	return a.AppsV1Interface.Deployments(namespace)
}

func (c core) ConfigMaps(namespace string) apiclient.Objects[*corev1.ConfigMap, *corev1.ConfigMapList] {
	return c.CoreV1Interface.ConfigMaps(namespace)
}

func (c core) Endpoints(namespace string) apiclient.Collection[*corev1.Endpoints, *corev1.EndpointsList] {
	return c.CoreV1Interface.Endpoints(namespace)
}

func (c core) Namespaces() apiclient.WithStatus[*corev1.Namespace, *corev1.NamespaceList] {
	return c.CoreV1Interface.Namespaces()
}

func (c core) Nodes() apiclient.WithStatus[*corev1.Node, *corev1.NodeList] {
	return c.CoreV1Interface.Nodes()
}

func (c core) Pods(namespace string) apiclient.Pods { return c.CoreV1Interface.Pods(namespace) }

func (c core) Services(namespace string) apiclient.WithStatus[*corev1.Service, *corev1.ServiceList] {
	return c.CoreV1Interface.Services(namespace)
}

func (d discovery) EndpointSlices(namespace string) apiclient.Collection[*discoveryv1.EndpointSlice, *discoveryv1.EndpointSliceList] {
	return d.DiscoveryV1Interface.EndpointSlices(namespace)
}

func (n networking) IPAddresses() apiclient.Objects[*networkingv1.IPAddress, *networkingv1.IPAddressList] {
	return n.NetworkingV1Interface.IPAddresses()
}

func (n networking) ServiceCIDRs() apiclient.WithStatus[*networkingv1.ServiceCIDR, *networkingv1.ServiceCIDRList] {
	return n.NetworkingV1Interface.ServiceCIDRs()
}
