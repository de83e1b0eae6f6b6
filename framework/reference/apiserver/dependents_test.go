package apiserver

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheCollectorLetsHeldObjectsGo(t *testing.T) {
	g, ctx := NewWithT(t), context.Background()
	c := clientFor(t, startServer(t, Options{}), mediaJSON)
	services := c.CoreV1().Services("default")
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationOrphan, metav1.DeletePropagationForeground} {
		_, err := services.Create(ctx, newService("a"), metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(services.Delete(ctx, "a", metav1.DeleteOptions{PropagationPolicy: &policy})).To(Succeed())
		g.Eventually(func() bool {
			_, err := services.Get(ctx, "a", metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		}).Should(BeTrue(), "%s", policy)
	}
	g.Expect(c.CoreV1().Namespaces().Delete(ctx, "kube-node-lease", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)})).To(Succeed())
	_, err := c.CoreV1().Namespaces().Get(ctx, "kube-node-lease", metav1.GetOptions{})
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "a namespace is emptied at once")
}

func TestAFinalizerOfAnotherHoldsBesideTheCollector(t *testing.T) {
	g, ctx := NewWithT(t), context.Background()
	s := startServer(t, Options{})
	services := clientFor(t, s, mediaJSON).CoreV1().Services("default")
	held := newService("a")
	held.Finalizers = []string{"example.com/held", metav1.FinalizerOrphanDependents}
	_, err := services.Create(ctx, held, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(services.Delete(ctx, "a", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})).To(Succeed())
	stored, err := services.Get(ctx, "a", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(stored.Finalizers).To(ConsistOf("example.com/held"), "the policy of the deletion wins")
	g.Expect(services.Delete(ctx, "a", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)})).To(Succeed())
	g.Eventually(func() []string {
		stored, err := services.Get(ctx, "a", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		return stored.Finalizers
	}).Should(ConsistOf("example.com/held"))
}
