package service

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/spec"
)

const (
	v4, v6               = corev1.IPv4Protocol, corev1.IPv6Protocol
	single, prefer, dual = corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack
	typeClusterIP        = corev1.ServiceTypeClusterIP
	typeNodePort         = corev1.ServiceTypeNodePort
	typeLoadBalancer     = corev1.ServiceTypeLoadBalancer
	typeExternalName     = corev1.ServiceTypeExternalName
	policyLocal          = corev1.ServiceExternalTrafficPolicyLocal
	policyCluster        = corev1.ServiceExternalTrafficPolicyCluster
	rangeV4, rangeV6     = "10.96.0.0/24", "fd00:96::/112"
	firstPort, lastPort  = 30000, 30099
	freeV4, freeV6       = 254, 65535
	freePorts            = lastPort - firstPort + 1
)

// cluster is Rules with a store beside them.
type cluster struct {
	t       testing.TB
	rules   *Rules
	objects map[string]*corev1.Service
}

func newCluster(t testing.TB, ranges ...string) *cluster {
	t.Helper()
	return newVersionedCluster(t, "", ranges...)
}

func newVersionedCluster(t testing.TB, version string, ranges ...string) *cluster {
	t.Helper()
	if len(ranges) == 0 {
		ranges = []string{rangeV4}
	}
	config := Config{NodePorts: spec.PortRange{First: firstPort, Last: lastPort}, Version: version, Seed: 1}
	for _, s := range ranges {
		config.ServiceCIDRs = append(config.ServiceCIDRs, netip.MustParsePrefix(s))
	}
	rules, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{t: t, rules: rules, objects: map[string]*corev1.Service{}}
}

// change is a part of a Service, or a change of one.
type change func(*corev1.Service)

func named(name string) change {
	return func(svc *corev1.Service) { svc.Name = name }
}

func ofType(typ corev1.ServiceType) change {
	return func(svc *corev1.Service) {
		svc.Spec.Type = typ
		if typ == typeExternalName && svc.Spec.ExternalName == "" {
			svc.Spec.ExternalName = "db.example.com"
		}
	}
}

func withIPs(ips ...string) change {
	return func(svc *corev1.Service) { svc.Spec.ClusterIP, svc.Spec.ClusterIPs = ips[0], ips }
}

func withPolicy(policy corev1.IPFamilyPolicy) change {
	return func(svc *corev1.Service) { svc.Spec.IPFamilyPolicy = &policy }
}

func withFamilies(families ...corev1.IPFamily) change {
	return func(svc *corev1.Service) { svc.Spec.IPFamilies = families }
}

func withPorts(ports ...corev1.ServicePort) change {
	return func(svc *corev1.Service) { svc.Spec.Ports = ports }
}

func withNodePort(port int32) change {
	return func(svc *corev1.Service) { svc.Spec.Ports[0].NodePort = port }
}

func withExternal(policy corev1.ServiceExternalTrafficPolicy) change {
	return func(svc *corev1.Service) { svc.Spec.ExternalTrafficPolicy = policy }
}

// newService is a valid Service with one port, changed.
func newService(changes ...change) *corev1.Service {
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}, Selector: map[string]string{"app": "web"}},
	}
	for _, c := range changes {
		c(svc)
	}
	return svc
}

// create stores a new Service, or returns why it is refused.
func (c *cluster) create(changes ...change) (*corev1.Service, error) {
	svc := newService(changes...)
	c.rules.Default(svc)
	tx, err := c.rules.Create(svc, false)
	if err != nil {
		return nil, err
	}
	tx.Commit()
	svc.ResourceVersion, svc.UID = "1", "u"
	c.objects[svc.Name] = svc
	return svc.DeepCopy(), nil
}

func (c *cluster) mustCreate(changes ...change) *corev1.Service {
	c.t.Helper()
	svc, err := c.create(changes...)
	if err != nil {
		c.t.Fatalf("create: %v", err)
	}
	return svc
}

// patch changes the stored Service and writes it, as a client does that reads first.
func (c *cluster) patch(name string, changes ...change) (*corev1.Service, error) {
	svc := c.objects[name].DeepCopy()
	for _, change := range changes {
		change(svc)
	}
	return c.put(svc)
}

