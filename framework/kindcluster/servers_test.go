package kindcluster

import (
	"slices"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/framework/spec"
	"github.com/service-conformance/conformance/internal/apiservers"
	"net/netip"
)

const manifestOfTests = `apiVersion: v1
kind: Pod
spec:
  containers:
  - command: [kube-apiserver, --advertise-address=172.18.0.2, "--authorization-mode=Node,RBAC", --secure-port=6443, --service-cluster-ip-range=10.96.0.0/24, --tls-cert-file=/etc/kubernetes/pki/apiserver.crt]
    image: registry.example/kube-apiserver:v1.35.8
  volumes:
  - hostPath: {path: /etc/kubernetes/pki}
    name: k8s-certs
`

func TestServersHaveTheFlagsOfTheClusterButForRangesAndPort(t *testing.T) {
	s := &Servers{}
	if err := s.read(manifestOfTests); err != nil {
		t.Fatal(err)
	}
	if want := []string{"--authorization-mode=Node,RBAC", "--tls-cert-file=/etc/kubernetes/pki/apiserver.crt"}; !slices.Equal(s.flags, want) {
		t.Errorf("flags %v, want %v", s.flags, want)
	}
	if s.image != "registry.example/kube-apiserver:v1.35.8" || s.version.Minor != 35 || !s.api || !slices.Equal(s.mounts, []string{"/etc/kubernetes/pki"}) {
		t.Errorf("%+v", s)
	}
	if slices.Contains(s.Capabilities(), spec.ServiceCIDRController) {
		t.Error("there is no controller, whose image is not known")
	}
	if err := s.read("spec: {containers: []}"); err == nil {
		t.Error("a manifest without a command is accepted")
	}
}

func TestTheAdvertisedAddressIsOfTheFamilyOfTheRange(t *testing.T) {
	node := netip.MustParseAddr("172.18.0.2")
	for cidr, want := range map[string]string{"10.96.0.0/24": "172.18.0.2", "fd00:10:96::/112": "2001:db8::1"} {
		v := &server{of: &Servers{address: node}, ranges: apiservers.Ranges{Primary: netip.MustParsePrefix(cidr)}}
		if got := v.advertised(); got != want {
			t.Errorf("%s: %s, want %s", cidr, got, want)
		}
	}
}

func TestTheMatrixHasTheRangesOfTheWorkedExamplesAndBothFamilies(t *testing.T) {
	files := Matrix()
	if err := Compatible(files); err != nil {
		t.Fatal(err)
	}
	all := ""
	traffic := 0
	for _, f := range files {
		all += f.ServiceCIDR + " "
		if f.Workers == nil || *f.Workers > 0 {
			traffic++
		}
	}
	for _, want := range []string{"10.96.0.0/24 ", "10.96.0.0/20 ", "10.96.0.0/16 ", ",fd00:"} {
		if !strings.Contains(all, want) {
			t.Errorf("no cluster has %s: %s", want, all)
		}
	}
	if traffic != 1 {
		t.Errorf("%d clusters have nodes for traffic", traffic)
	}
}
