package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// eachEncoding runs a test with both encodings that client-go speaks.
func eachEncoding(t *testing.T, test func(*testing.T, string)) {
	for _, contentType := range []string{mediaJSON, mediaProtobuf} {
		t.Run(contentType, func(t *testing.T) { test(t, contentType) })
	}
}

func TestLifeOfAService(t *testing.T) {
	eachEncoding(t, func(t *testing.T, contentType string) {
		g, ctx := NewWithT(t), context.Background()
		services := clientFor(t, startServer(t, Options{}), contentType).CoreV1().Services("default")

		created, err := services.Create(ctx, newService("a"), metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(created.UID).NotTo(BeEmpty())
		g.Expect(created.ResourceVersion).NotTo(BeEmpty())
		g.Expect(created.CreationTimestamp.IsZero()).To(BeFalse())
		g.Expect(created.Generation).To(BeZero())
		g.Expect(created.Spec.ClusterIP).To(HavePrefix("10.96.0."))
		g.Expect(created.Spec.SessionAffinity).To(Equal(corev1.ServiceAffinityNone))

		read, err := services.Get(ctx, "a", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(read).To(Equal(created))

		list, err := services.List(ctx, metav1.ListOptions{LabelSelector: "!component"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(list.Items).To(HaveLen(1))
		g.Expect(list.Items[0].Spec).To(Equal(created.Spec))

		read.Labels = map[string]string{"x": "y"}
		updated, err := services.Update(ctx, read, metav1.UpdateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(updated.ResourceVersion).NotTo(Equal(created.ResourceVersion))
		g.Expect(updated.Labels).To(HaveKeyWithValue("x", "y"))
		g.Expect(updated.CreationTimestamp).To(Equal(created.CreationTimestamp))
		again, err := services.Update(ctx, updated, metav1.UpdateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again.ResourceVersion).To(Equal(updated.ResourceVersion), "an update that changes nothing is not written")

		_, err = services.Update(ctx, created, metav1.UpdateOptions{})
		g.Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
		unconditional := created.DeepCopy()
		unconditional.ResourceVersion = ""
		_, err = services.Update(ctx, unconditional, metav1.UpdateOptions{})
		g.Expect(err).NotTo(HaveOccurred())

		updated.Spec.Type = corev1.ServiceTypeExternalName // not through the status
		updated.ResourceVersion = ""
		updated.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Test", LastTransitionTime: metav1.Now()}}
		status, err := services.UpdateStatus(ctx, updated, metav1.UpdateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(status.Spec).To(Equal(created.Spec))
		g.Expect(status.Status.Conditions).To(HaveLen(1))
		g.Expect(services.Delete(ctx, "a", metav1.DeleteOptions{})).To(Succeed())
		_, err = services.Get(ctx, "a", metav1.GetOptions{})
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue())
	})
}

func TestDryRunChangesNothing(t *testing.T) {
	g, ctx := NewWithT(t), context.Background()
	s := startServer(t, Options{})
	c := clientFor(t, s, mediaJSON)
	services := c.CoreV1().Services("default")
	created, err := services.Create(ctx, newService("a"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	before := s.store.current()

	dry := []string{metav1.DryRunAll}
	_, err = services.Create(ctx, newService("b"), metav1.CreateOptions{DryRun: dry})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = services.Create(ctx, newService("a"), metav1.CreateOptions{DryRun: dry})
	g.Expect(apierrors.IsAlreadyExists(err)).To(BeTrue())
	changed := created.DeepCopy()
	changed.Spec.Type = corev1.ServiceTypeNodePort
	answer, err := services.Update(ctx, changed, metav1.UpdateOptions{DryRun: dry})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(answer.Spec.Type).To(Equal(corev1.ServiceTypeNodePort))
	_, err = services.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"x":"y"}}}`), metav1.PatchOptions{DryRun: dry})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(services.Delete(ctx, "a", metav1.DeleteOptions{DryRun: dry})).To(Succeed())
	resp, body := send(t, s, http.MethodDelete, svcPath+"?dryRun=All", "", "")
	g.Expect(resp.StatusCode).To(Equal(http.StatusOK), body)
	g.Expect(c.CoreV1().Namespaces().Delete(ctx, "kube-node-lease", metav1.DeleteOptions{DryRun: dry})).To(Succeed())
	_, err = c.NetworkingV1().ServiceCIDRs().Patch(ctx, "kubernetes", types.MergePatchType,
		[]byte(`{"spec":{"cidrs":["10.96.0.0/24","fd00::/112"]}}`), metav1.PatchOptions{DryRun: dry})
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(s.store.current()).To(Equal(before))
	read, err := services.Get(ctx, "a", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read).To(Equal(created))
}

func TestPutCreatesServicesAndEndpointsOnly(t *testing.T) {
	s := startServer(t, Options{})
	for path, want := range map[string]int{
		"/api/v1/namespaces/default/services/new":                         201,
		"/api/v1/namespaces/default/endpoints/new":                        201,
		"/api/v1/namespaces/default/pods/new":                             404,
		"/api/v1/namespaces/new":                                          404,
		"/api/v1/nodes/new":                                               404,
		"/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/new": 404,
		"/apis/networking.k8s.io/v1/servicecidrs/new":                     404,
		"/apis/networking.k8s.io/v1/ipaddresses/new":                      404,
		"/api/v1/namespaces/nope/services/new":                            404,
		"/api/v1/namespaces/default/services/new/status":                  404,
	} {
		if strings.HasSuffix(path, "status") {
			path = strings.Replace(path, "new", "other", 1)
		}
		name := strings.Split(strings.TrimSuffix(path, "/status"), "/")
		body := fmt.Sprintf(`{"metadata":{"name":%q,"resourceVersion":"7"},"spec":{"ports":[{"port":1}]}}`, name[len(name)-1])
		if strings.Contains(path, "endpoints/") || strings.Contains(path, "namespaces/new") {
			body = fmt.Sprintf(`{"metadata":{"name":%q}}`, name[len(name)-1])
		}
		if resp, answer := send(t, s, "PUT", path, mediaJSON, body); resp.StatusCode != want {
			t.Errorf("%s: want %d, got %s: %s", path, want, resp.Status, answer)
		}
	}
}

func TestGeneratedNames(t *testing.T) {
	g, ctx := NewWithT(t), context.Background()
	services := clientFor(t, startServer(t, Options{}), mediaJSON).CoreV1().Services("default")
	names := map[string]bool{}
	for range 20 {
		svc := newService("")
		svc.GenerateName = "web-"
		svc.Spec.Selector = nil
		made, err := services.Create(ctx, svc, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(made.Name).To(MatchRegexp(`^web-[a-z0-9]{5}$`))
		names[made.Name] = true
	}
	g.Expect(names).To(HaveLen(20))
}

func TestFinalizersHoldAServiceAndItsAddress(t *testing.T) {
	g, ctx := NewWithT(t), context.Background()
	c := clientFor(t, startServer(t, Options{}), mediaJSON)
	services := c.CoreV1().Services("default")
	svc := newService("a")
	svc.Finalizers = []string{"example.com/hold"}
	created, err := services.Create(ctx, svc, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	w, err := services.Watch(ctx, metav1.ListOptions{ResourceVersion: created.ResourceVersion})
	g.Expect(err).NotTo(HaveOccurred())
	defer w.Stop()

	g.Expect(services.Delete(ctx, "a", metav1.DeleteOptions{})).To(Succeed())
	g.Expect(services.Delete(ctx, "a", metav1.DeleteOptions{})).To(Succeed())
	held, err := services.Get(ctx, "a", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(held.DeletionTimestamp).NotTo(BeNil())
	_, err = c.NetworkingV1().IPAddresses().Get(ctx, created.Spec.ClusterIP, metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	more := held.DeepCopy()
	more.Finalizers = append(more.Finalizers, "example.com/more")
	_, err = services.Update(ctx, more, metav1.UpdateOptions{})
	g.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "a finalizer was added to an object that is being deleted: %v", err)

	held.Finalizers = nil
	_, err = services.Update(ctx, held, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = services.Get(ctx, "a", metav1.GetOptions{})
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue())
	_, err = c.NetworkingV1().IPAddresses().Get(ctx, created.Spec.ClusterIP, metav1.GetOptions{})
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue())
	g.Expect((<-w.ResultChan()).Type).To(BeEquivalentTo("MODIFIED"))
	g.Expect((<-w.ResultChan()).Type).To(BeEquivalentTo("DELETED"))
}

func TestPreconditionsOfDelete(t *testing.T) {
	g, ctx := NewWithT(t), context.Background()
	services := clientFor(t, startServer(t, Options{}), mediaProtobuf).CoreV1().Services("default")
	created, err := services.Create(ctx, newService("a"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	wrong := types.UID("x")
	err = services.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}})
	g.Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
	g.Expect(services.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &created.UID, ResourceVersion: &created.ResourceVersion}})).To(Succeed())
}

func TestSelectorsAndPages(t *testing.T) {
	g, ctx := NewWithT(t), context.Background()
	s := startServer(t, Options{})
	services := clientFor(t, s, mediaJSON).CoreV1().Services("default")
	for i := range 25 {
		svc := newService(fmt.Sprintf("svc-%02d", i))
		svc.Labels = map[string]string{"parity": []string{"even", "odd"}[i%2]}
		if i == 3 {
			svc.Spec.ClusterIP = "10.96.0.3"
		}
		_, err := services.Create(ctx, svc, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	}
	names := func(o metav1.ListOptions) []string {
		list, err := services.List(ctx, o)
		g.Expect(err).NotTo(HaveOccurred())
		all := []string{}
		for _, item := range list.Items {
			all = append(all, item.Name)
		}
		return all
	}
	g.Expect(names(metav1.ListOptions{LabelSelector: "parity=odd"})).To(HaveLen(12))
	g.Expect(names(metav1.ListOptions{FieldSelector: "spec.clusterIP=10.96.0.3"})).To(ConsistOf("svc-03"))
	g.Expect(names(metav1.ListOptions{FieldSelector: "spec.type=NodePort"})).To(BeEmpty())
	g.Expect(names(metav1.ListOptions{FieldSelector: "metadata.name=svc-04,metadata.namespace=default"})).To(ConsistOf("svc-04"))

	first, err := services.List(ctx, metav1.ListOptions{Limit: 10, LabelSelector: "parity"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(first.RemainingItemCount).To(BeNil(), "unknown with a selector")
	page, err := services.List(ctx, metav1.ListOptions{Limit: 10})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(*page.RemainingItemCount).To(BeEquivalentTo(16)) // with "kubernetes"
	g.Expect(services.Delete(ctx, "svc-20", metav1.DeleteOptions{})).To(Succeed())
	_, err = services.Create(ctx, newService("svc-15x"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	all, version := page.Items, page.ResourceVersion
	for page.Continue != "" {
		page, err = services.List(ctx, metav1.ListOptions{Limit: 10, Continue: page.Continue})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(page.ResourceVersion).To(Equal(version))
		all = append(all, page.Items...)
	}
	g.Expect(all).To(HaveLen(26), "the pages of a list show one state")
	g.Expect(all).To(ContainElement(HaveField("Name", "svc-20")))
	g.Expect(all).NotTo(ContainElement(HaveField("Name", "svc-15x")))

	token := func() string {
		p, err := services.List(ctx, metav1.ListOptions{Limit: 1})
		g.Expect(err).NotTo(HaveOccurred())
		return p.Continue
	}
	old := token()
	for i := range len(snapshots{}.kept) {
		_, err := services.Patch(ctx, "svc-00", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"n":"%d"}}}`, i), metav1.PatchOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		token()
	}
	_, err = services.List(ctx, metav1.ListOptions{Limit: 1, Continue: old})
	g.Expect(apierrors.IsResourceExpired(err)).To(BeTrue(), "%v", err)

	resp, body := send(t, s, http.MethodDelete, svcPath+"?labelSelector=parity%3Dodd", "", "")
	g.Expect(resp.StatusCode).To(Equal(http.StatusOK), body)
	g.Expect(names(metav1.ListOptions{LabelSelector: "parity=odd"})).To(BeEmpty())
	g.Expect(names(metav1.ListOptions{LabelSelector: "parity=even"})).To(HaveLen(12))
}

func TestConcurrentWritersLoseNothing(t *testing.T) {
	g, ctx := NewWithT(t), context.Background()
	services := clientFor(t, startServer(t, Options{}), mediaJSON).CoreV1().Services("default")
	_, err := services.Create(ctx, newService("a"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	const writers, patches = 8, 20
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for j := range patches {
				patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"w%d-%d":"x"}}}`, i, j)
				if _, err := services.Patch(ctx, "a", types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	svc, err := services.Get(ctx, "a", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(svc.Annotations).To(HaveLen(writers * patches))
}

func TestOtherResources(t *testing.T) {
	eachEncoding(t, func(t *testing.T, contentType string) {
		g, ctx := NewWithT(t), context.Background()
		c := clientFor(t, startServer(t, Options{}), contentType)

		node, err := c.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}}
		node, err = c.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(node.Status.Addresses).To(HaveLen(1))

		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "p1"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i", Ports: []corev1.ContainerPort{{ContainerPort: 80}}}}},
		}
		pods := c.CoreV1().Pods("default")
		made, err := pods.Create(ctx, pod, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(made.Spec.Containers[0].Ports[0].Protocol).To(Equal(corev1.ProtocolTCP))
		g.Expect(made.Status.Phase).To(Equal(corev1.PodPending))
		g.Expect(pods.Delete(ctx, "p1", metav1.DeleteOptions{})).To(Succeed())
		_, err = pods.Get(ctx, "p1", metav1.GetOptions{})
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "a pod without a node has nothing to end")

		pod.Spec.NodeName = "n1"
		_, err = pods.Create(ctx, pod, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pods.Delete(ctx, "p1", metav1.DeleteOptions{})).To(Succeed())
		made, err = pods.Get(ctx, "p1", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(*made.DeletionGracePeriodSeconds).To(BeEquivalentTo(30))
		list, err := pods.List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=n1"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(list.Items).To(HaveLen(1))
		g.Expect(pods.Delete(ctx, "p1", *metav1.NewDeleteOptions(0))).To(Succeed())
		_, err = pods.Get(ctx, "p1", metav1.GetOptions{})
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue())

		slice := &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Name: "s1", Labels: map[string]string{discoveryv1.LabelServiceName: "a"}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}},
			Ports:       []discoveryv1.EndpointPort{{Port: new(int32(80))}},
		}
		slices := c.DiscoveryV1().EndpointSlices("default")
		stored, err := slices.Create(ctx, slice, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(stored.Generation).To(BeEquivalentTo(1))
		g.Expect(*stored.Ports[0].Protocol).To(Equal(corev1.ProtocolTCP))
		stored.Endpoints = append(stored.Endpoints, discoveryv1.Endpoint{Addresses: []string{"10.0.0.2"}})
		stored, err = slices.Update(ctx, stored, metav1.UpdateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(stored.Generation).To(BeEquivalentTo(2))
		stored.Endpoints[0].Addresses = []string{"::1"}
		_, err = slices.Update(ctx, stored, metav1.UpdateOptions{})
		g.Expect(apierrors.IsInvalid(err)).To(BeTrue())

		_, err = c.CoreV1().Endpoints("default").Create(ctx, &corev1.Endpoints{
			ObjectMeta: metav1.ObjectMeta{Name: "e1"},
			Subsets:    []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: "127.0.0.1"}}}},
		}, metav1.CreateOptions{})
		g.Expect(apierrors.IsInvalid(err)).To(BeTrue())

		_, err = c.CoreV1().Events("default").Create(ctx, &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: "ev1"}, InvolvedObject: corev1.ObjectReference{Kind: "Service", Name: "a", Namespace: "default"}, Reason: "Test",
		}, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		found, err := c.CoreV1().Events("default").List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=a,reason=Test"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found.Items).To(HaveLen(1))
	})
}

func TestYAMLBothWaysWithWarnings(t *testing.T) {
	g := NewWithT(t)
	s := startServer(t, Options{})
	resp, body, err := trySend(t.Context(), s, http.MethodPost, svcPath, map[string]string{"Content-Type": "application/yaml; charset=utf-8", "Accept": mediaYAML},
		"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 1}], bogus: 1}\n")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(resp.StatusCode).To(Equal(http.StatusCreated), body)
	g.Expect(resp.Header.Get("Content-Type")).To(Equal(mediaYAML))
	g.Expect(body).To(ContainSubstring("kind: Service\n"))
	g.Expect(resp.Header.Values("Warning")).To(ConsistOf(`299 - "unknown field \"spec.bogus\""`))
}

// A change of the status is warned about what stands in the status, and about nothing in the spec.
func TestWarningsOfTheStatus(t *testing.T) {
	g := NewWithT(t)
	s := startServer(t, Options{})
	resp, body, err := trySend(t.Context(), s, http.MethodPost, svcPath, map[string]string{"Content-Type": "application/json"},
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"type":"LoadBalancer","ports":[{"port":80}],"loadBalancerIP":"FD00::2"}}`)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(resp.StatusCode).To(Equal(http.StatusCreated), body)
	g.Expect(resp.Header.Values("Warning")).To(ConsistOf(ContainSubstring("spec.loadBalancerIP")))
	resp, body, err = trySend(t.Context(), s, http.MethodPatch, svcPath+"/a/status", map[string]string{"Content-Type": "application/merge-patch+json"},
		`{"status":{"loadBalancer":{"ingress":[{"ip":"FD00::1"}]}}}`)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(resp.StatusCode).To(Equal(http.StatusOK), body)
	g.Expect(resp.Header.Values("Warning")).To(ConsistOf(ContainSubstring("status.loadBalancer.ingress[0]")))
}

func TestDeleteCollectionInParts(t *testing.T) {
	g, ctx := NewWithT(t), context.Background()
	s := startServer(t, Options{})
	services := clientFor(t, s, mediaJSON).CoreV1().Services("kube-public")
	for _, name := range []string{"a", "b", "c"} {
		_, err := services.Create(ctx, newService(name), metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	}
	first, err := services.List(ctx, metav1.ListOptions{Limit: 1})
	g.Expect(err).NotTo(HaveOccurred())
	resp, body := send(t, s, http.MethodDelete, "/api/v1/namespaces/kube-public/services?limit=1&continue="+first.Continue, "", "")
	g.Expect(resp.StatusCode).To(Equal(http.StatusOK), body)
	left, err := services.List(ctx, metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(left.Items).To(HaveExactElements(HaveField("Name", "a"), HaveField("Name", "c")))
}
