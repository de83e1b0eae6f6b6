package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/apiserver"
	"github.com/service-conformance/conformance/internal/differential"
	"github.com/service-conformance/conformance/internal/differential/random"
	"github.com/service-conformance/conformance/internal/lab"
)

// stories are those that are told to the reference and to a kube-apiserver.
type stories struct {
	// name begins the names of files. version is that of Kubernetes.
	name, version string
	make          func(*rand.Rand) differential.Story
	compare       func(*differential.Pair, context.Context, int, differential.Story) ([]differential.Told, error)
	shrink        func(*differential.Pair, context.Context, int, differential.Story, differential.Told) (differential.Story, differential.Told, error)
	// prepare, if set, is called once before the first story.
	prepare    func(*differential.Pair, context.Context) error
	reference  apiserver.Options
	lab        lab.Options
	tolerances []differential.Tolerance
}

func (t *stories) run(ctx context.Context, out io.Writer, f *randomFlags, files []string) error {
	inputs, err := readInputs(files, differential.ParseStory)
	if err != nil {
		return usage("%w", err)
	}
	if err := f.validate(files); err != nil {
		return err
	}
	t.reference.ServiceCIDRs, t.reference.Version, t.reference.Seed, t.lab.Version = differential.Ranges(), t.version, f.seed, t.version
	sound, err := apiserver.New(t.reference)
	if err != nil {
		return harness("start the reference: %w", err)
	}
	if err := sound.Start(); err != nil {
		return harness("%w", err)
	}
	defer func() { _ = sound.Close() }() // it is in this process
	other, err := openLab(ctx, out, t.lab)
	if err != nil {
		return err
	}
	p := &place{Candidate: other}
	defer p.close()
	cp, err := other.ControlPlane(ctx, candidate.Request{ServiceCIDRs: differential.Ranges(), Exclusive: true})
	if err != nil {
		return incomplete(ctx, err)
	}
	defer cp.Release()
	server, err := differentialServer(cp.Access())
	if err != nil {
		return harness("%w", err)
	}
	pair := &differential.Pair{Reference: differential.Server{Client: &http.Client{Transport: sound}, URL: sound.URL(), Reference: true}, Real: server}
	if t.prepare != nil {
		if err := t.prepare(pair, ctx); err != nil {
			return incomplete(ctx, err)
		}
	}
	s := suite[differential.Story, differential.Told]{
		Test: random.Test[differential.Story, differential.Told]{
			Make: t.make, Slots: differential.Slots,
			Compare: func(ctx context.Context, slot int, story differential.Story) ([]differential.Told, error) {
				return t.compare(pair, ctx, slot, story)
			},
		},
		name: t.name, sent: func() string { return fmt.Sprintf("%d requests", pair.Requests.Load()) },
		shrink: func(ctx context.Context, story differential.Story, d differential.Told) (differential.Story, differential.Told, error) {
			return t.shrink(pair, ctx, 0, story, d)
		},
		commands: func(story differential.Story, _ differential.Told) (string, error) { return requests(story), nil },
	}
	for _, t := range t.tolerances {
		s.tolerated = append(s.tolerated, [2]string{t.Name, t.Why})
	}
	return s.compare(ctx, out, f, other, files, inputs)
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
