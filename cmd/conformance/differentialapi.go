package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/apiserver"
	"github.com/service-conformance/conformance/framework/spec"
	"github.com/service-conformance/conformance/internal/differential"
	"github.com/service-conformance/conformance/internal/differential/random"
	"github.com/service-conformance/conformance/internal/lab"
	"github.com/service-conformance/conformance/internal/lab/programs"
)

type differentialAPI struct {
	randomFlags
	version string
	servers programs.ServerOptions
}

func newDifferentialAPI() *cobra.Command {
	f := &differentialAPI{}
	cmd := &cobra.Command{
		Use:   "api [FILE...]",
		Short: "send random requests to the reference and to a lab's kube-apiserver, and show what differs",
		Long: `api tells random stories to the reference and to a kube-apiserver: requests about Services, EndpointSlices, Endpoints, ServiceCIDRs and IPAddresses that follow each other.
It compares codes, reasons, the fields that causes name, warnings and objects. Texts of messages and what a server chooses by itself are not compared.

What differs twice is shrunk: the shortest story that shows it is written to a file, and printed with both answers. Files name stories that are told
instead of random ones. A run can go on where it ended: the last line says how.

Exit codes: 0 nothing differs, 1 something differs, 2 the run was interrupted or a component ended, 64 wrong usage.`,
		Example: `  conformance differential api --for 10m
  conformance differential api --kubernetes-version v1.33.13 --seed 42
  conformance differential api conformance-report/differential/api-42-17-1.json`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), cmd.OutOrStdout(), args) },
	}
	flags := cmd.Flags()
	f.register(flags, 8)
	flags.StringVar(&f.version, "kubernetes-version", programs.DefaultVersion, "Kubernetes version of the lab")
	registerServers(flags, &f.servers)
	return cmd
}

func (f *differentialAPI) run(ctx context.Context, out io.Writer, files []string) error {
	inputs, err := readInputs(files, differential.ParseStory)
	if err != nil {
		return usage("%w", err)
	}
	if err := f.validate(files); err != nil {
		return err
	}
	if err := validateServers(f.servers); err != nil {
		return err
	}
	sound, err := apiserver.New(apiserver.Options{ServiceCIDRs: differential.Ranges(), Version: f.version, Seed: f.seed})
	if err != nil {
		return harness("start the reference: %w", err)
	}
	if err := sound.Start(); err != nil {
		return harness("%w", err)
	}
	defer func() { _ = sound.Close() }() // it is in this process
	other, err := openLab(ctx, out, lab.Options{Version: f.version, ServiceCIDRController: true, Servers: f.servers})
	if err != nil {
		return err
	}
	p := &place{Candidate: other}
	defer p.close()
	what := other.Describe()
	cp, err := other.ControlPlane(ctx, candidate.Request{
		ServiceCIDRs: differential.Ranges(), Exclusive: true, ServiceCIDRController: what.Has(spec.ServiceCIDRController),
	})
	if err != nil {
		return incomplete(ctx, err)
	}
	defer cp.Release()
	server, err := differentialServer(cp.Access())
	if err != nil {
		return harness("%w", err)
	}
	pair := differential.Pair{Reference: differential.Server{Client: &http.Client{Transport: sound}, URL: sound.URL(), Reference: true}, Real: server}
	s := suite[differential.Story, differential.Told]{
		Test: random.Test[differential.Story, differential.Told]{Make: differential.RandomStory, Compare: pair.Compare, Slots: differential.Slots},
		name: "api", sent: func() string { return fmt.Sprintf("%d requests", pair.Requests.Load()) },
		shrink: func(ctx context.Context, story differential.Story, d differential.Told) (differential.Story, differential.Told, error) {
			return pair.Shrink(ctx, 0, story, d)
		},
		commands: func(story differential.Story, _ differential.Told) (string, error) { return requests(story), nil },
	}
	for _, t := range differential.Tolerances {
		s.tolerated = append(s.tolerated, [2]string{t.Name, t.Why})
	}
	if len(files) > 0 {
		return s.compareFiles(ctx, out, files, inputs)
	}
	beside(out, other, &f.randomFlags)
	return s.compareRandom(ctx, out, &f.randomFlags)
}

// beside says what is compared.
func beside(out io.Writer, other candidate.Candidate, f *randomFlags) {
	what := other.Describe()
	fmt.Fprintf(out, "the reference beside %s, seed %d, from input %d on\n", title(&what), f.seed, f.from)
}

// requests are a story as commands that send it.
func requests(s differential.Story) string {
	var b strings.Builder
	for _, r := range s.Steps {
		method, path, _ := strings.Cut(r.Request, " ")
		fmt.Fprintf(&b, "curl -X %s \"$SERVER%s\"", method, path)
		if r.Accept != "" {
			fmt.Fprintf(&b, " -H 'Accept: %s'", r.Accept)
		}
		if r.Body != "" {
			fmt.Fprintf(&b, " -H 'Content-Type: %s' -d '%s'", r.Type, strings.ReplaceAll(r.Body, "'", `'\''`))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// differentialServer is a client of an API server that the lab has started.
func differentialServer(a candidate.Access) (differential.Server, error) {
	client, err := rest.HTTPClientFor(&rest.Config{Host: a.URL, BearerToken: a.Token, TLSClientConfig: rest.TLSClientConfig{CAData: a.CA}})
	return differential.Server{Client: client, URL: a.URL}, err
}
