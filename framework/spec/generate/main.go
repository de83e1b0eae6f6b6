// Command generate writes framework/spec/ids.go: one Go constant per requirement of fixtures/spec/*.yaml.
// Run it with `go generate ./framework/spec`.
package main

import (
	"bytes"
	"fmt"
	"go/format"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

// The files are read directly rather than through package spec, which does not compile while a constant is missing.
func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(dir, out string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString("// Code generated from fixtures/spec by framework/spec/generate. DO NOT EDIT.\n\npackage spec\n\n// The requirements, in the order of the catalogue.\nconst (\n")
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".yaml") {
			continue
		}
		data, err := os.ReadFile(dir + "/" + e.Name())
		if err != nil {
			return err
		}
		var f struct {
			Requirements []struct {
				ID string `json:"id"`
			} `json:"requirements"`
		}
		if err := yaml.Unmarshal(data, &f); err != nil {
			return fmt.Errorf("%s: %w", e.Name(), err)
		}
		if len(f.Requirements) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n// %s\n\n", e.Name())
		for _, r := range f.Requirements {
			fmt.Fprintf(&b, "%s ID = %q\n", constant(r.ID), r.ID)
		}
	}
	b.WriteString(")\n")
	src, err := format.Source(b.Bytes())
	if err != nil {
		return err
	}
	return os.WriteFile(out, src, 0o644)
}

var initialisms = map[string]string{
	"api": "API", "ip": "IP", "ips": "IPs", "clusterip": "ClusterIP", "clusterips": "ClusterIPs", "cidr": "CIDR", "dns": "DNS", "ipv4": "IPv4", "ipv6": "IPv6",
	"tcp": "TCP", "udp": "UDP", "sctp": "SCTP", "http": "HTTP", "vip": "VIP", "ipvs": "IPVS", "nodeport": "NodePort", "externalname": "ExternalName",
	"loadbalancer": "LoadBalancer", "externalip": "ExternalIP", "externalips": "ExternalIPs", "ssa": "SSA", "id": "ID", "put": "PUT", "json": "JSON",
}

func constant(id string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(id, "-") {
		if s, ok := initialisms[word]; ok {
			b.WriteString(s)
		} else if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}
