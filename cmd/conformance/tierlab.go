package main

import (
	"cmp"
	"context"
	"reflect"

	"github.com/spf13/pflag"

	"github.com/service-conformance/conformance/internal/lab"
	"github.com/service-conformance/conformance/internal/lab/dataplane"
	"github.com/service-conformance/conformance/internal/lab/network"
	"github.com/service-conformance/conformance/internal/lab/programs"
	"github.com/service-conformance/conformance/internal/lab/standing"
)

// labTier is a lab: one of the run's own, or one that is up.
type labTier struct {
	binDir  string
	around  string // surroundings
	attach  string // name of a lab that is up
	proxy   dataplane.ProxyOptions
	servers programs.ServerOptions
}

func (*labTier) name() string { return "lab" }

func (t *labTier) register(flags *pflag.FlagSet) {
	flags.StringVar(&t.binDir, "kubernetes-bin-dir", "", "folder with kube-apiserver and etcd for the lab (default: fetched by conformance lab fetch, or built from Go modules, once)")
	registerProxy(flags, &t.proxy)
	registerServers(flags, &t.servers)
	flags.StringVar(&t.around, "surroundings", "", "what the network around the lab does with unused addresses: unreachable, silent, resetting or accepting (default unreachable). Verdicts must not depend on it")
	flags.StringVar(&t.attach, "attach", "", "judge the lab of this name that is up (conformance lab up), for --tier lab; --attach alone means the one without a name")
	flags.Lookup("attach").NoOptDefVal = standing.DefaultName
}

func (t *labTier) validate(f *runFlags, chosen bool) error {
	if err := standing.CheckName(t.attach); err != nil {
		return usage("--attach: %w", err)
	}
	if _, err := network.ParseSurroundings(t.around); err != nil {
		return usage("--surroundings: %w", err)
	}
	if !chosen {
		return t.refuse()
	}
	if err := f.noPod(); err != nil {
		return err
	}
	o := t.options(f, false)
	if t.attach != "" && (t.around != "" || t.binDir != "" || f.version != programs.DefaultVersion || o.Proxy != (dataplane.ProxyOptions{}) || !reflect.ValueOf(t.servers).IsZero()) {
		return usage("--attach judges a lab as it was started: give conformance lab up the flags that choose its programs")
	}
	err := cmp.Or(f.noAgentImage(), validateServers(t.servers), validateProxy(&o.Proxy))
	t.proxy.Configuration = o.Proxy.Configuration // it was the name of a file
	return err
}

// refuse returns wrong usage if a flag is set although another tier is chosen.
func (t *labTier) refuse() error {
	switch {
	case t.around != "":
		return usage("--surroundings is for --tier lab")
	case t.attach != "":
		return usage("--attach is for --tier lab")
	case t.binDir != "":
		return usage("--kubernetes-bin-dir is for --tier lab")
	case t.proxy.Command != "":
		return usage("--proxy-command is for --tier lab")
	case t.proxy.Configuration != "":
		return usage("--proxy-configuration is for --tier lab")
	case t.proxy.Setup != "" || t.proxy.Teardown != "":
		return usage("--node-setup and --node-teardown are for --tier lab")
	case t.proxy.PodSetup != "" || t.proxy.PodTeardown != "":
		return usage("--pod-setup and --pod-teardown are for --tier lab")
	case t.proxy.PodInterfaces != "":
		return usage("--pod-interface-prefix is for --tier lab")
	case t.servers.EtcdCommand != "" || t.servers.APIServerCommand != "" || len(t.servers.APIServerFlags) > 0:
		return usage("--etcd-command, --kube-apiserver-command and --kube-apiserver-flag are for --tier lab")
	}
	return validateProxy(&t.proxy)
}

// options are those of a lab of the run's own, with nodes or without.
func (t *labTier) options(f *runFlags, nodes bool) lab.Options {
	o := lab.Options{Version: f.version, BinDir: t.binDir, DataPlane: nodes, Proxy: t.proxy, Servers: t.servers, Surroundings: t.around}
	o.Proxy.Mode = f.proxyMode
	if (t.binDir != "" || t.servers.APIServerCommand != "") && f.version == programs.DefaultVersion {
		o.Version = "" // whatever the folder holds
	}
	return o
}

// run goes on in another process, in the network of the lab, unless this one is there already or needs none.
func (t *labTier) run(ctx context.Context, r *plan) (err error) {
	switch {
	case t.attach != "":
		r.begun, err = enterLab(ctx, t.attach)
	case r.traffic:
		r.begun, err = isolate(ctx, r.out, t.options(r.runFlags, true))
	}
	if r.begun || err != nil {
		return err
	}
	p := &place{workers: fewWorkers, shared: t.attach != "", surrounded: t.around != ""}
	if r.traffic {
		p.workers = lab.TrafficWorkers()
	}
	if t.attach != "" {
		p.Candidate, err = attachLab(ctx)
	} else {
		p.Candidate, err = openLab(ctx, r.out, t.options(r.runFlags, r.traffic))
	}
	if err != nil {
		return err
	}
	return r.judge(ctx, p)
}
