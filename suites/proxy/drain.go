package proxy

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/onsi/ginkgo/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// drainTaint marks a node that the cluster autoscaler is about to delete (KEP-3836).
const drainTaint = `{"spec":{"taints":[{"key":"ToBeDeletedByClusterAutoscaler","value":"1","effect":"NoSchedule"}]}}`

// deletesNode leaves a check undecided that deletes the Node object of a node of its own, where a kubelet runs there: it does not make another one.
func deletesNode(net *check.Network) {
	ginkgo.GinkgoHelper()
	if !net.Has(spec.PodObjects) { // where pods are objects alone no kubelet runs
		check.LeaveUnjudged("--tier lab", "the kubelet of a node would not make its Node object again")
	}
}

var _ = ginkgo.Describe("a node that is drained", func() {
	check.It(spec.ProxyNodeDrainHealth, "fails its proxy health check and serves on", check.OwnNodes(1),
		func(ctx context.Context, net *check.Network) {
			asDeclared(net, spec.ProxyHealth, "port-10256")
			pods := net.Backends(ctx, "app", net.Node(0))
			svc := net.Expose(ctx, exposed("app", onNodePorts()))
			node := net.AddNode(ctx, candidate.ProxyConfiguration{})
			address := check.AddressOf(node.Addresses, net.PrimaryFamily())
			from, by := check.Outside(net.Node(0)), check.AnsweredBy(pods...)
			to := netip.AddrPortFrom(address, uint16(svc.Spec.Ports[0].NodePort))
			healthz := func(code int) check.Case {
				return check.Case{From: from, To: netip.AddrPortFrom(address, candidate.ProxyHealthPort), Path: "/healthz", Want: check.HTTPStatus(code)}
			}
			fresh, held := check.Case{From: from, To: to, Want: by}, check.Case{From: from, To: to, Connection: "held", Want: by}
			net.Expect(ctx, "a node comes", healthz(http.StatusOK), fresh)
			settled(ctx, net, pods[0], check.Host(node.Name))
			net.ExpectNow(ctx, "a connection is opened", held)
			check.Must(candidate.Patch(ctx, net.Client().CoreV1().Nodes(), node.Name, types.MergePatchType, drainTaint))
			net.Expect(ctx, "the node is about to be deleted", healthz(http.StatusServiceUnavailable), fresh)
			net.ExpectNow(ctx, "the health check of the node fails", held)
		})

	check.It(spec.ProxyNodeDrainHealth, "fails its proxy health check while it is being deleted, and serves on", check.OwnNodes(1),
		func(ctx context.Context, net *check.Network) {
			asDeclared(net, spec.ProxyHealth, "port-10256")
			deletesNode(net)
			pods := net.Backends(ctx, "app", net.Node(0))
			svc := net.Expose(ctx, exposed("app", onNodePorts()))
			node := net.AddNode(ctx, candidate.ProxyConfiguration{})
			address, from := primaryOf(net, node), check.Outside(net.Node(0))
			cases := func(code int) []check.Case {
				return []check.Case{
					{From: from, To: netip.AddrPortFrom(address, candidate.ProxyHealthPort), Path: "/healthz", Want: check.HTTPStatus(code)},
					{From: from, To: netip.AddrPortFrom(address, uint16(svc.Spec.Ports[0].NodePort)), Want: check.AnsweredBy(pods...)},
				}
			}
			net.Expect(ctx, "a node comes", cases(http.StatusOK)...)
			nodes := net.Client().CoreV1().Nodes()
			patch := func(content string) error {
				return candidate.Patch(ctx, nodes, node.Name, types.MergePatchType, content)
			}
			check.Must(patch(`{"metadata":{"finalizers":["conformance.example.org/hold"]}}`))
			check.Must(candidate.Delete(ctx, nodes, node.Name, metav1.DeleteOptions{}))
			net.Expect(ctx, "the node is being deleted", cases(http.StatusServiceUnavailable)...)
			check.Must(net.OwnNodes().StopProxy(ctx, node.Name)) // a proxy may end by itself when its node is gone
			check.Must(patch(`{"metadata":{"finalizers":null}}`))
		})
})
