package apiserver

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDeletedNamespaceIsEmptied(t *testing.T) {
	g, ctx := NewWithT(t), context.Background()
	s := startServer(t, Options{})
	c := clientFor(t, s, mediaJSON)
	ns, err := c.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ns.Labels).To(HaveKeyWithValue(corev1.LabelMetadataName, ns.Name))
	g.Expect(ns.Spec.Finalizers).To(ConsistOf(corev1.FinalizerKubernetes))
	svc, err := c.CoreV1().Services(ns.Name).Create(ctx, newService("a"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.CoreV1().Namespaces().Delete(ctx, ns.Name, metav1.DeleteOptions{})).To(Succeed())
	_, err = c.CoreV1().Namespaces().Get(ctx, ns.Name, metav1.GetOptions{})
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue())
	_, err = c.NetworkingV1().IPAddresses().Get(ctx, svc.Spec.ClusterIP, metav1.GetOptions{})
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "the address of a Service of a deleted namespace is free")
}

func TestFinalizerHoldsANamespace(t *testing.T) {
	g, ctx := NewWithT(t), context.Background()
	c := clientFor(t, startServer(t, Options{}), mediaJSON)
	_, err := c.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "held"}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	svc := newService("a")
	svc.Finalizers = []string{"example.com/hold"}
	_, err = c.CoreV1().Services("held").Create(ctx, svc, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.CoreV1().Namespaces().Delete(ctx, "held", metav1.DeleteOptions{})).To(Succeed())
	ns, err := c.CoreV1().Namespaces().Get(ctx, "held", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ns.Status.Phase).To(Equal(corev1.NamespaceTerminating))

	_, err = c.CoreV1().Services("held").Create(ctx, newService("b"), metav1.CreateOptions{})
	g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
	g.Expect(apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)).To(BeTrue())

	left, err := c.CoreV1().Services("held").Get(ctx, "a", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	left.Finalizers = nil
	_, err = c.CoreV1().Services("held").Update(ctx, left, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = c.CoreV1().Namespaces().Get(ctx, "held", metav1.GetOptions{})
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue())
}

func TestNamespaceFinalizersOfOthers(t *testing.T) {
	g, ctx := NewWithT(t), context.Background()
	c := clientFor(t, startServer(t, Options{}), mediaJSON)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"example.com/mine"}}}
	_, err := c.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.CoreV1().Namespaces().Delete(ctx, "x", metav1.DeleteOptions{})).To(Succeed())
	ns, err = c.CoreV1().Namespaces().Get(ctx, "x", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ns.Spec.Finalizers).To(ConsistOf(corev1.FinalizerName("example.com/mine")))
	ns.Spec.Finalizers = nil
	_, err = c.CoreV1().Namespaces().Finalize(ctx, ns, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = c.CoreV1().Namespaces().Get(ctx, "x", metav1.GetOptions{})
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue())
}
