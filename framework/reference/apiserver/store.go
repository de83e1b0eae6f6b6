package apiserver

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// The answers of the store that are not about a request: the handlers turn them into a Status.
var (
	errExists               = errors.New("object exists")
	errNotFound             = errors.New("object not found")
	errChanged              = errors.New("object has changed")
	errNamespaceMissing     = errors.New("namespace does not exist")
	errNamespaceTerminating = errors.New("namespace is terminating")
	errFutureVersion        = errors.New("resource version is in the future")
)

// expiredError says that the events after a resource version are no longer there.
type expiredError struct{ requested, oldest uint64 }

func (e *expiredError) Error() string {
	return fmt.Sprintf("too old resource version: %d (%d)", e.requested, e.oldest)
}

// entry is one stored object with what is known about it. Entries are never changed once they are in the store.
type entry struct {
	key string
	// stored is what writes start from, view is what readers see; mostly the same object.
	stored, view object
	// writes is who wrote what, for objects that nobody has applied yet (see managedfields.go).
	writes []write
}

// table holds the objects of one resource.
type table struct {
	objects map[string]*entry
	sorted  []*entry // all entries by key, nil when the table has changed since it was built; never changed in place
	log     eventLog
}

// store is the memory of a control plane: objects by resource, one counter of resource versions, and the latest events.
// It outlives a restart of the server. All methods are safe for concurrent use.
type store struct {
	mu      sync.RWMutex
	version uint64
	tables  []table
	// population is the number of objects in each namespace.
	population map[string]int
}

func newStore() *store {
	s := &store{tables: make([]table, len(resources)), population: map[string]int{}}
	for i := range s.tables {
		s.tables[i].objects = map[string]*entry{}
	}
	return s
}

// objectKey is the place of an object in its table. The order of keys is the order of lists.
func objectKey(r *resource, namespace, name string) string {
	if r.namespaced {
		return namespace + "/" + name
	}
	return name
}

// current returns the newest resource version.
func (s *store) current() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.version
}

// get returns an entry, nil if there is none.
func (s *store) get(r *resource, namespace, name string) *entry {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.tables[r.index].objects[objectKey(r, namespace, name)]
}

// objectsIn returns the number of objects in a namespace.
func (s *store) objectsIn(namespace string) int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.population[namespace]
}

// namespaceState returns nil when the namespace takes new objects.
func (s *store) namespaceState(name string) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.namespaceStateLocked(name)
}

func (s *store) namespaceStateLocked(name string) error {
	e := s.tables[namespaces.index].objects[name]
	switch {
	case e == nil:
		return errNamespaceMissing
	case e.stored.GetDeletionTimestamp() != nil || e.stored.(*corev1.Namespace).Status.Phase == corev1.NamespaceTerminating:
		return errNamespaceTerminating
	}
	return nil
}

// create adds an object, sets its resource version and takes ownership of it.
func (s *store) create(r *resource, obj object, view func(object) object, writes []write) (*entry, error) {
	key := objectKey(r, obj.GetNamespace(), obj.GetName())
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.tables[r.index]
	if _, ok := t.objects[key]; ok {
		return nil, errExists
	}
	if r.namespaced {
		if err := s.namespaceStateLocked(obj.GetNamespace()); err != nil {
			return nil, err
		}
	}
	s.population[obj.GetNamespace()]++
	return s.putLocked(t, watch.Added, nil, key, obj, view, writes), nil
}

// update replaces an object if it is still the one in old; otherwise the error is errChanged or errNotFound.
func (s *store) update(r *resource, old *entry, obj object, view func(object) object, writes []write) (*entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.tables[r.index]
	if err := t.unchanged(old); err != nil {
		return nil, err
	}
	return s.putLocked(t, watch.Modified, old, old.key, obj, view, writes), nil
}

func (t *table) unchanged(old *entry) error {
	switch t.objects[old.key] {
	case old:
		return nil
	case nil:
		return errNotFound
	default:
		return errChanged
	}
}

func (s *store) putLocked(t *table, kind watch.EventType, old *entry, key string, obj object, view func(object) object, writes []write) *entry {
	s.version++
	obj.SetResourceVersion(strconv.FormatUint(s.version, 10))
	e := &entry{key: key, stored: obj, view: view(obj), writes: writes}
	t.objects[key] = e
	t.sorted = nil
	ev := event{version: s.version, kind: kind, object: e.view}
	if old != nil {
		ev.previous = old.view
	}
	t.log.append(ev)
	return e
}

