package fault

import (
	"maps"
	"slices"
	"sync"
)

// Reach records which checks each fault can change, while a sound reference is judged. A fault is an edit of rules. It can change
// a check only where a rule was used that it edits, and where the edited rule does something else than the right one.
// A pure rule (rule.Pure) is applied beside the edited one, and what they do is compared. Of any other rule, each use counts.
//
// A Reach is safe for concurrent use.
type Reach struct {
	mu      sync.Mutex
	running string
	reached map[*Fault]map[string]bool
	edits   map[*Fault][]string
	uses    map[*Fault][]int
}

// NewReach records nothing yet.
func NewReach() *Reach {
	return &Reach{reached: map[*Fault]map[string]bool{}, edits: map[*Fault][]string{}, uses: map[*Fault][]int{}}
}

// Outside stands for what no check does: a fault whose rules are used there can change every check.
const Outside = ""

// Begin says which check runs from now on; Outside is none.
func (r *Reach) Begin(check string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = check
}

// Checks returns the names of the checks that a fault can change, sorted. Outside among them stands for all.
func (r *Reach) Checks(f *Fault) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.reached[f]))
}

// Rules returns the names of the rules that a fault edits, sorted. Of a rule that it adds, it is the one beside it.
func (r *Reach) Rules(f *Fault) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.edits[f])
}

// reach notes that the fault can change the check that runs.
func (r *Reach) reach(f *Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reached[f] == nil {
		r.reached[f] = map[string]bool{}
	}
	r.reached[f][r.running] = true
}

// everywhere notes that the fault can change every check.
func (r *Reach) everywhere(f *Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reached[f] = map[string]bool{Outside: true}
}

// edited notes the rules of a fault.
func (r *Reach) edited(f *Fault, rules []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.edits[f] == nil {
		slices.Sort(rules)
		r.edits[f] = slices.Compact(rules)
	}
}

// onlyUses notes where a fault edits its book, if none of the rules there is pure. What stands there instead need not be known then.
func (r *Reach) onlyUses(f *Fault, changes []*change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.uses[f] = make([]int, len(changes))
	for i, c := range changes {
		r.uses[f][i] = c.at
	}
}

// usesOf are the places that onlyUses has noted.
func (r *Reach) usesOf(f *Fault) (places []int, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	places, known = r.uses[f]
	return places, known
}

// RecordedBy returns the same Set of a reference whose rules tell what the other faults could change. Checks must not share what the
// reference keeps, or the use of a rule is that of another check.
func (s Set) RecordedBy(r *Reach) Set { return Set{s.on, r} }
