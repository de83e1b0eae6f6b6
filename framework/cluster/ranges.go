package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/candidate/apiclient"
	"github.com/service-conformance/conformance/framework/spec"
)

// ErrNoServiceCIDR says that the cluster does not tell its Service ranges.
var ErrNoServiceCIDR = errors.New("the cluster does not tell its Service range, by a ServiceCIDR object or by refusing an address out of it: name it with --service-cidr")

// discoverRanges finds the Service ranges, and sees that those that were named are the cluster's.
func (c *Cluster) discoverRanges(ctx context.Context, client apiclient.Interface) error {
	told, further, err := serviceCIDRs(ctx, client)
	switch {
	case err == nil && len(told) > 0:
		c.description.Capabilities = append(c.description.Capabilities, spec.ServiceCIDRAPI)
		if len(c.cidrs) > 0 && !slices.Equal(c.cidrs, told) {
			return fmt.Errorf("the cluster's Service ranges are %v, not %v", told, c.cidrs)
		}
		c.cidrs, c.description.FurtherServiceCIDRs = told, further
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("read the Service ranges: %w", err)
	default: // before Kubernetes 1.33
		if told, err = refusedRanges(ctx, client); err != nil {
			return fmt.Errorf("ask for the Service ranges: %w", err)
		}
		switch {
		case len(c.cidrs) == 0:
			c.cidrs = told
		case len(told) > 0 && !slices.Equal(c.cidrs, told):
			return fmt.Errorf("the cluster's Service ranges are %v, not %v", told, c.cidrs)
		}
	}
	if len(c.cidrs) == 0 {
		return ErrNoServiceCIDR
	}
	return nil
}

// serviceCIDRs returns the ranges of the default ServiceCIDR object, the primary family first, and those of others that addresses come from as well.
func serviceCIDRs(ctx context.Context, client apiclient.Interface) (cidrs []netip.Prefix, further []string, err error) {
	list, err := client.NetworkingV1().ServiceCIDRs().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, err
	}
	for _, object := range list.Items {
		if object.Name != "kubernetes" {
			if meta.IsStatusConditionTrue(object.Status.Conditions, networkingv1.ServiceCIDRConditionReady) {
				further = append(further, object.Spec.CIDRs...)
			}
			continue
		}
		for _, c := range object.Spec.CIDRs {
			p, err := netip.ParsePrefix(c)
			if err != nil {
				return nil, nil, err
			}
			cidrs = append(cidrs, p)
		}
	}
	return cidrs, further, primaryFirst(ctx, client, cidrs)
}

// primaryFirst puts the range of the primary family first: it is that of the Service "kubernetes", and nothing else tells.
func primaryFirst(ctx context.Context, client apiclient.Interface, cidrs []netip.Prefix) error {
	if len(cidrs) != 2 {
		return nil
	}
	svc, err := client.CoreV1().Services(corev1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil {
		if refused(err) {
			return nil
		}
		return fmt.Errorf("read the Service kubernetes: %w", err)
	}
	if ip, err := netip.ParseAddr(svc.Spec.ClusterIP); err == nil && ip.Is4() != cidrs[0].Addr().Is4() {
		slices.Reverse(cidrs)
	}
	return nil
}

// refused reports whether an error is what an API server says, and not that it says nothing.
func refused(err error) bool {
	var refusal apierrors.APIStatus
	return errors.As(err, &refusal) && !apierrors.IsTooManyRequests(err) && refusal.Status().Code <= http.StatusInternalServerError
}

// foreignAddresses are in no Service range: they are for documentation (RFC 5737, RFC 3849).
var foreignAddresses = []string{"192.0.2.1", "2001:db8::1"}

// validRange is how an API server ends its refusal of a clusterIP out of its range (pkg/registry/core/service/ipallocator, ErrNotInRange).
var validRange = regexp.MustCompile(`The range of valid IPs is ([0-9a-fA-F.:]+/[0-9]+)`)

// refusedRanges has an address of each family refused, of a Service that even without the refusal would not be stored. A family that the cluster does not have is refused
// without a range. The error is that of a server that does not answer.
func refusedRanges(ctx context.Context, client apiclient.Interface) (cidrs []netip.Prefix, err error) {
	for _, address := range foreignAddresses {
		svc := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "conformance-"},
			Spec:       corev1.ServiceSpec{ClusterIP: address, Ports: []corev1.ServicePort{{Port: 80}}},
		}
		_, err := client.CoreV1().Services(corev1.NamespaceDefault).Create(ctx, svc, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			continue
		}
		if !refused(err) {
			return nil, err
		}
		if found := validRange.FindStringSubmatch(err.Error()); found != nil {
			if p, err := netip.ParsePrefix(found[1]); err == nil {
				cidrs = append(cidrs, p.Masked())
			}
		}
	}
	return cidrs, primaryFirst(ctx, client, cidrs)
}

// validPorts is how an API server ends its refusal of a node port out of its range (pkg/registry/core/service/portallocator, ErrNotInRange).
var validPorts = regexp.MustCompile(`The range of valid ports is ([0-9]+-[0-9]+)`)

// refusedNodePorts lets the API server refuse a node port that is in no range. Even without that refusal it would not
// store the Service, whose port is 0. It is no dry run: that does not ask for the range. The API does not tell it
// otherwise; a server that refuses in other words is taken for one with the default range. The error is that of a
// server that does not answer.
func refusedNodePorts(ctx context.Context, client apiclient.Interface) (spec.PortRange, error) {
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "conformance-"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{NodePort: 65536}}},
	}
	services := client.CoreV1().Services(corev1.NamespaceDefault)
	stored, err := services.Create(ctx, svc, metav1.CreateOptions{})
	if err == nil {
		return spec.DefaultNodePorts, services.Delete(ctx, stored.Name, metav1.DeleteOptions{})
	}
	if !refused(err) {
		return spec.DefaultNodePorts, fmt.Errorf("ask for the node-port range: %w", err)
	}
	if found := validPorts.FindStringSubmatch(err.Error()); found != nil {
		if ports, err := spec.ParsePortRange(found[1]); err == nil {
			return ports, nil
		}
	}
	return spec.DefaultNodePorts, nil
}
