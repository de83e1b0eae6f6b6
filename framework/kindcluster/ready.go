package kindcluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/candidate/apiclient"
)

// waitReady returns when the cluster has so many nodes, all ready, and everything of kube-system runs on them. That is
// the network, the proxy and the DNS. kind itself looks at the control plane only.
func waitReady(ctx context.Context, kubeconfig string, nodes int) error {
	client, err := connect(kubeconfig)
	if err != nil {
		return err
	}
	return poll(ctx, func(ctx context.Context) error { return missing(ctx, client, nodes) })
}

// waitNodes returns when all nodes that the cluster has are ready: how many there will be only the command knows that makes it.
func waitNodes(ctx context.Context, kubeconfig string) error {
	client, err := connect(kubeconfig)
	if err != nil {
		return err
	}
	return poll(ctx, func(ctx context.Context) error { return missingNodes(ctx, client, 0) })
}

func connect(kubeconfig string) (apiclient.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of the new cluster: %w", err)
	}
	client, err := apiclient.New(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of the new cluster: %w", err)
	}
	return client, nil
}

// nameZonesAgain takes the zones away from the nodes of a new cluster, and gives them back. kube-proxy may miss the zone that its node has from the beginning (see the
// deviations of proxy-topology-hints-used), and takes it when it comes.
func nameZonesAgain(ctx context.Context, kubeconfig string) error {
	client, err := connect(kubeconfig)
	if err != nil {
		return err
	}
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("read its nodes: %w", err)
	}
	for _, n := range list.Items {
		zone := n.Labels[corev1.LabelTopologyZone]
		if zone == "" {
			continue
		}
		for _, value := range []string{"null", fmt.Sprintf("%q", zone)} {
			patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, corev1.LabelTopologyZone, value)
			if err := candidate.Patch(ctx, client.CoreV1().Nodes(), n.Name, types.MergePatchType, patch); err != nil {
				return fmt.Errorf("label node %s: %w", n.Name, err)
			}
		}
	}
	return nil
}

// poll calls look until it finds nothing. The error is the last that it found while there was time.
func poll(ctx context.Context, look func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, 500*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		err := look(ctx)
		if ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && last != nil:
		return fmt.Errorf("it does not get ready: %w", last)
	}
	return err
}

// missingNodes is what the cluster still lacks to have so many nodes, all ready; nil if nothing.
func missingNodes(ctx context.Context, client apiclient.Interface, nodes int) error {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("read its nodes: %w", err)
	}
	if len(list.Items) < nodes {
		return fmt.Errorf("%d of %d nodes have come", len(list.Items), nodes)
	}
	for _, n := range list.Items {
		if !ready(&n) {
			return fmt.Errorf("node %s is not ready", n.Name)
		}
	}
	return nil
}

// missing is what the cluster still lacks; nil if nothing.
func missing(ctx context.Context, client apiclient.Interface, nodes int) error {
	if err := missingNodes(ctx, client, nodes); err != nil {
		return err
	}
	sets, err := client.AppsV1().DaemonSets(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("read its daemon sets: %w", err)
	}
	for _, s := range sets.Items {
		if want, have := int32(nodes), s.Status.NumberReady; have < want {
			return fmt.Errorf("%s is ready on %d of %d nodes%s", s.Name, have, want, proxyHint(s.Name))
		}
	}
	deployments, err := client.AppsV1().Deployments(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("read its deployments: %w", err)
	}
	for _, d := range deployments.Items {
		if want := *d.Spec.Replicas; d.Status.ReadyReplicas < want {
			return fmt.Errorf("%d of %d replicas of %s are ready", d.Status.ReadyReplicas, want, d.Name)
		}
	}
	return nil
}

func ready(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func proxyHint(name string) string {
	if name != "kube-proxy" {
		return ""
	}
	return " (does this machine's kernel know what --proxy-mode asks for?)"
}
