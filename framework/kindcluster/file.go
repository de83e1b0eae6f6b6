package kindcluster

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"

	"github.com/service-conformance/conformance/fixtures"
	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/spec"
)

// File describes a cluster of kind; fixtures/kind has some.
type File struct {
	// ServiceCIDR is the range, or two joined by a comma, as in --service-cidr.
	ServiceCIDR string `json:"serviceCIDR"`
	// ProxyMode is that of kube-proxy; empty is candidate.DefaultProxyMode, and "none" leaves it out for what --kind-setup installs.
	ProxyMode string `json:"proxyMode,omitempty"`
	// Network is which network pods have: that of kind if it is empty, and "none" for what --kind-setup installs.
	Network string `json:"network,omitempty"`
	// NodeImage is the image of the nodes; empty takes that of --node-image.
	NodeImage string `json:"nodeImage,omitempty"`
	// Workers is the number of nodes beside the control plane; absent takes that of --workers.
	Workers *int `json:"workers,omitempty"`
}

const noNetwork = "none"

// NoNetwork reports whether the cluster is to have no network of kind's.
func (f *File) NoNetwork() bool { return f.Network == noNetwork }

// Compatible tells why clusters do not go into one report. A report names one implementation, whose known deviations
// may depend on version and mode. It tells clusters apart by their ranges.
func Compatible(files []File) error {
	seen := map[string]bool{}
	for _, f := range files {
		switch {
		case cmp.Or(f.ProxyMode, candidate.DefaultProxyMode) != cmp.Or(files[0].ProxyMode, candidate.DefaultProxyMode) || f.NodeImage != files[0].NodeImage || f.Network != files[0].Network:
			return errors.New("clusters of different modes of kube-proxy, networks or node images need a run each, as a report is about one implementation")
		case seen[f.ServiceCIDR]:
			return fmt.Errorf("two clusters have the Service range %s, and the report tells clusters apart by it", f.ServiceCIDR)
		}
		seen[f.ServiceCIDR] = true
	}
	return nil
}

// ReadFile reads and checks a file. The error names it, and all that is wrong with what it says.
func ReadFile(path string) (c File, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return c, fmt.Errorf("read the description of a cluster: %w", err)
	}
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	var problems []error
	if c.ServiceCIDR == "" {
		problems = append(problems, errors.New("serviceCIDR: a cluster needs a Service range"))
	} else if _, err := spec.ParseUsableServiceCIDRs(c.ServiceCIDR); err != nil {
		problems = append(problems, fmt.Errorf("serviceCIDR: %w", err))
	}
	if err := candidate.CheckProxyMode(c.ProxyMode); err != nil && c.ProxyMode != NoProxy {
		problems = append(problems, fmt.Errorf("proxyMode: %w, and none", err))
	}
	if c.Network != "" && c.Network != noNetwork {
		problems = append(problems, fmt.Errorf("network: %q is not known; leave it out for kind's own, or say none", c.Network))
	}
	if err := errors.Join(problems...); err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// Matrix are the clusters that are made where nothing says which (fixtures/servicecidrs.yaml): ranges of the sizes that
// the documents speak of, and both families.
func Matrix() []File {
	var f struct {
		Clusters []File `json:"clusters"`
	}
	if err := yaml.Unmarshal(fixtures.ServiceCIDRs, &f); err != nil {
		panic(fmt.Sprintf("embedded servicecidrs.yaml: %v", err))
	}
	return f.Clusters
}
