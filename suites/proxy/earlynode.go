package proxy

import (
	"context"
	"time"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// earlyBound is how long a proxy may wait for its Node, and be started again when the Node has changed.
const earlyBound = 3 * check.ConvergenceBound

// lookAfter starts the proxy of the node again whenever it has ended, as a kubelet does, while something is done.
func lookAfter(ctx context.Context, net *check.Network, node string, do func()) {
	ginkgo.GinkgoHelper()
	done := make(chan struct{})
	check.Concurrently(2, func(i int) {
		if i == 0 {
			defer close(done)
			do()
			return
		}
		for {
			select {
			case <-done:
				return
			case <-ctx.Done():
				return
			case <-time.After(200 * time.Millisecond): // between two looks
			}
			state, err := net.OwnNodes().ProxyState(ctx, node)
			check.Must(err)
			if !state.Running {
				check.Must(net.OwnNodes().StartProxy(ctx, node, candidate.ProxyConfiguration{}))
			}
		}
	})
}

// early judges a proxy that starts while lack keeps something of its Node back, which give brings.
func early(ctx context.Context, net *check.Network, without string, lack, give func(object *corev1.Node)) {
	ginkgo.GinkgoHelper()
	pods := net.Backends(ctx, "app", net.Node(0), net.Node(1))
	node := net.AddNode(ctx, candidate.ProxyConfiguration{Absent: true})
	client := net.ClientPod(ctx, node.Name)
	svc := net.Expose(ctx, exposed("app", onNodePorts()))
	object, err := net.Client().CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
	check.Must(err)
	lack(object.DeepCopy())
	each := check.AnsweredByEach(pods...)
	lookAfter(ctx, net, node.Name, func() {
		check.Must(net.OwnNodes().StartProxy(ctx, node.Name, candidate.ProxyConfiguration{}))
		net.ExpectWithin(ctx, "a proxy starts on a node without "+without, earlyBound, toClusterIP(svc, each, client, check.Host(node.Name))...)
		give(object)
		net.ExpectWithin(ctx, "the node gets "+without, earlyBound,
			append(nodePortsAt(primaryOf(net, node), node.Name, svc, each), toClusterIP(svc, each, client)...)...)
	})
}

var _ = ginkgo.Describe("a proxy that starts early", func() {
	check.It(spec.ProxyStartBeforeNode, "serves before its Node has an address", check.Long(), func(ctx context.Context, net *check.Network) {
		nodes := net.Client().CoreV1().Nodes()
		setAddresses := func(name string, addresses []corev1.NodeAddress) {
			ginkgo.GinkgoHelper()
			check.Must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
				object, err := nodes.Get(ctx, name, metav1.GetOptions{})
				if err != nil {
					return err
				}
				object.Status.Addresses = addresses
				_, err = nodes.UpdateStatus(ctx, object, metav1.UpdateOptions{})
				return err
			}))
		}
		early(ctx, net, "an address",
			func(object *corev1.Node) { setAddresses(object.Name, nil) },
			func(object *corev1.Node) { setAddresses(object.Name, object.Status.Addresses) })
	})

	check.It(spec.ProxyStartBeforeNode, "serves before its Node exists", check.Long(), func(ctx context.Context, net *check.Network) {
		deletesNode(net)
		nodes := net.Client().CoreV1().Nodes()
		early(ctx, net, "an object",
			func(object *corev1.Node) {
				check.Must(candidate.Delete(ctx, nodes, object.Name, metav1.DeleteOptions{}))
			},
			func(object *corev1.Node) {
				status := object.Status
				object.ResourceVersion, object.UID = "", ""
				created, err := candidate.Create(ctx, nodes, object)
				check.Must(err)
				created.Status = status
				check.Must(candidate.SetStatus(ctx, nodes, created))
			})
	})
})
