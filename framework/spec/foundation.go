package spec

import (
	"fmt"
	"slices"
	"strings"
)

// Foundation is another requirement that checks of a requirement build on: while it is not met, they cannot tell whether their own is.
type Foundation struct {
	ID ID `json:"id"`
	// Because says what the checks rely on.
	Because string `json:"because"`
}

// building is an entry of buildsOn in a file of the catalogue.
type building struct {
	// Because says what the checks of these requirements rely on.
	Because string `json:"because"`
	// Requirements are IDs, or globs on them ("*" any text). A glob leaves out what Upon names and what that builds on itself.
	Requirements []string `json:"requirements"`
	Upon         []ID     `json:"upon"`
}

func (b *building) String() string { return fmt.Sprintf("buildsOn %q", b.Because) }

// build enters what the requirements build on. Names come first and globs later, so that globs can leave out what would
// be a circle.
func (c *Catalogue) build(all []building) (problems []error) {
	for i := range all {
		b := &all[i]
		bad := func(format string, args ...any) {
			problems = append(problems, fmt.Errorf("%s: %w", b, fmt.Errorf(format, args...)))
		}
		if b.Because == "" || len(b.Requirements) == 0 || len(b.Upon) == 0 {
			bad("because, requirements and upon are required")
		}
		for _, on := range b.Upon {
			switch r := c.byID[on]; {
			case r == nil:
				bad("unknown requirement %q", on)
			case r.Unchecked != "":
				bad("no check decides %s", on)
			}
		}
		for _, pattern := range b.Requirements {
			if !strings.Contains(pattern, "*") && c.byID[ID(pattern)] == nil {
				bad("unknown requirement %q", pattern)
			}
		}
	}
	if len(problems) > 0 {
		return problems
	}
	for i := range all {
		for _, name := range all[i].Requirements {
			if strings.Contains(name, "*") {
				continue
			}
			for _, on := range all[i].Upon {
				if !c.lay(c.byID[ID(name)], Foundation{on, all[i].Because}) {
					problems = append(problems, fmt.Errorf("%s: %s builds on %s, which builds on it", &all[i], name, on))
				}
			}
		}
	}
	for i := range all {
		for _, pattern := range all[i].Requirements {
			if !strings.Contains(pattern, "*") {
				continue
			}
			matched, fits := false, Glob(pattern)
			for k := range c.Requirements {
				r := &c.Requirements[k]
				if r.Unchecked == "" && fits(string(r.ID)) {
					matched = true
					for _, on := range all[i].Upon {
						c.lay(r, Foundation{on, all[i].Because})
					}
				}
			}
			if !matched {
				problems = append(problems, fmt.Errorf("%s: no requirement with a check matches %q", &all[i], pattern))
			}
		}
	}
	c.foundations = map[ID][]ID{}
	for i := range c.Requirements {
		c.foundations[c.Requirements[i].ID] = c.foundationsOf(c.Requirements[i].ID)
	}
	return problems
}

// lay lets a requirement build on another one, unless that would make a circle, which it reports.
func (c *Catalogue) lay(r *Requirement, f Foundation) bool {
	if r.ID == f.ID || slices.Contains(c.foundationsOf(f.ID), r.ID) {
		return false
	}
	if !slices.ContainsFunc(r.BuildsOn, func(g Foundation) bool { return g.ID == f.ID }) {
		r.BuildsOn = append(r.BuildsOn, f)
	}
	return true
}

// Foundations returns all requirements that one builds on, directly or through others. The caller must not change it.
func (c *Catalogue) Foundations(id ID) []ID { return c.foundations[id] }

// foundationsOf walks what a requirement builds on; each of the result stands before those that build on it.
func (c *Catalogue) foundationsOf(id ID) (all []ID) {
	seen := map[ID]bool{id: true}
	var walk func(ID)
	walk = func(id ID) {
		r := c.byID[id]
		if r == nil {
			return
		}
		for _, f := range r.BuildsOn {
			if !seen[f.ID] {
				seen[f.ID] = true
				walk(f.ID)
				all = append(all, f.ID)
			}
		}
	}
	walk(id)
	return all
}
