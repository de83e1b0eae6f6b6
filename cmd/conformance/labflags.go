package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/lab/dataplane"
	"github.com/service-conformance/conformance/internal/lab/programs"
)

// registerProxyMode adds the flag that chooses what kube-proxy does.
func registerProxyMode(flags *pflag.FlagSet, mode *string) {
	flags.StringVar(mode, "proxy-mode", "", "mode of kube-proxy: iptables, nftables or ipvs (default iptables)")
}

// registerProxy adds the flags that choose what else runs on the nodes of the lab.
func registerProxy(flags *pflag.FlagSet, o *dataplane.ProxyOptions) {
	flags.StringVar(&o.Configuration, "proxy-configuration", "", "file with a part of a KubeProxyConfiguration, which changes that of every kube-proxy of the lab, such as nodePortAddresses: [primary]")
	flags.StringVar(&o.Command, "proxy-command", "", "shell command that runs on each node of the lab instead of kube-proxy. {kubeconfig}, {node}, {pod-cidr} and {cgroup} (a folder, or empty) are filled in")
	flags.StringVar(&o.Ready, "proxy-ready", "", "command that succeeds on a node of the lab once the proxy of --proxy-command serves there; checks begin then; placeholders as above")
	flags.BoolVar(&o.UsesIPVS, "proxy-ipvs", false, "the program of --proxy-command needs IPVS: on a kernel without it the lab boots itself in user-mode-linux, where everything takes many times as long")
	flags.StringVar(&o.Setup, "node-setup", "", "command to run on each node of the lab before its proxy starts; placeholders as above")
	flags.StringVar(&o.Teardown, "node-teardown", "", "command to run on each node of the lab after its proxy was stopped, if the one before succeeded; placeholders as above")
	flags.StringVar(&o.PodSetup, "pod-setup", "", "command to run on its node for each pod of the lab before its first use, as a CNI plugin is called. {pod-interface}, {pod-namespace} and {pod-name} are filled in")
	flags.StringVar(&o.PodInterfaces, "pod-interface-prefix", "", "what names of pods' interfaces on nodes of the lab begin with. A program of --proxy-command may know pods by that (default pod)")
	flags.StringVar(&o.PodTeardown, "pod-teardown", "", "command to run on its node for each pod of the lab before the pod goes; placeholders as for --pod-setup")
}

// readProxyConfiguration puts the content of the file in the place of its name.
func readProxyConfiguration(o *dataplane.ProxyOptions) error {
	if o.Configuration == "" {
		return nil
	}
	text, err := os.ReadFile(o.Configuration)
	if err == nil {
		if _, err = candidate.KubeProxyChanges(string(text)); err != nil {
			err = fmt.Errorf("%s: %w", o.Configuration, err)
		}
	}
	if err != nil {
		return usage("--proxy-configuration: %w", err)
	}
	o.Configuration = string(text)
	return nil
}

// registerServers adds the flags that replace what the lab stores in and serves the API with.
func registerServers(flags *pflag.FlagSet, o *programs.ServerOptions) {
	flags.StringVar(&o.EtcdCommand, "etcd-command", "", "shell command that runs in the lab instead of etcd. {endpoint} (the URL to listen on) and {data} (a folder) are filled in")
	flags.StringVar(&o.APIServerCommand, "kube-apiserver-command", "", "shell command that runs in the lab instead of kube-apiserver. It is given the flags of kube-apiserver and must answer --version")
	flags.StringArrayVar(&o.APIServerFlags, "kube-apiserver-flag", nil, "further flag of the lab's API servers, such as --kube-apiserver-flag=--enable-admission-plugins=DenyServiceExternalIPs; may be repeated")
}

func validateServers(o programs.ServerOptions) error {
	for _, f := range o.APIServerFlags {
		if !strings.HasPrefix(f, "--") {
			return usage("--kube-apiserver-flag %q: write the flag as kube-apiserver takes it, with its dashes: --kube-apiserver-flag=--NAME=VALUE", f)
		}
	}
	return nil
}

// validateProxy is to be called once: it reads the file of --proxy-configuration.
func validateProxy(o *dataplane.ProxyOptions) error {
	switch {
	case o.Mode != "" && o.Command != "":
		return usage("--proxy-mode is a mode of kube-proxy, which --proxy-command replaces: name one of them")
	case o.Configuration != "" && o.Command != "":
		return usage("--proxy-configuration is that of kube-proxy, which --proxy-command replaces: name one of them")
	case o.Ready != "" && o.Command == "":
		return usage("--proxy-ready is for the program of --proxy-command: when kube-proxy is ready is known")
	case o.UsesIPVS && o.Command == "":
		return usage("--proxy-ipvs is for the program of --proxy-command: for kube-proxy, --proxy-mode ipvs says it")
	case o.PodInterfaces != "" && o.Command == "":
		return usage("--pod-interface-prefix is for the program of --proxy-command: kube-proxy knows pods by their addresses")
	case o.Teardown != "" && o.Setup == "":
		return usage("--node-teardown undoes what --node-setup has done: name both")
	case o.PodSetup != "" && o.Command == "":
		return usage("--pod-setup is for the program of --proxy-command: kube-proxy needs to know of no pod")
	case o.PodTeardown != "" && o.PodSetup == "":
		return usage("--pod-teardown undoes what --pod-setup has done: name both")
	}
	if err := o.CheckPodInterfaces(); err != nil {
		return usage("--pod-interface-prefix: %w", err)
	}
	if err := candidate.CheckProxyMode(o.Mode); err != nil {
		return usage("%w", err)
	}
	return readProxyConfiguration(o)
}