// remove takes an object out if it is still the one in old. It returns the last state that watchers see: final or, if
// that is nil, the state of old.
func (s *store) remove(r *resource, old *entry, final object, view func(object) object) (object, error) {
	if final == nil {
		final = old.stored.DeepCopyObject().(object)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.tables[r.index]
	if err := t.unchanged(old); err != nil {
		return nil, err
	}
	s.version++
	final.SetResourceVersion(strconv.FormatUint(s.version, 10))
	final = view(final)
	delete(t.objects, old.key)
	t.sorted = nil
	if ns := final.GetNamespace(); s.population[ns] > 1 {
		s.population[ns]--
	} else {
		delete(s.population, ns)
	}
	t.log.append(event{version: s.version, kind: watch.Deleted, object: final, previous: old.view})
	return final, nil
}

// list returns the entries of a namespace, or of all namespaces if it is empty, in the order of their keys. It also
// returns the resource version that they were seen at. The slice must not be changed.
func (s *store) list(r *resource, namespace string) ([]*entry, uint64) {
	s.mu.RLock()
	sorted, version := s.tables[r.index].sorted, s.version
	s.mu.RUnlock()
	if sorted == nil {
		s.mu.Lock()
		t := &s.tables[r.index]
		if t.sorted == nil {
			t.sorted = make([]*entry, 0, len(t.objects))
			for _, e := range t.objects {
				t.sorted = append(t.sorted, e)
			}
			slices.SortFunc(t.sorted, func(a, b *entry) int { return strings.Compare(a.key, b.key) })
		}
		sorted, version = t.sorted, s.version
		s.mu.Unlock()
	}
	return inNamespace(sorted, r, namespace), version
}

// inNamespace cuts the entries of one namespace out of a sorted slice.
func inNamespace(sorted []*entry, r *resource, namespace string) []*entry {
	if !r.namespaced || namespace == "" {
		return sorted
	}
	first := sort.Search(len(sorted), func(i int) bool { return sorted[i].key >= namespace+"/" })
	// '0' follows '/' in ASCII.
	last := sort.Search(len(sorted), func(i int) bool { return sorted[i].key >= namespace+"0" })
	return sorted[first:last]
}

// event is one change of an object.
type event struct {
	version          uint64
	kind             watch.EventType
	object, previous object // as readers see them; previous is nil for an object that is new
}

// keptEvents is how many events of each resource a watch can at least go back to.
const keptEvents = 16384

// eventLog holds the latest events of one resource. It is guarded by the lock of its store.
type eventLog struct {
	events  []event
	first   uint64        // sequence number of events[0]
	dropped uint64        // resource version of the newest event that is gone
	wake    chan struct{} // closed by the next append; nil when nobody waits
}

func (l *eventLog) append(e event) {
	if len(l.events) >= 2*keptEvents {
		l.dropped = l.events[keptEvents-1].version
		l.events = append(make([]event, 0, 2*keptEvents), l.events[keptEvents:]...)
		l.first += keptEvents
	}
	l.events = append(l.events, e)
	if l.wake != nil {
		close(l.wake)
		l.wake = nil
	}
}

// position returns the sequence number of the first event after a resource version.
func (s *store) position(r *resource, version uint64) (uint64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	l := &s.tables[r.index].log
	if version < l.dropped {
		return 0, &expiredError{requested: version, oldest: l.dropped}
	}
	i := sort.Search(len(l.events), func(i int) bool { return l.events[i].version > version })
	return l.first + uint64(i), nil
}

// read returns up to limit events from a sequence number on, and the next sequence number. It also returns the resource
// version up to which the caller has then seen everything. When there are no events, wake is closed as soon as there is
// one. The error is an *expiredError when the caller was too slow.
func (s *store) read(r *resource, sequence uint64, limit int) (events []event, next, version uint64, wake <-chan struct{}, err error) {
	s.mu.RLock()
	l := &s.tables[r.index].log
	if sequence < l.first {
		defer s.mu.RUnlock()
		return nil, 0, 0, nil, &expiredError{requested: l.dropped - 1, oldest: l.dropped}
	}
	if rest := l.events[sequence-l.first:]; len(rest) > 0 {
		defer s.mu.RUnlock()
		events = rest[:min(limit, len(rest))]
		return events, sequence + uint64(len(events)), events[len(events)-1].version, nil, nil
	}
	s.mu.RUnlock()

	s.mu.Lock()
	defer s.mu.Unlock()
	if int(sequence-l.first) < len(l.events) { // one came in between
		closed := make(chan struct{})
		close(closed)
		return nil, sequence, 0, closed, nil
	}
	if l.wake == nil {
		l.wake = make(chan struct{})
	}
	return nil, sequence, s.version, l.wake, nil
}
