//go:build linux

package network

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/leaktest"
	"github.com/service-conformance/conformance/internal/traffic"
)

// insideVariable marks the process that runs the tests in namespaces of its own.
const insideVariable = "NETWORK_TEST_INSIDE"

// TestMain runs the tests again in network and mount namespaces of their own, as an ordinary user would.
func TestMain(m *testing.M) {
	if os.Getenv(insideVariable) != "" {
		if err := SetLoopbackUp(); err != nil {
			panic(err)
		}
		os.Exit(leaktest.Run(m))
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), insideVariable+"=1")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
	}
	if err := cmd.Start(); err != nil {
		println("the tests need a machine that lets this user make network namespaces:", err.Error())
		os.Exit(1)
	}
	if cmd.Wait() != nil {
		os.Exit(1)
	}
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// TestEverybodyReachesEveryPod builds two nodes with a pod each, and looks from pods, hosts and outside, in both families.
func TestEverybodyReachesEveryPod(t *testing.T) {
	f := must(NewFabric())(t)
	defer f.Close()
	var nodes []*Node
	var pods []*Pod
	for range 2 {
		n := must(f.AddNode())(t)
		p := must(n.AddPod())(t)
		name := candidate.PodName{Name: p.Addresses[0].String()}
		server := must(traffic.Serve(name, []candidate.PodPort{{Protocol: corev1.ProtocolTCP, Number: 80}, {Protocol: corev1.ProtocolUDP, Number: 80}}, p.Do))(t)
		defer server.Close()
		nodes, pods = append(nodes, n), append(pods, p)
	}
	outside := must(f.AddOutside(nodes[1], 3))(t)
	late := must(f.AddNode())(t) // has to be told of everything that is there
	latePod := must(late.AddPod())(t)

	clients := map[string]struct {
		in     *Namespace
		source []netip.Addr
	}{
		"pod 1": {pods[0].Namespace, pods[0].Addresses}, "pod 2": {pods[1].Namespace, pods[1].Addresses}, "late pod": {latePod.Namespace, latePod.Addresses},
		"host 1": {nodes[0].Namespace, nodes[0].Addresses}, "late host": {late.Namespace, late.Addresses},
		"outside": {outside.Namespace, []netip.Addr{outside.Addresses[0][2], outside.Addresses[1][2]}},
	}
	for who, c := range clients {
		for _, p := range pods {
			for family, to := range p.Addresses {
				for _, protocol := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
					var prober traffic.Prober
					probe := candidate.Probe{To: netip.AddrPortFrom(to, 80), Protocol: protocol, Timeout: candidate.DefaultProbeTimeout * 10}
					o := prober.Send(context.Background(), c.in.Do, probe, c.source[family])[0]
					if o.Result != candidate.Answered || o.Pod.Name != p.Addresses[0].String() || o.Source.Addr().Unmap() != c.source[family] {
						t.Errorf("%s to %s/%s: %+v, want an answer that was seen from %s", who, to, protocol, o, c.source[family])
					}
				}
			}
		}
	}
}

// TestSurroundings demands that the network itself says the same of an address that nobody has to everybody and in both families. Where it says that there is no way,
// silence is then the work of a node.
func TestSurroundings(t *testing.T) {
	for surroundings, says := range map[Surroundings][2]candidate.Outcome{ // by TCP and by UDP
		Unreachable: {{Result: candidate.Unreachable}, {Result: candidate.Unreachable}},
		Silent:      {{Result: candidate.Dropped}, {Result: candidate.Dropped}},
		Resetting:   {{Result: candidate.Refused}, {Result: candidate.Refused}},
		Accepting:   {{Result: candidate.Reset, Stranger: true}, {Result: candidate.Dropped}},
	} {
		t.Run(string(surroundings), func(t *testing.T) {
			f := must(NewFabric())(t)
			defer f.Close()
			n := must(f.AddNode())(t)
			p := must(n.AddPod())(t)
			outside := must(f.AddOutside(n, 1))(t)
			shots := 50
			works, err := f.Surround(surroundings, "/usr/sbin:/sbin:/usr/bin:/bin")
			switch {
			case err != nil && surroundings != Unreachable:
				t.Skip(err) // of this machine
			case err != nil:
				t.Fatal(err)
			case !works:
				t.Log("this machine has no iptables and no nft that work: only what the kernel says of itself is looked at")
				shots = 1
			}
			for who, in := range map[string]*Namespace{"pod": p.Namespace, "host": n.Namespace, "outside": outside.Namespace} {
				for _, nobody := range []string{"203.0.113.113", "2001:db8:dead::113", "10.96.7.7"} {
					for i, protocol := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
						want := says[i]
						probe := candidate.Probe{To: netip.AddrPortFrom(netip.MustParseAddr(nobody), 80), Protocol: protocol, Count: shots, Interval: 2 * time.Millisecond, Timeout: 15 * time.Second}
						if want.Result == candidate.Dropped {
							probe.Count, probe.Timeout = 1, 100*time.Millisecond
						}
						var prober traffic.Prober
						for i, o := range prober.Send(context.Background(), in.Do, probe, netip.Addr{}) {
							if o.Result != want.Result || o.Stranger != want.Stranger {
								t.Errorf("%s to %s/%s, shot %d: %+v", who, nobody, protocol, i, o)
								break
							}
						}
					}
				}
			}
		})
	}
}

// TestWhatIsRemovedIsGone removes pods and a node. An address of a pod does not come again soon.
func TestWhatIsRemovedIsGone(t *testing.T) {
	f := must(NewFabric())(t)
	defer f.Close()
	n := must(f.AddNode())(t)
	p := must(n.AddPod())(t)
	first := p.Addresses[0]
	p.Remove()
	for i := range 10 {
		p := must(n.AddPod())(t)
		if p.Addresses[0] == first {
			t.Errorf("%s comes again after %d others", first, i)
		}
		p.Remove()
	}
	links := must(n.links.LinkList())(t)
	if len(links) != 2 { // lo and the uplink
		t.Errorf("the node still has %d interfaces", len(links))
	}
	address := n.Addresses[0]
	n.Remove()
	if again := must(f.AddNode())(t); again.Addresses[0] != address {
		t.Errorf("the next node has %s, not %s again", again.Addresses[0], address)
	}
}
