package apiserver

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// Field management is lazy. To find out who owns which field costs more than all else that a create does, and only
// server-side apply needs it. So a plain write is only remembered (entry.writes), and replayed when the object is
// applied for the first time. From then on metadata.managedFields is kept up to date by every write. What differs from
// a real server is that an object which nobody has applied shows no managedFields.

// write remembers one create or update of an object that nobody has applied yet.
type write struct {
	manager, subresource string
	// live is the object before the write, nil for a create. object is what the client sent, decoded. Of a create the
	// body itself is kept, which is much smaller.
	live, object object
	data         []byte
	media        string
}

// maxWrites bounds what is remembered of an object. What older writes set then belongs to nobody.
const maxWrites = 32

// typeConverter knows the structure of the served types: which lists are maps, and by which keys. client-go has that of
// all types, but would bind every API group into the program, and half of the time of its build. It is made by Prepare
// or at first use, and shared by all servers.
var typeConverter = sync.OnceValue(func() managedfields.TypeConverter {
	parser := &typed.Parser{}
	parser.Schema.Types = structure()
	return managedfields.NewSchemeTypeConverter(codecs().scheme, parser)
})

// fieldManagers are the field managers of one server, made at first use.
type fieldManagers struct {
	mu       sync.Mutex
	managers map[fieldManagerKey]*managedfields.FieldManager
}

type fieldManagerKey struct {
	resource    *resource
	subresource string
}

func (s *Server) fieldManager(res *resource, subresource string) (*managedfields.FieldManager, error) {
	s.managers.mu.Lock()
	defer s.managers.mu.Unlock()
	key := fieldManagerKey{res, subresource}
	if m := s.managers.managers[key]; m != nil {
		return m, nil
	}
	scheme := codecs().scheme
	m, err := managedfields.NewDefaultFieldManager(typeConverter(), scheme, schemaDefaults{s}, scheme, res.gvk, res.groupVersion(), subresource, resetFields(res, subresource))
	if err != nil {
		return nil, err
	}
	if s.managers.managers == nil {
		s.managers.managers = map[fieldManagerKey]*managedfields.FieldManager{}
	}
	s.managers.managers[key] = m
	return m, nil
}

// schemaDefaults gives the merged object of an apply its defaults.
type schemaDefaults struct{ server *Server }

func (d schemaDefaults) Default(in runtime.Object) {
	for _, res := range resources {
		if obj, ok := in.(object); ok && res.gvk == obj.GetObjectKind().GroupVersionKind() {
			res.strategy.defaults(d.server, obj)
		}
	}
}

// resetFields are the fields that a write through a subresource, or past it, does not change: nobody comes to own them that way.
func resetFields(res *resource, subresource string) map[fieldpath.APIVersion]fieldpath.Filter {
	ignored := ""
	switch {
	case subresource == "status":
		ignored = "spec"
	case subresource == "" && slices.Contains(res.subresources, "status"):
		ignored = "status"
	default:
		return nil
	}
	set := fieldpath.NewSet(fieldpath.MakePathOrDie(ignored))
	return map[fieldpath.APIVersion]fieldpath.Filter{
		fieldpath.APIVersion(res.groupVersion().String()): fieldpath.NewExcludeSetFilter(set),
	}
}

// trackCreate notes who creates an object. A client that brings managed fields of its own is tracked from the start.
func (s *Server) trackCreate(res *resource, obj *object, w write) ([]write, error) {
	if w.manager == "" { // applied: tracked already
		return nil, nil
	}
	if len((*obj).GetManagedFields()) == 0 {
		(*obj).SetManagedFields(nil)
		w.manager = strings.Clone(w.manager) // not a piece of a larger header
		return []write{w}, nil
	}
	return nil, s.trackWrite(res, s.empty(res), obj, "", w.manager)
}

// trackUpdate notes who changes an object and, where the object has managed fields, works out the new ones.
func (s *Server) trackUpdate(res *resource, old *entry, obj *object, subresource, manager string) ([]write, error) {
	if len(old.stored.GetManagedFields()) == 0 && len((*obj).GetManagedFields()) == 0 {
		(*obj).SetManagedFields(nil)
		w := write{manager: strings.Clone(manager), subresource: subresource, live: old.stored, object: (*obj).DeepCopyObject().(object)}
		return append(slices.Clone(old.writes[max(0, len(old.writes)-maxWrites+1):]), w), nil
	}
	return nil, s.book(res).updateOwned.Do(s, res, old, obj, subresource, manager)
}

var updateOwned = rule.New("update-owned", func(s *Server, res *resource, old *entry, obj *object, subresource, manager string) error {
	return s.trackWrite(res, s.tracked(res, old), obj, subresource, manager)
}, spec.APIApplyUpdateConflict)

func (s *Server) trackWrite(res *resource, live object, obj *object, subresource, manager string) error {
	m, err := s.fieldManager(res, subresource)
	if err != nil {
		return err
	}
	*obj = m.UpdateNoErrors(live, *obj, manager).(object)
	return nil
}

// empty is what a new object is compared with.
func (s *Server) empty(res *resource) object {
	obj := res.newObject()
	obj.GetObjectKind().SetGroupVersionKind(res.gvk)
	return obj
}

// tracked returns a copy of a stored object with its managed fields. If nobody has applied it yet, it works them out
// from the remembered writes.
func (s *Server) tracked(res *resource, e *entry) object {
	obj := e.stored.DeepCopyObject().(object)
	if len(obj.GetManagedFields()) > 0 {
		return obj
	}
	fields := obj.GetManagedFields()
	for _, w := range e.writes {
		live, sent := s.empty(res), w.object
		if w.live != nil {
			live = w.live.DeepCopyObject().(object)
		}
		if sent == nil {
			var err error
			if sent, err = s.book(res).objectRead.Do(s, res, codecs().lenient[w.media], w.data); err != nil {
				continue // it was decoded once: what cannot be repeated belongs to nobody
			}
		} else {
			sent = sent.DeepCopyObject().(object)
		}
		live.SetManagedFields(fields)
		if err := s.trackWrite(res, live, &sent, w.subresource, w.manager); err != nil {
			continue // as above
		}
		fields = sent.GetManagedFields()
	}
	obj.SetManagedFields(fields)
	return obj
}
