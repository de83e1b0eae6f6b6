package spec

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// listed is what the catalogue takes from an entry of a published list of known failures. Package report reads the whole entry.
type listed struct {
	Requirement ID     `json:"requirement"`
	Versions    string `json:"versions"`
	ProxyMode   string `json:"proxyMode"`
	Reason      string `json:"reason"`
	Source      string `json:"source"`
	WaitsFor    string `json:"waitsFor"`
	Expires     string `json:"expires"`
}

// takeListed adds to each requirement the deviations that the published lists in dir (IMPLEMENTATION.yaml) hold of it. A deviation that a list holds for several
// checks or modes of the proxy is one. So a deviation that makes a check fail is said in its list alone.
func (c *Catalogue) takeListed(fsys fs.FS, dir string) error {
	names, err := fs.Glob(fsys, path.Join(dir, "*.yaml"))
	if err != nil {
		return err
	}
	for _, name := range names {
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		var list struct {
			Deviations []listed `json:"deviations"`
		}
		if err := yaml.Unmarshal(data, &list); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		implementation := strings.TrimSuffix(path.Base(name), ".yaml")
		for i, x := range list.Deviations {
			r := c.Get(x.Requirement)
			if r == nil {
				return fmt.Errorf("%s: unknown requirement %q", name, x.Requirement)
			}
			same := func(y listed) bool { y.ProxyMode = x.ProxyMode; return y == x }
			if slices.ContainsFunc(list.Deviations[:i], same) {
				continue // told with the first one
			}
			var modes []string
			for _, y := range list.Deviations[i:] {
				if same(y) && y.ProxyMode != "" && !slices.Contains(modes, y.ProxyMode) {
					modes = append(modes, y.ProxyMode)
				}
			}
			who := strings.TrimSpace(implementation + " " + strings.Join(modes, " and "))
			r.Deviations = append(r.Deviations, Deviation{
				Implementation: who, Versions: x.Versions, Behavior: x.Reason, Source: x.Source, WaitsFor: x.WaitsFor, Expires: x.Expires,
			})
		}
	}
	return nil
}
