package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/spec"
)

// describeOwn adds what a check can have for itself.
func (c *Cluster) describeOwn() {
	add := func(all ...spec.Capability) {
		for _, one := range all {
			if !c.description.Has(one) {
				c.description.Capabilities = append(c.description.Capabilities, one)
			}
		}
	}
	if c.options.Disposable {
		add(spec.ExhaustibleRange)
		if c.description.Has(spec.ServiceCIDRAPI) {
			add(spec.ManageServiceCIDRs)
		}
		c.description.Shared = &candidate.SharedRanges{ServiceCIDRs: spec.ServiceCIDRs(c.cidrs).String(), NodePorts: c.nodePorts.String()}
	}
	if c.options.Proxies != nil {
		add(spec.ProxyStops)
	}
	if c.options.Servers != nil {
		add(c.options.Servers.Capabilities()...)
		c.description.Components["API servers of checks"] = "of the cluster's image and flags, but for ranges and port"
	}
}

// share leases the cluster to a check beside others.
func (c *Cluster) share(ctx context.Context) (candidate.ControlPlane, error) {
	back, err := c.turn.share(ctx)
	if err != nil {
		return nil, err
	}
	return &controlPlane{cluster: c, release: back}, nil
}

// aside is where the Service of the DNS is kept while a check has the range for itself, so that it can be put back after a killed run.
const aside = "conformance-set-aside"

// dnsService is the name of the Service of the DNS in kube-system. It is the only one beside "kubernetes" on a new cluster.
const dnsService = "kube-dns"

// putBackWithin bounds how long it may take until the address of the DNS is free again.
const putBackWithin = 2 * time.Minute

// emptyWithin bounds how long the Services of earlier checks may take to go.
const emptyWithin = time.Minute

// whole leases the cluster to one check alone. Its range holds nothing but the Service "kubernetes": the Service of the
// DNS is set aside meanwhile. Where other Services have addresses, they are of somebody, and no check may have the range.
func (c *Cluster) whole(ctx context.Context) (candidate.ControlPlane, error) {
	back, err := c.turn.own(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.setAside(ctx); err != nil {
		back()
		return nil, err
	}
	if err := c.onlyKubernetes(ctx); err != nil {
		err = errors.Join(err, c.putBack(context.WithoutCancel(ctx)))
		back()
		return nil, err
	}
	return &controlPlane{cluster: c, release: func() {
		// What fails here is kept aside, and the next lease or run tries again.
		ctx, cancel := context.WithTimeout(context.Background(), putBackWithin)
		defer cancel()
		_ = c.putBack(ctx)
		back()
	}}, nil
}

// setAside keeps the Service of the DNS in a ConfigMap, and deletes it.
func (c *Cluster) setAside(ctx context.Context) error {
	services, kept := c.client.CoreV1().Services(metav1.NamespaceSystem), c.client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	svc, err := services.Get(ctx, dnsService, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the Service %s: %w", dnsService, err)
	}
	svc.ObjectMeta = metav1.ObjectMeta{Name: svc.Name, Namespace: svc.Namespace, Labels: svc.Labels, Annotations: svc.Annotations}
	svc.Status = corev1.ServiceStatus{}
	text, err := json.Marshal(svc)
	if err != nil {
		return err
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: aside}, Data: map[string]string{dnsService: string(text)}}
	if _, err := kept.Create(ctx, object, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("keep the Service %s aside: %w", dnsService, err)
	}
	if err := services.Delete(ctx, dnsService, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("set the Service %s aside: %w", dnsService, err)
	}
	return nil
}

// putBack creates the Service of the DNS again with the address that it had, if it was set aside.
func (c *Cluster) putBack(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, putBackWithin)
	defer cancel()
	services, kept := c.client.CoreV1().Services(metav1.NamespaceSystem), c.client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	object, err := kept.Get(ctx, aside, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for what was set aside: %w", err)
	}
	var svc corev1.Service
	if err := json.Unmarshal([]byte(object.Data[dnsService]), &svc); err != nil {
		return fmt.Errorf("ConfigMap %s/%s: %w", metav1.NamespaceSystem, aside, err)
	}
	for {
		_, err := services.Create(ctx, &svc, metav1.CreateOptions{})
		if err == nil || apierrors.IsAlreadyExists(err) {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("put the Service %s back, which is kept in the ConfigMap %s/%s: %w", dnsService, metav1.NamespaceSystem, aside, err)
		case <-time.After(200 * time.Millisecond): // a check may still have its address
		}
	}
	if err := kept.Delete(ctx, aside, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the ConfigMap %s/%s: %w", metav1.NamespaceSystem, aside, err)
	}
	return nil
}

// onlyKubernetes waits until no Service but "kubernetes" has an address. The error is an *UnavailableError where others have Services.
func (c *Cluster) onlyKubernetes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, emptyWithin)
	defer cancel()
	for {
		list, err := c.client.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list the Services: %w", err)
		}
		var of, ours []string
		for _, svc := range list.Items {
			switch name := svc.Namespace + "/" + svc.Name; {
			case name == corev1.NamespaceDefault+"/kubernetes" || svc.Spec.ClusterIP == "" || svc.Spec.ClusterIP == corev1.ClusterIPNone:
			case strings.HasPrefix(svc.Namespace, "conformance-"):
				ours = append(ours, name)
			default:
				of = append(of, name)
			}
		}
		slices.Sort(of)
		switch {
		case len(of) > 0:
			return candidate.UnavailableHere("a cluster without further Services", "the range is not for a check alone: %d Services of others have addresses of it, such as %s", len(of), of[0])
		case len(ours) == 0:
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the Service %s of an earlier check stays: %w", ours[0], context.Cause(ctx))
		case <-time.After(100 * time.Millisecond):
		}
	}
}
