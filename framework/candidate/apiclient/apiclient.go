// Package apiclient has typed clients of the API objects that Services are made of, and that stand around them. They are the generic clients of client-go. The package
// kubernetes of client-go has the same for all API groups, and with them a hundred packages that a program waits for when it is built. Whoever has one of its clients
// gives it to fromclientset.Of.
package apiclient

import (
	"context"
	"net/http"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
)

// Interface is a client of one API server. Its methods have the names that they have in client-go.
type Interface interface {
	AppsV1() AppsV1
	CoreV1() CoreV1
	DiscoveryV1() DiscoveryV1
	NetworkingV1() NetworkingV1
}

// AppsV1 are the clients of the group apps.
type AppsV1 interface {
	DaemonSets(namespace string) Objects[*appsv1.DaemonSet, *appsv1.DaemonSetList]
	Deployments(namespace string) Objects[*appsv1.Deployment, *appsv1.DeploymentList]
}

// CoreV1 are the clients of the core group.
type CoreV1 interface {
	// RESTClient sends any other request to the API server.
	RESTClient() rest.Interface
	ConfigMaps(namespace string) Objects[*corev1.ConfigMap, *corev1.ConfigMapList]
	Endpoints(namespace string) Collection[*corev1.Endpoints, *corev1.EndpointsList]
	Namespaces() WithStatus[*corev1.Namespace, *corev1.NamespaceList]
	Nodes() WithStatus[*corev1.Node, *corev1.NodeList]
	Pods(namespace string) Pods
	Services(namespace string) WithStatus[*corev1.Service, *corev1.ServiceList]
}

// DiscoveryV1 are the clients of the group discovery.k8s.io.
type DiscoveryV1 interface {
	EndpointSlices(namespace string) Collection[*discoveryv1.EndpointSlice, *discoveryv1.EndpointSliceList]
}

// NetworkingV1 are the clients of the group networking.k8s.io.
type NetworkingV1 interface {
	IPAddresses() Objects[*networkingv1.IPAddress, *networkingv1.IPAddressList]
	ServiceCIDRs() WithStatus[*networkingv1.ServiceCIDR, *networkingv1.ServiceCIDRList]
}

// Objects is a client of the objects of one kind, in one namespace where they are in namespaces.
type Objects[T, L any] interface {
	Create(ctx context.Context, object T, options metav1.CreateOptions) (T, error)
	Update(ctx context.Context, object T, options metav1.UpdateOptions) (T, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
	Patch(ctx context.Context, name string, kind types.PatchType, patch []byte, options metav1.PatchOptions, subresources ...string) (T, error)
}

// WithStatus is a client of objects whose status is a subresource.
type WithStatus[T, L any] interface {
	Objects[T, L]
	UpdateStatus(ctx context.Context, object T, options metav1.UpdateOptions) (T, error)
}

// Collection is a client of objects that one request deletes together.
type Collection[T, L any] interface {
	Objects[T, L]
	DeleteCollection(ctx context.Context, options metav1.DeleteOptions, which metav1.ListOptions) error
}

// Pods is a client of Pods.
type Pods interface {
	WithStatus[*corev1.Pod, *corev1.PodList]
	DeleteCollection(ctx context.Context, options metav1.DeleteOptions, which metav1.ListOptions) error
}

// codec is how objects of the groups are written and read. It is made at first use, so that importing the package costs nothing.
var codec = sync.OnceValue(func() (c struct {
	scheme     *runtime.Scheme
	objects    runtime.NegotiatedSerializer
	parameters runtime.ParameterCodec
}) {
	c.scheme = runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, discoveryv1.AddToScheme, networkingv1.AddToScheme} {
		utilruntime.Must(add(c.scheme))
	}
	metav1.AddToGroupVersion(c.scheme, schema.GroupVersion{Version: "v1"})
	c.objects = rest.CodecFactoryForGeneratedClient(c.scheme, serializer.NewCodecFactory(c.scheme)).WithoutConversion()
	c.parameters = runtime.NewParameterCodec(c.scheme)
	return c
})

// Scheme knows the types of the groups. It is shared, and not to be changed.
func Scheme() *runtime.Scheme { return codec().scheme }

