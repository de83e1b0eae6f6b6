package dataplane

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/lab/programs"
)

// The Service of the cluster's DNS, as kubeadm names it (cmd/kubeadm/app/phases/addons/dns/manifests.go).
const (
	dnsNamespace = metav1.NamespaceSystem
	dnsService   = "kube-dns"
	// dnsIndex is which address of the Service range it has, where the range is large enough (GetDNSIP in cmd/kubeadm/app/constants/constants.go).
	dnsIndex = 10
)

// GiveDNS gives a lab that stays a DNS. Its nodes and pods ask it by the virtual address of its Service, and so by
// their proxies. Without a program for it there is none.
func (w *World) GiveDNS(ctx context.Context) error {
	if w.parts.CoreDNS == "" {
		return nil
	}
	if err := w.ensureDNS(ctx); err != nil {
		return err
	}
	address, err := w.createDNSService(ctx)
	if err != nil {
		return fmt.Errorf("create the Service of the cluster DNS: %w", err)
	}
	return useResolver(resolverFile, w.parts.Dir.File("resolv.conf"), resolverConfiguration(address))
}

// createDNSService returns the virtual address.
func (w *World) createDNSService(ctx context.Context) (string, error) {
	udp, tcp := corev1.ProtocolUDP, corev1.ProtocolTCP
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: dnsService, Namespace: dnsNamespace},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{
			{Name: "dns", Protocol: udp, Port: programs.DNSPort, TargetPort: intstr.FromInt32(programs.DNSPort)},
			{Name: "dns-tcp", Protocol: tcp, Port: programs.DNSPort, TargetPort: intstr.FromInt32(programs.DNSPort)},
		}},
	}
	r := w.Server.Ranges.Primary
	address := r.Addr()
	for range dnsIndex {
		address = address.Next()
	}
	if beyond := address.Next(); r.Contains(beyond) { // the last address of a range is nobody's
		service.Spec.ClusterIP = address.String()
	}
	created, err := candidate.Create(ctx, w.Api.CoreV1().Services(dnsNamespace), service)
	if err != nil {
		return "", err
	}
	yes, family := true, discoveryv1.AddressTypeIPv4
	if w.Server.Reach.Is6() {
		family = discoveryv1.AddressTypeIPv6
	}
	port := int32(programs.DNSPort)
	names := []string{"dns", "dns-tcp"}
	_, err = candidate.Create(ctx, w.Api.DiscoveryV1().EndpointSlices(dnsNamespace), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: dnsService, Namespace: dnsNamespace, Labels: map[string]string{discoveryv1.LabelServiceName: dnsService}},
		AddressType: family,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{w.Server.Reach.String()}, Conditions: discoveryv1.EndpointConditions{Ready: &yes}}},
		Ports: []discoveryv1.EndpointPort{
			{Name: &names[0], Protocol: &udp, Port: &port}, {Name: &names[1], Protocol: &tcp, Port: &port},
		},
	})
	return created.Spec.ClusterIP, err
}

// resolverFile is where programs find which DNS to ask (resolv.conf(5)).
const resolverFile = "/etc/resolv.conf"

// resolverConfiguration is what a kubelet writes for pods of the namespace "default". For those of others see searchVariable.
func resolverConfiguration(address string) string {
	return fmt.Sprintf("nameserver %s\nsearch %s\noptions ndots:5\n", address, programs.SearchList(metav1.NamespaceDefault))
}

// useResolver puts a file of the lab in the place of one of the machine, in the mounts of this process. A machine without such a file keeps none.
func useResolver(file, own, content string) error {
	if err := os.WriteFile(own, []byte(content), 0o644); err != nil {
		return err
	}
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	target, err := os.Readlink(file)
	if err == nil { // often to what is below /run, which is empty here
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(file), target)
		}
		if _, err := os.Stat(target); errors.Is(err, fs.ErrNotExist) {
			if !strings.HasPrefix(target, "/run/") {
				return nil // the file would be the machine's
			}
			if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
				return fmt.Errorf("make the file that %s names: %w", file, err)
			}
			return os.WriteFile(target, []byte(content), 0o644)
		}
		file = target
	}
	if err := unix.Mount(own, file, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("use the cluster DNS (mount over %s): %w", file, err)
	}
	return nil
}
