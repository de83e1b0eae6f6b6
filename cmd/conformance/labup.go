package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/spec"
	"github.com/service-conformance/conformance/internal/lab/dataplane"
	"github.com/service-conformance/conformance/internal/lab/programs"
	"github.com/service-conformance/conformance/internal/lab/standing"
)

func newLabUp() *cobra.Command {
	o := standing.UpOptions{}
	var cidrs string
	cmd := &cobra.Command{
		Use:   "up",
		Short: "start a lab that stays, and write a kubeconfig",
		Long: `Start etcd, kube-apiserver, kube-controller-manager and nodes with a service proxy each, leave them running, and write a kubeconfig.

Nodes and pods are network namespaces; ` + "`conformance lab shell`" + ` opens a shell in one. Each Pod that is created gets a node, an address and a backend.
The node is spec.nodeName, or one that its node selector allows, each in turn. The backend answers over TCP and UDP with its name and the client's address.
It listens on the ports that the containers name, or on 80 and 8080 if they name none. Images and commands mean nothing. Pods are ready from the start.
Readiness follows what is written into their status (kubectl patch pod NAME --subresource=status …). A deleted pod answers until its grace
period is over. Deployments, ReplicaSets and StatefulSets work. Nodes and pods ask the cluster DNS. Pods have no logs, and kubectl exec and port-forward do not
work: ` + "`conformance lab shell POD`" + ` runs a command in a pod.

` + "`conformance run --tier lab --attach`" + ` judges the lab as often as wanted; ` + "`conformance lab restart-proxy NODE`" + ` starts the proxy of a node anew.

Where this user may have no network namespaces, the control plane runs alone, as with --nodes 0. If you asked for nodes or a proxy, the command fails.`,
		Example: `  conformance lab up --kubeconfig kc
  kubectl --kubeconfig kc create deployment web --image=any --replicas=3
  kubectl --kubeconfig kc expose deployment web --port 80 --target-port 8080
  conformance lab shell node-1 -- sh -c 'curl http://$(kubectl get service web -o jsonpath={.spec.clusterIP})'
  conformance run --tier lab --attach --focus proxy-tcp-forwarded
  conformance lab down`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			if err := standing.CheckName(o.Name); err != nil {
				return usage("--name: %w", err)
			}
			ranges, err := spec.ParseUsableServiceCIDRs(cidrs)
			if err != nil {
				return usage("--service-cidr %s: %w", cidrs, err)
			}
			if err := validateProxy(&o.Proxy); err != nil {
				return err
			}
			if err := validateServers(o.Servers); err != nil {
				return err
			}
			if o.Nodes < 0 || o.Nodes > standing.MaxNodes {
				return usage("--nodes %d: there can be 0 to %d", o.Nodes, standing.MaxNodes)
			}
			if o.Nodes == 0 && o.Proxy != (dataplane.ProxyOptions{}) {
				return usage("the flags --proxy-…, --node-… and --pod-… are for nodes, and there are none")
			}
			if o.Nodes > 0 && (cmd.Flags().Changed("nodes") || o.Proxy != (dataplane.ProxyOptions{})) { // what was asked for is not left out
				if err := dataplane.NodesWork(o.Proxy); err != nil {
					return usage("there can be no nodes here: %w", err)
				}
			}
			shown := newBuildProgress(out)
			o.Progress, o.Compiling, o.Request = shown.show, fetchHint(out), candidate.Request{ServiceCIDRs: ranges}
			running, err := standing.Up(cmd.Context(), o)
			shown.end()
			if err != nil {
				return labError(cmd.Context(), err)
			}
			describeRunning(out, running)
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Version, "kubernetes-version", "", "Kubernetes version (default "+programs.DefaultVersion+")")
	flags.StringVar(&o.BinDir, "kubernetes-bin-dir", "", "folder with the programs of Kubernetes and etcd (default: fetched, or built from Go modules, once)")
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "file to write; it must not exist")
	flags.StringVar(&cidrs, "service-cidr", spec.DefaultServiceCIDRs.String(), "Service range; two joined by a comma are dual stack")
	flags.IntVar(&o.Nodes, "nodes", 3, "number of nodes; 0 is the control plane alone")
	registerLabName(cmd, &o.Name)
	registerProxyMode(flags, &o.Proxy.Mode)
	registerProxy(flags, &o.Proxy)
	registerServers(flags, &o.Servers)
	return cmd
}

// describeRunning says what is up and what can be done with it.
func describeRunning(out io.Writer, r *standing.Running) {
	named := ""
	if r.Name != standing.DefaultName {
		named = " --name " + r.Name
	}
	fmt.Fprintf(out, "Kubernetes %s with Service range %s is up at %s\n", r.Version, strings.Join(r.ServiceCIDRs, ","), r.URL)
	if len(r.Nodes) == 0 {
		fmt.Fprintf(out, "  without nodes: %s\n", r.WithoutNodes)
	}
	for _, n := range r.Nodes {
		fmt.Fprintf(out, "  %s", n.Name)
		for _, a := range n.Addresses {
			fmt.Fprintf(out, " %s", a)
		}
		fmt.Fprintf(out, ", %s, %s\n", n.Zone, r.Proxy)
	}
	fmt.Fprintf(out, "try:\n  kubectl --kubeconfig %s get services\n", r.Kubeconfig)
	if len(r.Nodes) > 0 {
		fmt.Fprintf(out, "  kubectl --kubeconfig %s create deployment web --image=any --replicas=3\n", r.Kubeconfig)
		fmt.Fprintf(out, "  conformance lab shell%s %s\n", named, r.Nodes[0].Name)
	}
	fmt.Fprintf(out, "  conformance lab down%s\n", named)
}
