package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/candidate/apiclient"
	"github.com/service-conformance/conformance/framework/spec"
)

var _ candidate.Accountable = (*Cluster)(nil)

// goneWithin bounds how long namespaces that are being deleted may take before they count as left.
const goneWithin = 20 * time.Second

// CloseAndAccount implements candidate.Accountable: it looks for objects of the run. The Service of the DNS that was set aside counts as one.
func (c *Cluster) CloseAndAccount(ctx context.Context, run string) (candidate.Residue, error) {
	err := c.Close(ctx)
	r, looked := residueIn(ctx, c.client, run, []string{run, c.runID}, c.description.Has(spec.ServiceCIDRAPI))
	return r, errors.Join(err, looked)
}

// residueIn looks for objects of a run, whose namespaces have one of the labels.
func residueIn(ctx context.Context, client apiclient.Interface, run string, labels []string, serviceCIDRAPI bool) (candidate.Residue, error) {
	r := candidate.Residue{Looked: []string{"Namespaces"}}
	spaces, err := namespacesLeft(ctx, client, labels)
	if err != nil {
		return r, err
	}
	for _, ns := range spaces {
		words := "Namespace " + ns.Name
		if ns.DeletionTimestamp != nil {
			words += ", which is being deleted" + hindrances(&ns)
		}
		r.Left = append(r.Left, words)
	}
	switch _, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, aside, metav1.GetOptions{}); {
	case err == nil:
		r.Left = append(r.Left, fmt.Sprintf("ConfigMap %s/%s, with the Service of the DNS", metav1.NamespaceSystem, aside))
		fallthrough
	case apierrors.IsNotFound(err):
		r.Looked = append(r.Looked, "ConfigMaps")
	case !apierrors.IsForbidden(err): // a run without the right has made none
		return r, fmt.Errorf("look for the ConfigMap %s: %w", aside, err)
	}
	if !serviceCIDRAPI {
		return r, nil
	}
	cidrs, err := client.NetworkingV1().ServiceCIDRs().List(ctx, metav1.ListOptions{})
	if err != nil {
		return r, fmt.Errorf("list the ServiceCIDRs: %w", err)
	}
	for _, s := range cidrs.Items {
		if strings.HasPrefix(s.Name, "conformance-"+run) {
			r.Left = append(r.Left, "ServiceCIDR "+s.Name)
		}
	}
	r.Looked = append(r.Looked, "ServiceCIDRs")
	return r, nil
}

// namespacesLeft waits until the namespaces of a run are gone that are being deleted, and returns those that stay.
func namespacesLeft(ctx context.Context, client apiclient.Interface, labels []string) ([]corev1.Namespace, error) {
	for deadline := time.Now().Add(goneWithin); ; {
		all, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: fmt.Sprintf("%s in (%s)", candidate.RunLabel, strings.Join(labels, ","))})
		if err != nil {
			return nil, fmt.Errorf("list the Namespaces of the run: %w", err)
		}
		going := slices.ContainsFunc(all.Items, func(ns corev1.Namespace) bool { return ns.DeletionTimestamp != nil })
		if !going || time.Now().After(deadline) {
			return all.Items, nil
		}
		select {
		case <-ctx.Done():
			return all.Items, nil
		case <-time.After(200 * time.Millisecond):
		}
	}
}
