package apiserver

import (
	"context"
	"fmt"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// runningPod is a Pod that the Service of newService selects, as a kubelet would have it.
func runningPod(name, address string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": "a"}},
		Spec:       corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

// listed are the ready endpoints of a Service.
func listed(t *testing.T, client kubernetes.Interface, service string) []string {
	t.Helper()
	named := metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service}
	list, err := client.DiscoveryV1().EndpointSlices("default").List(context.Background(), named)
	if err != nil {
		t.Fatal(err)
	}
	addresses := []string{}
	for _, s := range list.Items {
		for _, e := range s.Endpoints {
			if *e.Conditions.Ready {
				addresses = append(addresses, e.Addresses...)
			}
		}
	}
	slices.Sort(addresses)
	return addresses
}

func TestEndpointsFollowWithinTheRequest(t *testing.T) {
	g, ctx := NewWithT(t), context.Background()
	server := startServer(t, Options{Controllers: true})
	client := clientFor(t, server, mediaJSON)
	svc := newService("a")
	svc.Spec.Selector = map[string]string{"app": "a"}
	created, err := client.CoreV1().Services("default").Create(ctx, svc, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	empty, err := client.DiscoveryV1().EndpointSlices("default").List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=a"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(empty.Items).To(HaveLen(1), "a Service without pods has an empty slice")
	g.Expect(metav1.IsControlledBy(&empty.Items[0], created)).To(BeTrue())

	g.Expect(server.StorePod(runningPod("one", "10.0.0.1"))).To(Succeed())
	g.Expect(listed(t, client, "a")).To(Equal([]string{"10.0.0.1"}), "a pod that was stored in the process")

	pods := client.CoreV1().Pods("default")
	made, err := pods.Create(ctx, runningPod("two", "10.0.0.2"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	made.Status = runningPod("two", "10.0.0.2").Status
	_, err = pods.UpdateStatus(ctx, made, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(listed(t, client, "a")).To(Equal([]string{"10.0.0.1", "10.0.0.2"}), "a pod whose status was written by a request")

	_, err = pods.Patch(ctx, "one", types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"b"}}}`), metav1.PatchOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(listed(t, client, "a")).To(Equal([]string{"10.0.0.2"}), "a pod whose label was changed")

	g.Expect(pods.Delete(ctx, "two", metav1.DeleteOptions{})).To(Succeed())
	g.Expect(listed(t, client, "a")).To(BeEmpty(), "a pod that terminates")
	g.Expect(server.RemovePod("default", "two")).To(Succeed())

	_, err = client.CoreV1().Services("default").Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"selector":{"app":"b"}}}`), metav1.PatchOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(listed(t, client, "a")).To(Equal([]string{"10.0.0.1"}), "a selector that was changed")

	g.Expect(client.DiscoveryV1().EndpointSlices("default").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})).To(Succeed())
	g.Expect(listed(t, client, "a")).To(Equal([]string{"10.0.0.1"}), "slices that somebody has deleted")

	g.Expect(client.CoreV1().Services("default").Delete(ctx, "a", metav1.DeleteOptions{})).To(Succeed())
	rest, err := client.DiscoveryV1().EndpointSlices("default").List(ctx, metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(rest.Items).To(BeEmpty(), "slices of a Service that was deleted")
	objects, err := client.CoreV1().Endpoints("default").List(ctx, metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(objects.Items).To(BeEmpty(), "Endpoints of a Service that was deleted")
}

func TestZonesFollowTheNodes(t *testing.T) {
	g := NewWithT(t)
	server := startServer(t, Options{Controllers: true})
	client := clientFor(t, server, mediaJSON)
	svc := newService("a")
	svc.Spec.Selector = map[string]string{"app": "a"}
	_, err := client.CoreV1().Services("default").Create(context.Background(), svc, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(server.StorePod(runningPod("one", "10.0.0.1"))).To(Succeed())
	for _, zone := range []string{"east", "west"} {
		node := metav1.ObjectMeta{Name: "node", Labels: map[string]string{corev1.LabelTopologyZone: zone}}
		g.Expect(server.StoreNode(&corev1.Node{ObjectMeta: node})).To(Succeed())
		list, err := client.DiscoveryV1().EndpointSlices("default").List(context.Background(), metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(*list.Items[0].Endpoints[0].Zone).To(Equal(zone))
	}
}

func TestConcurrentPodsAllBecomeEndpoints(t *testing.T) {
	g := NewWithT(t)
	server := startServer(t, Options{Controllers: true})
	client := clientFor(t, server, mediaJSON)
	svc := newService("a")
	svc.Spec.Selector = map[string]string{"app": "a"}
	_, err := client.CoreV1().Services("default").Create(context.Background(), svc, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	const n = 40
	stored := make(chan error)
	for i := range n {
		go func() { stored <- server.StorePod(runningPod(fmt.Sprint("pod-", i), fmt.Sprint("10.0.0.", i+1))) }()
	}
	for range n {
		g.Expect(<-stored).To(Succeed())
	}
	g.Expect(listed(t, client, "a")).To(HaveLen(n))
}

func TestServersWithoutControllersMakeNoEndpoints(t *testing.T) {
	g := NewWithT(t)
	server := startServer(t, Options{})
	client := clientFor(t, server, mediaJSON)
	svc := newService("a")
	svc.Spec.Selector = map[string]string{"app": "a"}
	_, err := client.CoreV1().Services("default").Create(context.Background(), svc, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(server.StorePod(runningPod("one", "10.0.0.1"))).To(Succeed())
	list, err := client.DiscoveryV1().EndpointSlices("default").List(context.Background(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(list.Items).To(BeEmpty())
}
