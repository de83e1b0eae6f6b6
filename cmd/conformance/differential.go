package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/service-conformance/conformance/fixtures"
	"github.com/service-conformance/conformance/framework/reference/apiserver"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/spec"
	"github.com/service-conformance/conformance/internal/differential"
)

func newDifferential() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "differential",
		Short: "compare the reference with real components: random requests, Pods and traffic, and requests that were answered differently",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newDifferentialReplay(), newDifferentialAPI(), newDifferentialEndpoints(), newDifferentialDNS(), newDifferentialTraffic())
	return cmd
}

func newDifferentialReplay() *cobra.Command {
	kubeconfig := ""
	cmd := &cobra.Command{
		Use:   "replay [FILE...]",
		Short: "replay the requests of cases, and show the answers that are not those of the case",
		Long: `replay sends the requests of cases, and shows the answers that are not those of the case. Without files it takes the cases of the program
(docs/differential.md). It asks a reference in this process, or the API server of --kubeconfig as a kube-apiserver.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			cases, err := differentialCases(args)
			if err != nil {
				return usage("%w", err)
			}
			if kubeconfig == "" {
				server, stop, err := differentialReference()
				if err != nil {
					return harness("%w", err)
				}
				defer stop()
				return replayCases(cmd.Context(), cmd.OutOrStdout(), server, cases)
			}
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return usage("--kubeconfig %s: %w", kubeconfig, err)
			}
			client, err := rest.HTTPClientFor(config)
			if err != nil {
				return usage("--kubeconfig %s: %w", kubeconfig, err)
			}
			return replayCases(cmd.Context(), cmd.OutOrStdout(), differential.Server{Client: client, URL: config.Host}, cases)
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "file with the access to another API server, which is to answer as kube-apiserver")
	return cmd
}

// differentialCases reads the named files, or all cases of the program.
func differentialCases(files []string) ([]differential.Case, error) {
	if len(files) == 0 {
		folder, err := fs.Sub(fixtures.Differential, "differential")
		if err != nil {
			return nil, err
		}
		return differential.Load(folder)
	}
	cases := make([]differential.Case, len(files))
	for i, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if cases[i], err = differential.Parse(file, data); err != nil {
			return nil, err
		}
	}
	return cases, nil
}

// differentialReference starts a reference of both families, which answers in this process.
func differentialReference() (differential.Server, func(), error) {
	ranges, err := spec.ParseServiceCIDRs("10.96.0.0/24,fd00:10:96::/112")
	if err != nil {
		return differential.Server{}, nil, err
	}
	reference, err := apiserver.New(apiserver.Options{ServiceCIDRs: ranges})
	if err != nil {
		return differential.Server{}, nil, err
	}
	if err := reference.Start(); err != nil {
		return differential.Server{}, nil, err
	}
	server := differential.Server{Client: &http.Client{Transport: reference}, URL: reference.URL(), Reference: true}
	return server, func() { _ = reference.Close() }, nil // the process ends
}

func replayCases(ctx context.Context, out io.Writer, server differential.Server, cases []differential.Case) error {
	bad := 0
	for _, c := range cases {
		differences, err := differential.Replay(ctx, server, c)
		if err != nil {
			return harness("%s %s: %w", c.Class, c.Name, err)
		}
		if len(differences) > 0 {
			bad++
			fmt.Fprintf(out, "%s %s\n", c.Class, c.Name)
		}
		for _, d := range differences {
			fmt.Fprintf(out, "  %s\n", d)
		}
	}
	fmt.Fprintf(out, "%d of %d cases are answered as they say\n", len(cases)-bad, len(cases))
	if bad > 0 {
		return &exitError{report.ExitNonConformant, nil}
	}
	return nil
}
