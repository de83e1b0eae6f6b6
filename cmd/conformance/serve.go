package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"github.com/service-conformance/conformance/framework/reference/apiserver"
	"github.com/service-conformance/conformance/framework/reference/fault"
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
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if kubeconfig == "" {
				return usage("name a file for the kubeconfig with --kubeconfig")
			}
			if len(cidrs) > 1 {
				return usage("--service-cidr is given %d times, and one server has one range: join two of different families by a comma", len(cidrs))
			}
			ranges, err := parseServiceCIDR(cidrs[0])
			if err != nil {
				return usage("--service-cidr %s: %w", cidrs[0], err)
			}
			if err := apiserver.MayWriteKubeconfig(kubeconfig); err != nil {
				return usage("%w", err)
			}
			set, err := fault.Parse(faults...)
			if err != nil {
				return usage("%w", err)
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
	flags.StringArrayVar(&cidrs, "service-cidr", []string{"10.96.0.0/16"}, "Service range; two joined by a comma are dual stack")
	flags.StringVar(&address, "address", "127.0.0.1:0", "address to listen on")
	flags.StringVar(&kubeconfig, "kubeconfig", "conformance.kubeconfig", "file that the kubeconfig is written to when the server is ready")
	flags.StringSliceVar(&faults, "fault", nil, "deliberate bugs to start the reference with")
	return cmd
}

// parseServiceCIDR parses one range, or two of different families joined by a comma.
func parseServiceCIDR(entry string) ([]netip.Prefix, error) {
	var ranges []netip.Prefix
	for _, c := range strings.Split(entry, ",") {
		p, err := netip.ParsePrefix(c)
		if err != nil {
			return nil, fmt.Errorf("%q is not a range like 10.96.0.0/24 or fd00:10:96::/112", c)
		}
		if p.Masked() != p {
			return nil, fmt.Errorf("%s has bits set beyond the prefix; write %s", c, p.Masked())
		}
		ranges = append(ranges, p)
	}
	if len(ranges) > 2 || len(ranges) == 2 && ranges[0].Addr().Is4() == ranges[1].Addr().Is4() {
		return nil, errors.New("name one range, or two of different IP families")
	}
	return ranges, nil
}
