package main

import (
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/service-conformance/conformance/framework/reference/apiserver"
	"github.com/service-conformance/conformance/framework/spec"
)

func newServe() *cobra.Command {
	var (
		cidrs               []string
		address, kubeconfig string
		faults              []string
	)
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "serve the reference API server on a loopback port, until interrupted",
		Example: `  conformance serve --kubeconfig kc &
  kubectl --kubeconfig kc create service clusterip web --tcp=80`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if kubeconfig == "" {
				return usage("name a file for the kubeconfig with --kubeconfig")
			}
			if len(cidrs) > 1 {
				return usage("--service-cidr is given %d times, and one server has one range: join two of different families by a comma", len(cidrs))
			}
			ranges, err := spec.ParseUsableServiceCIDRs(cidrs[0])
			if err != nil {
				return usage("--service-cidr %s: %w", cidrs[0], err)
			}
			if err := apiserver.MayWriteKubeconfig(kubeconfig); err != nil {
				return usage("%w", err)
			}
			set, err := namedFaults(faults)
			if err != nil {
				return err
			}
			server, err := apiserver.New(apiserver.Options{ServiceCIDRs: ranges, Address: address, TLS: true, Token: rand.Text(), Faults: set})
			if err != nil {
				return usage("%w", err)
			}
			if err := server.Start(); err != nil {
				return usage("%w", err)
			}
			defer server.Close()
			if err := server.WriteKubeconfig(kubeconfig); err != nil {
				return usage("%w", err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "serving %s at %s\n  kubectl --kubeconfig %s get services\n", strings.ReplaceAll(cidrs[0], ",", " and "), server.URL(), kubeconfig)
			<-cmd.Context().Done()
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&cidrs, "service-cidr", []string{spec.DefaultServiceCIDRs[:1].String()}, "Service range; two joined by a comma are dual stack")
	flags.StringVar(&address, "address", "127.0.0.1:0", "address to listen on")
	flags.StringVar(&kubeconfig, "kubeconfig", "conformance.kubeconfig", "file that the kubeconfig is written to when the server is ready")
	flags.StringSliceVar(&faults, "fault", nil, "deliberate bugs to start the reference with")
	return cmd
}
