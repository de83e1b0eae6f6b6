package cluster

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/candidate/apiclient/fromclientset"
)

func TestResidueIsWhatTheRunLeft(t *testing.T) {
	namespace := func(name, run string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{candidate.RunLabel: run}}}
	}
	cidr := func(name string) *networkingv1.ServiceCIDR {
		return &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	client := fake.NewClientset(namespace("of-checks", "run"), namespace("of-agents", "cluster"), namespace("of-others", "other"), cidr("kubernetes"), cidr("conformance-run-1-2"), cidr("conformance-other-1-2"),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: aside}})
	r, err := residueIn(t.Context(), fromclientset.Of(client), "run", []string{"run", "cluster"}, true)
	want := []string{"Namespace of-agents", "Namespace of-checks", "ConfigMap kube-system/conformance-set-aside, with the Service of the DNS", "ServiceCIDR conformance-run-1-2"}
	if err != nil || !slices.Equal(r.Left, want) {
		t.Errorf("left %q, want %q, error %v", r.Left, want, err)
	}
	r, err = residueIn(t.Context(), fromclientset.Of(fake.NewClientset(namespace("of-others", "other"))), "run", []string{"run"}, true)
	if err != nil || len(r.Left) > 0 {
		t.Errorf("left %q, error %v", r.Left, err)
	}
}
