package lab

import (
	"cmp"
	"slices"
	"time"
)

// Spent is what the programs of one name took in a lab.
type Spent struct {
	Program   string
	Processes int
	Processor time.Duration
}

// Spent tells what the programs of the lab took up to now, those that took most first. To be called before Close.
func (l *Lab) Spent() []Spent {
	l.mu.Lock()
	dir := l.Dir
	l.mu.Unlock()
	if dir == nil {
		return nil
	}
	var all []Spent
	for _, p := range dir.Processes() {
		i := slices.IndexFunc(all, func(s Spent) bool { return s.Program == p.Name })
		if i < 0 {
			i = len(all)
			all = append(all, Spent{Program: p.Name})
		}
		all[i].Processes++
		all[i].Processor += p.Processor()
	}
	slices.SortStableFunc(all, func(a, b Spent) int {
		return cmp.Or(cmp.Compare(b.Processor, a.Processor), cmp.Compare(a.Program, b.Program))
	})
	return all
}
