package apiserver

import (
	"fmt"
	"net/netip"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// serviceStrategy hands everything to service.Rules.
type serviceStrategy struct{}

func (serviceStrategy) defaults(s *Server, obj object) {
	s.rules.Load().Default(obj.(*corev1.Service))
}

func (serviceStrategy) create(s *Server, obj object, dryRun bool) (transaction, error) {
	svc := obj.(*corev1.Service)
	if err := s.refuseAbsent(svc, nil); err != nil {
		return nil, err
	}
	return heldBy(s.rules.Load().Create(svc, dryRun))
}

func (serviceStrategy) update(s *Server, obj, old object, subresource string, dryRun bool) (transaction, error) {
	svc, was := obj.(*corev1.Service), old.(*corev1.Service)
	if subresource == "status" {
		return noTransaction{}, s.rules.Load().UpdateStatus(svc, was)
	}
	if err := s.refuseAbsent(svc, was); err != nil {
		return nil, err
	}
	return heldBy(s.rules.Load().Update(svc, was, dryRun))
}

// heldBy keeps a nil transaction from becoming an interface that is not nil.
func heldBy[T transaction](tx T, err error) (transaction, error) {
	if err != nil {
		return nil, err
	}
	return tx, nil
}

func (serviceStrategy) deleted(s *Server, obj object) {
	s.rules.Load().Delete(obj.(*corev1.Service))
	s.collectServiceCIDRs()
	if obj.GetNamespace() == metav1.NamespaceDefault && obj.GetName() == kubernetesServiceName {
		_ = s.createKubernetesService() // unless somebody was quicker to take its name or its address
	}
}

func (serviceStrategy) warnings(s *Server, obj, _ object, subresource string) []string {
	return s.serviceBook.warned.Do(s, obj.(*corev1.Service), subresource)
}

// Rules for what clients see of a Service.
var (
	warned = rule.New("service-warned-of", func(s *Server, svc *corev1.Service, subresource string) []string {
		if subresource == "status" {
			return s.rules.Load().StatusWarnings(svc)
		}
		return s.rules.Load().Warnings(svc)
	}, spec.APIWarningForm)

	// Mostly the object itself is seen.
	serviceSeen = rule.New("service-seen", func(s *Server, svc *corev1.Service) *corev1.Service {
		seen := svc.DeepCopy()
		s.rules.Load().View(seen)
		if reflect.DeepEqual(seen, svc) {
			return svc // one object is enough
		}
		return seen
	}, spec.APIApplyManagedFields, spec.APISpecPreserved)

	// No pod runs here, so no Service has an endpoint that answers.
	noEndpointAnswers = rule.New("no-endpoint-answers", func(name string) error {
		return apierrors.NewServiceUnavailable(fmt.Sprintf("no endpoints available for service %q", name))
	}, spec.APIProxyNoEndpoints, spec.APIProxyUnknownPort)
)

// view returns an object as readers see it.
func (s *Server) view(res *resource, obj object) object {
	if res != services {
		return obj
	}
	return s.serviceBook.serviceSeen.Do(s, obj.(*corev1.Service))
}

// proxy answers requests to /proxy. A real server looks at the Service only where the request names a port.
func (rq *request) proxy() error {
	_, name, port, ok := utilnet.SplitSchemeNamePort(rq.name)
	switch {
	case !ok:
		return apierrors.NewBadRequest(fmt.Sprintf("invalid service request %q", rq.name))
	case port != "" && rq.server.store.get(services, rq.namespace, name) == nil:
		return storeError(errNotFound, services, rq.namespace, name)
	}
	return rq.book.noEndpointAnswers.Do(name)
}

const kubernetesServiceName = "kubernetes"

var kubernetesAddress = rule.New("kubernetes-address", func(primary netip.Prefix) netip.Addr {
	return primary.Masked().Addr().Next()
}, spec.AllocFirstAddressKubernetes)

// createKubernetesService creates the Service that every control plane creates for its own API server.
func (s *Server) createKubernetesService() error {
	first := s.cluster.kubernetesAddress.Do(s.options.ServiceCIDRs[0])
	svc := &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{
			Name: kubernetesServiceName, Namespace: metav1.NamespaceDefault,
			Labels: map[string]string{"component": "apiserver", "provider": "kubernetes"},
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: first.String(), SessionAffinity: corev1.ServiceAffinityNone,
			Ports: []corev1.ServicePort{{Name: "https", Port: 443, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(6443)}},
		},
	}
	services.strategy.defaults(s, svc)
	_, err := s.create(services, svc, writeOptions{}, write{manager: "kube-apiserver", object: svc.DeepCopy()})
	if err != nil {
		return fmt.Errorf("create the Service \"kubernetes\" on %s, the first address of %s: %w", first, s.options.ServiceCIDRs[0], err)
	}
	return nil
}

// clusterIPs are the addresses that a Service has.
func clusterIPs(svc *corev1.Service) (ips []netip.Addr) {
	for _, text := range svc.Spec.ClusterIPs {
		if ip, err := netip.ParseAddr(text); err == nil {
			ips = append(ips, ip)
		}
	}
	return ips
}