// put writes a Service over the stored one.
func (c *cluster) put(svc *corev1.Service) (*corev1.Service, error) {
	old := c.objects[svc.Name]
	before := old.DeepCopy()
	svc.ResourceVersion, svc.UID = old.ResourceVersion, old.UID
	c.rules.Default(svc)
	tx, err := c.rules.Update(svc, old, false)
	if fmt.Sprintf("%#v", before) != fmt.Sprintf("%#v", old) && before.String() != old.String() {
		c.t.Errorf("the stored object was changed:\nbefore %s\nafter  %s", before, old)
	}
	if err != nil {
		return nil, err
	}
	tx.Commit()
	c.objects[svc.Name] = svc
	return svc.DeepCopy(), nil
}

func (c *cluster) mustPatch(name string, changes ...change) *corev1.Service {
	c.t.Helper()
	svc, err := c.patch(name, changes...)
	if err != nil {
		c.t.Fatalf("patch: %v", err)
	}
	return svc
}

func (c *cluster) delete(name string) {
	c.rules.Delete(c.objects[name])
	delete(c.objects, name)
}

// free returns the number of free addresses of the ranges and of free ports.
func (c *cluster) free() (ips []uint64, ports int) {
	for _, r := range c.rules.ips.ranges {
		ips = append(ips, r.Free())
	}
	return ips, c.rules.ports.Free()
}

// wantInUse compares what the ranges have free with what is expected to be in use.
func (c *cluster) wantInUse(v4s, v6s, ports int) {
	c.t.Helper()
	freeIPs, free := c.free()
	want := []uint64{}
	for _, r := range c.rules.ips.ranges {
		if r.Prefix().Addr().Is4() {
			want = append(want, uint64(freeV4-v4s))
		} else {
			want = append(want, uint64(freeV6-v6s))
		}
	}
	if !slices.Equal(freeIPs, want) || free != freePorts-ports {
		c.t.Errorf("free: addresses %d, ports %d; want %d and %d", freeIPs, free, want, freePorts-ports)
	}
}

// wantRefused checks that a request was refused as invalid, with the cause named.
func wantRefused(t testing.TB, err error, reason metav1.CauseType, path string) {
	t.Helper()
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		t.Fatalf("error is %v, want a status that names %s", err, path)
	}
	s := status.ErrStatus
	if s.Code != http.StatusUnprocessableEntity || s.Reason != metav1.StatusReasonInvalid {
		t.Errorf("answer is %d %s, want 422 Invalid: %v", s.Code, s.Reason, err)
	}
	if s.Details == nil || s.Details.Kind != "Service" {
		t.Errorf("details are %+v, want those of a Service", s.Details)
		return
	}
	for _, c := range s.Details.Causes {
		if c.Field == path && c.Type == reason {
			return
		}
	}
	t.Errorf("causes are %+v, want %s of %s", s.Details.Causes, reason, path)
}

// wantExhausted checks that a request failed because nothing was left.
func wantExhausted(t testing.TB, err error) {
	t.Helper()
	if !apierrors.IsInternalError(err) {
		t.Errorf("error is %v, want 500 InternalError", err)
	}
}

const (
	invalid      = metav1.CauseTypeFieldValueInvalid
	required     = metav1.CauseTypeFieldValueRequired
	notSupported = metav1.CauseTypeFieldValueNotSupported
	duplicate    = metav1.CauseTypeFieldValueDuplicate
	forbidden    = metav1.CauseTypeForbidden
)

func TestNewRefusesBadConfig(t *testing.T) {
	cidr := func(s ...string) (out []netip.Prefix) {
		for _, x := range s {
			out = append(out, netip.MustParsePrefix(x))
		}
		return out
	}
	for name, config := range map[string]Config{
		"no range":         {},
		"three ranges":     {ServiceCIDRs: cidr("10.0.0.0/24", "fd00::/112", "10.1.0.0/24")},
		"same family":      {ServiceCIDRs: cidr("10.0.0.0/24", "10.1.0.0/24")},
		"invalid range":    {ServiceCIDRs: []netip.Prefix{{}}},
		"host bits":        {ServiceCIDRs: cidr("10.0.0.1/24")},
		"large IPv6 range": {ServiceCIDRs: cidr("fd00::/60")},
		"bad node ports":   {ServiceCIDRs: cidr("10.0.0.0/24"), NodePorts: spec.PortRange{First: 100, Last: 10}},
		"bad version":      {ServiceCIDRs: cidr("10.0.0.0/24"), Version: "2.1"},
	} {
		if _, err := New(config); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestNewDefaultNodePorts(t *testing.T) {
	r, err := New(Config{ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix(rangeV4)}, Version: "v1.37.1"})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.ports.Free(); got != 2768 {
		t.Errorf("%d node ports, want 2768", got)
	}
}