// New makes a client.
func New(config *rest.Config) (Interface, error) {
	config = rest.CopyConfig(config)
	if config.UserAgent == "" {
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	client, err := rest.HTTPClientFor(config) // which sends the name of the user agent
	if err != nil {
		return nil, err
	}
	return NewFor(config, client)
}

// NewFor makes a client that sends its requests by an HTTP client, which has the transport and the authentication.
func NewFor(config *rest.Config, client *http.Client) (Interface, error) {
	c := &clients{}
	for _, group := range []struct {
		version schema.GroupVersion
		client  *rest.Interface
	}{
		{appsv1.SchemeGroupVersion, &c.apps.client}, {corev1.SchemeGroupVersion, &c.core.client},
		{discoveryv1.SchemeGroupVersion, &c.discovery.client}, {networkingv1.SchemeGroupVersion, &c.networking.client},
	} {
		own := rest.CopyConfig(config)
		own.GroupVersion, own.APIPath, own.NegotiatedSerializer = &group.version, "/apis", codec().objects
		if group.version.Group == "" {
			own.APIPath = "/api"
		}
		made, err := rest.RESTClientForConfigAndClient(own, client)
		if err != nil {
			return nil, err
		}
		*group.client = made
	}
	return c, nil
}

type (
	clients struct {
		apps       apps
		core       core
		discovery  discovery
		networking networking
	}
	apps       struct{ client rest.Interface }
	core       struct{ client rest.Interface }
	discovery  struct{ client rest.Interface }
	networking struct{ client rest.Interface }
)

func (c *clients) AppsV1() AppsV1             { return c.apps }
func (c *clients) CoreV1() CoreV1             { return c.core }
func (c *clients) DiscoveryV1() DiscoveryV1   { return c.discovery }
func (c *clients) NetworkingV1() NetworkingV1 { return c.networking }

func (c apps) DaemonSets(namespace string) Objects[*appsv1.DaemonSet, *appsv1.DaemonSetList] {
	return objects[appsv1.DaemonSet, appsv1.DaemonSetList](c.client, "daemonsets", namespace)
}

func (c apps) Deployments(namespace string) Objects[*appsv1.Deployment, *appsv1.DeploymentList] {
	return objects[appsv1.Deployment, appsv1.DeploymentList](c.client, "deployments", namespace)
}

func (c core) RESTClient() rest.Interface { return c.client }

func (c core) ConfigMaps(namespace string) Objects[*corev1.ConfigMap, *corev1.ConfigMapList] {
	return objects[corev1.ConfigMap, corev1.ConfigMapList](c.client, "configmaps", namespace)
}

func (c core) Endpoints(namespace string) Collection[*corev1.Endpoints, *corev1.EndpointsList] {
	return objects[corev1.Endpoints, corev1.EndpointsList](c.client, "endpoints", namespace)
}

func (c core) Namespaces() WithStatus[*corev1.Namespace, *corev1.NamespaceList] {
	return objects[corev1.Namespace, corev1.NamespaceList](c.client, "namespaces", "")
}

func (c core) Nodes() WithStatus[*corev1.Node, *corev1.NodeList] {
	return objects[corev1.Node, corev1.NodeList](c.client, "nodes", "")
}

func (c core) Pods(namespace string) Pods {
	return objects[corev1.Pod, corev1.PodList](c.client, "pods", namespace)
}

func (c core) Services(namespace string) WithStatus[*corev1.Service, *corev1.ServiceList] {
	return objects[corev1.Service, corev1.ServiceList](c.client, "services", namespace)
}

func (c discovery) EndpointSlices(namespace string) Collection[*discoveryv1.EndpointSlice, *discoveryv1.EndpointSliceList] {
	return objects[discoveryv1.EndpointSlice, discoveryv1.EndpointSliceList](c.client, "endpointslices", namespace)
}

func (c networking) IPAddresses() Objects[*networkingv1.IPAddress, *networkingv1.IPAddressList] {
	return objects[networkingv1.IPAddress, networkingv1.IPAddressList](c.client, "ipaddresses", "")
}

func (c networking) ServiceCIDRs() WithStatus[*networkingv1.ServiceCIDR, *networkingv1.ServiceCIDRList] {
	return objects[networkingv1.ServiceCIDR, networkingv1.ServiceCIDRList](c.client, "servicecidrs", "")
}

// objects makes the client of a kind as the generated ones of client-go do.
func objects[O, M any, T interface {
	*O
	runtime.Object
	metav1.Object
}, L interface {
	*M
	runtime.Object
}](client rest.Interface, resource, namespace string) *gentype.ClientWithList[T, L] {
	return gentype.NewClientWithList(resource, client, codec().parameters, namespace,
		func() T { return new(O) }, func() L { return new(M) }, gentype.PrefersProtobuf[T]())
}
