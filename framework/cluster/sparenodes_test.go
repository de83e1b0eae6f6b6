package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/candidate/apiclient/fromclientset"
)

// standIns are spare nodes that note what is done to them.
type standIns struct {
	names []string
	mu    sync.Mutex
	done  []string

	broken error // of Reset
}

func (s *standIns) note(format string, args ...any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = append(s.done, fmt.Sprintf(format, args...))
	return nil
}

func (s *standIns) Secondary() map[string][]netip.Addr {
	all := map[string][]netip.Addr{}
	for _, n := range s.names {
		all[n] = []netip.Addr{netip.MustParseAddr("172.18.254.9")}
	}
	return all
}
func (*standIns) IPVS() bool { return false }
func (s *standIns) Start(_ context.Context, node string, p candidate.ProxyConfiguration) error {
	return s.note("start %s %s", node, p.Mode)
}
func (s *standIns) Synchronised(_ context.Context, node string) error {
	return s.note("synchronised %s", node)
}
func (s *standIns) Stop(_ context.Context, node string) error { return s.note("stop %s", node) }
func (s *standIns) State(_ context.Context, _ string) (candidate.ProxyState, error) {
	return candidate.ProxyState{Running: true}, nil
}
func (s *standIns) Interfere(_ context.Context, node string, what candidate.Interference) error {
	return s.note("%s on %s", what, node)
}
func (s *standIns) Reset(_ context.Context, node string) error {
	_ = s.note("reset %s", node)
	return s.broken
}

// withSpares is a cluster of a shared node and some spare ones.
func withSpares(t *testing.T, names ...string) (*Cluster, *standIns) {
	t.Helper()
	node := func(name string, labels map[string]string) corev1.Node {
		return corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
			Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: candidate.SpareLabel, Effect: corev1.TaintEffectNoSchedule}}},
			Status: corev1.NodeStatus{
				Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "172.18.0.9"}},
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		}
	}
	list := &corev1.NodeList{Items: []corev1.Node{node("shared", nil)}}
	for _, n := range names {
		list.Items = append(list.Items, node(n, map[string]string{candidate.SpareLabel: "true", corev1.LabelTopologyZone: "zone-b"}))
	}
	c := &Cluster{client: fromclientset.Of(fake.NewClientset(list)), nodes: nodesOf(list)}
	s := &standIns{names: names}
	c.options.Spares = s
	c.spares = newSpares(c, list, s)
	return c, s
}

// TestASpareNodeIsOfOneCheck follows a spare node through a lease.
func TestASpareNodeIsOfOneCheck(t *testing.T) {
	c, nodes := withSpares(t, "spare")
	if len(c.nodes) != 1 || c.nodes[0].Name != "shared" {
		t.Fatalf("checks share %v", c.nodes)
	}
	lent, err := c.spares.lend(t.Context(), 2) // of which there is one
	if err != nil {
		t.Fatal(err)
	}
	d := &dataPlane{controlPlane: controlPlane{cluster: c}, lent: lent}
	if err := d.StopProxy(t.Context(), "spare"); !candidate.IsUnavailable(err) {
		t.Errorf("a node that the check has not added: %v", err)
	}
	n, err := d.AddNode(t.Context(), candidate.Node{Zone: "zone-a"}, candidate.ProxyConfiguration{Mode: candidate.NFTables})
	if err != nil || n.Name != "spare" || n.Zone != "zone-a" || len(n.Addresses) != 1 || len(n.SecondaryAddresses) != 1 {
		t.Fatalf("node %+v, error %v", n, err)
	}
	if _, err := d.AddNode(t.Context(), candidate.Node{}, candidate.ProxyConfiguration{}); !candidate.IsUnavailable(err) {
		t.Errorf("a second node where there is one: %v", err)
	}
	now := func() *corev1.Node {
		t.Helper()
		object, err := c.client.CoreV1().Nodes().Get(t.Context(), "spare", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return object
	}
	if zone := now().Labels[corev1.LabelTopologyZone]; zone != "zone-a" {
		t.Errorf("the node is in zone %q", zone)
	}
	drained := now()
	drained.Spec.Taints, drained.Labels["further"] = []corev1.Taint{{Key: taintToBeDeleted, Effect: corev1.TaintEffectNoSchedule}}, "label"
	if _, err := c.client.CoreV1().Nodes().Update(t.Context(), drained, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.Interfere(t.Context(), "spare", candidate.CutOff), d.StopProxy(t.Context(), "spare")); err != nil {
		t.Error(err)
	}
	lent.reset(t.Context())
	lent.back()
	want := []string{"start spare nftables", "synchronised spare", "cut off from the API server on spare", "stop spare", "reset spare"}
	if !slices.Equal(nodes.done, want) {
		t.Errorf("done: %q, want %q", nodes.done, want)
	}
	after := now()
	if !maps.Equal(after.Labels, map[string]string{candidate.SpareLabel: "true", corev1.LabelTopologyZone: "zone-b"}) || len(after.Spec.Taints) != 1 || after.Spec.Taints[0].Key != candidate.SpareLabel {
		t.Errorf("it is left with the labels %v and the taints %v", after.Labels, after.Spec.Taints)
	}
}

// TestANodeThatWasNotResetIsNoFurtherChecks has a node whose reset fails for a time.
func TestANodeThatWasNotResetIsNoFurtherChecks(t *testing.T) {
	c, nodes := withSpares(t, "spare")
	nodes.broken = errors.New("the engine is gone")
	use := func() error {
		t.Helper()
		lent, err := c.spares.lend(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		defer lent.back()
		defer lent.reset(t.Context())
		_, err = (&dataPlane{controlPlane: controlPlane{cluster: c}, lent: lent}).AddNode(t.Context(), candidate.Node{Zone: "zone-a"}, candidate.ProxyConfiguration{Absent: true})
		return err
	}
	if err := use(); err != nil {
		t.Fatal(err)
	}
	if err := use(); !errors.Is(err, nodes.broken) {
		t.Errorf("a node with what another check has left: %v", err)
	}
	nodes.broken = nil
	if err := use(); err != nil {
		t.Errorf("a node that was reset after all: %v", err)
	}
}

// TestLeasesDoNotWaitForEachOther has more leases than nodes, some of which need two of them.
func TestLeasesDoNotWaitForEachOther(t *testing.T) {
	c, _ := withSpares(t, "one", "two")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wait sync.WaitGroup
	for i := range 40 {
		wait.Go(func() {
			lent, err := c.spares.lend(ctx, 1+i%2)
			if err != nil {
				t.Errorf("lease %d: %v", i, err)
				return
			}
			if len(lent.names) != 1+i%2 {
				t.Errorf("lease %d has %v", i, lent.names)
			}
			lent.back()
		})
	}
	wait.Wait()
	ended, end := context.WithCancelCause(t.Context())
	held, _ := c.spares.lend(ctx, 1)
	end(errors.New("the run has ended"))
	if _, err := c.spares.lend(ended, 2); err == nil || err.Error() != "the run has ended" {
		t.Errorf("a lease that waits at the end of the run: %v", err)
	}
	held.back()
	if len(c.spares.free) != 2 {
		t.Errorf("%d nodes are free", len(c.spares.free))
	}
	var none *spares
	if lent, err := none.lend(ctx, 1); lent != nil || err != nil {
		t.Errorf("a cluster without spare nodes lends %v, %v", lent, err)
	}
}
