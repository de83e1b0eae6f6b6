package check

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FreeNodePorts returns n different node ports that are free and that the check may name. They are taken from the lower
// band of the range (KEP-3668). A server assigns none of it while the upper band has any. Each parallel process of a
// run, and each shard, has a share of its own. So no other check takes a number that the check gives back and names
// again.
func (cp *ControlPlane) FreeNodePorts(ctx context.Context, n int) []int32 {
	ginkgo.GinkgoHelper()
	own := cp.ownNodePorts()
	var free, tried []int32
	var refusal Response
	for _, port := range own {
		if len(free) == n {
			break
		}
		probe := Service(cp.Name("probe"), OfType(corev1.ServiceTypeNodePort), WithPorts(corev1.ServicePort{Port: 80, NodePort: port}))
		if a := cp.Create(ctx, probe, DryRun()); a.Accepted() {
			free = append(free, port)
		} else {
			tried, refusal = append(tried, port), a
		}
	}
	if len(free) == n {
		return free
	}
	used := cp.NodePortsInUse(ctx)
	if len(free) == 0 && slices.ContainsFunc(tried, func(p int32) bool { return !used[p] }) {
		ginkgo.Fail("no node port of the lower band can be named: " + refusal.String())
	}
	Abort("%d node ports of %d-%d are needed, and only %d are free%s", n, slices.Min(own), slices.Max(own), len(free), crowded())
	return nil
}

// UnusedNodePort is one of those of FreeNodePorts that no Service has. The server is not asked whether it can be named, for that is what the check is about.
func (cp *ControlPlane) UnusedNodePort(ctx context.Context) int32 {
	ginkgo.GinkgoHelper()
	own, used := cp.ownNodePorts(), cp.NodePortsInUse(ctx)
	i := slices.IndexFunc(own, func(p int32) bool { return !used[p] })
	if i < 0 {
		Abort("a node port of %d-%d is needed, and none is free%s", slices.Min(own), slices.Max(own), crowded())
	}
	return own[i]
}

// ownNodePorts are the node ports of the lower band that belong to this process, in a random order.
func (cp *ControlPlane) ownNodePorts() (own []int32) {
	ginkgo.GinkgoHelper()
	first, last := cp.NodePorts()
	band := cmp.Or(NodePortBand(first, last), last-first+1)
	suite, _ := ginkgo.GinkgoConfiguration()
	from, share := setup.Beside.Share(band)
	mine := shareOfProcess(from, share, max(1, suite.ParallelTotal), max(1, suite.ParallelProcess))
	for _, i := range cp.Rand().Perm(band) {
		if mine(i) {
			own = append(own, int32(first+i))
		}
	}
	if len(own) == 0 {
		Abort("no node port of %d-%d is left%s", first, first+band-1, crowded())
	}
	return own
}

// NodePortBand is the size of the lower band of a node-port range, min(max(16, size/32), 128). It is 0 for a range of at most 16 ports, which has no bands (KEP-3668).
func NodePortBand(first, last int) int {
	size := last - first + 1
	if size <= 16 {
		return 0
	}
	return min(max(16, size/32), 128)
}

// shareOfProcess says which of the numbers of a shard, size of them from first on, belong to a parallel process, which counts from 1.
func shareOfProcess(first, size, processes, process int) func(number int) bool {
	return func(number int) bool {
		i := number - first
		return i >= 0 && i < size && i%processes == process-1
	}
}

// crowded says what to do where shards share node ports.
func crowded() string {
	if setup.Beside.Of == 0 {
		return ""
	}
	return fmt.Sprintf(" for this process of shard %s: name fewer shards, or fewer processes (--parallel)", setup.Beside)
}

// NodePortsInUse are the node ports of all Services, of whomever, those of health checks among them.
func (cp *ControlPlane) NodePortsInUse(ctx context.Context) map[int32]bool {
	ginkgo.GinkgoHelper()
	list, err := cp.client.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	Must(err)
	used := map[int32]bool{}
	for _, s := range list.Items {
		used[s.Spec.HealthCheckNodePort] = true
		for _, p := range s.Spec.Ports {
			used[p.NodePort] = true
		}
	}
	delete(used, 0) // none
	return used
}
