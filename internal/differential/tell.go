package differential

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Told is where two servers differ in a story.
type Told struct {
	// Step is the number of the request, from 0, and Request what was sent to the second server.
	Step    int
	Request Request
	// What differs, such as "code" or a field of the object, and what each server says.
	What, Reference, Real string
	// Tolerated names the tolerance that covers it; empty if none does.
	Tolerated string
	// Listed says that endpoints differ: What begins with where they are listed.
	Listed bool
}

func (d Told) String() string {
	return fmt.Sprintf("%s differs:\n  reference: %s\n  real:      %s", d.What, d.Reference, d.Real)
}

// Class is what differences have in common that are told once: the request without its names, and what differs.
func (d Told) Class() string {
	method, path, _ := strings.Cut(d.Request.Request, " ")
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	on := slices.IndexFunc(parts, func(p string) bool { return p == "{namespace}" })
	about := strings.Join(parts[on+1:], "/")
	about = objectName.ReplaceAllString(about, "/NAME$1")
	if method == http.MethodPatch {
		method += " (" + strings.TrimSuffix(strings.TrimPrefix(d.Request.Type, "application/"), "+json") + ")"
	}
	if d.Listed {
		where, _, _ := strings.Cut(d.What, " ")
		return method + " " + about + ": " + where
	}
	said := ""
	if d.What == "code" || d.What == "causes" || d.What == "reason" {
		said = fmt.Sprintf(" %s / %s", d.Reference, d.Real)
	}
	return method + " " + about + ": " + index.ReplaceAllString(d.What, ".N") + entry.ReplaceAllString(said, "[N]")
}

var (
	objectName = regexp.MustCompile(`/(?:[abc]|\{namespace\}-[abc]|\{address \d\})(/|$)`)
	index      = regexp.MustCompile(`\.\d+`)
	entry      = regexp.MustCompile(`\[\d+\]`)
)

// Tolerance implements random.Difference.
func (d Told) Tolerance() string { return d.Tolerated }

// Pair is the reference and a real API server with the same Service ranges.
type Pair struct {
	Reference, Real Server
	// Following is how long controllers of the real one may take to follow a request; 0 is ten seconds.
	Following time.Duration
	// Requests counts those that stories have sent to each of them.
	Requests atomic.Int64
}

// stories on both servers at a time have static addresses and node ports of their own, by slot.
const (
	// Slots is how many stories there can be at a time.
	Slots             = 16
	firstAddress      = 16
	firstPort, noPort = 30000, 33000 // a dry run shows numbers beyond the range
)

// Ranges are the Service ranges of both servers.
func Ranges() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("10.96.0.0/20"), netip.MustParsePrefix("fd00:10:96::/112")}
}

var ranges = Ranges()

// telling is a story on one server.
type telling struct {
	server    Server
	slot      int
	namespace string
	here      *strings.Replacer
	versions  map[string]string
	uids      map[string]string
	dynamic   map[string]string // what the server chose, by itself
	began     string            // the version of the namespace
	asked     map[string]bool   // paths of kinds that the story has asked for
}

func begin(ctx context.Context, server Server, slot int) (*telling, error) {
	made, err := server.send(ctx, "POST /api/v1/namespaces", "", "", []byte(`{"metadata":{"generateName":"differential-"}}`))
	if err != nil {
		return nil, err
	}
	namespace, _ := at(made.object, "metadata.name").(string)
	if made.code != http.StatusCreated || namespace == "" {
		return nil, fmt.Errorf("make a namespace: %d %s", made.code, made.text)
	}
	t := &telling{server: server, slot: slot, namespace: namespace, versions: map[string]string{}, uids: map[string]string{}, dynamic: map[string]string{}, asked: map[string]bool{}}
	t.began, _ = at(made.object, "metadata.resourceVersion").(string)
	texts := []string{"{namespace}", namespace}
	for i := range staticAddresses {
		texts = append(texts, fmt.Sprintf("{address %d}", i), t.address(i))
	}
	for i := range staticPorts {
		number := strconv.Itoa(t.port(i))
		texts = append(texts, fmt.Sprintf(`"{port %d}"`, i), number, fmt.Sprintf(`{port %d}`, i), number)
	}
	for i := range staticRanges {
		texts = append(texts, fmt.Sprintf("{range %d}", i), t.part(i))
	}
	t.here = strings.NewReplacer(texts...)
	return t, nil
}

func (t *telling) address(i int) string {
	return fmt.Sprintf("10.96.0.%d", firstAddress+t.slot*staticAddresses+i)
}

// part is a part of the Service range that no other slot has.
func (t *telling) part(i int) string {
	return []string{fmt.Sprintf("10.96.8.%d/28", t.slot*16), fmt.Sprintf("10.96.9.%d/29", t.slot*16), fmt.Sprintf("fd00:10:96::%x/120", 0x8000+t.slot*0x100)}[i]
}

func (t *telling) port(i int) int { return firstPort + t.slot*staticPorts + i }

// end removes the namespace, and the objects in it: not every server does.
func (t *telling) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	for _, k := range kinds {
		if (k.shared() || k.weight == 0) && !t.asked[k.path] {
			continue
		}
		path := strings.ReplaceAll(k.path, "{namespace}", t.namespace)
		for range 3 { // finalizers hold some
			list, err := t.server.send(ctx, "GET "+path, "", "", nil)
			if err != nil {
				return err
			}
			items, _ := at(list.object, "items").([]any)
			items = slices.DeleteFunc(items, func(item any) bool { return k.shared() && !t.owns(item) })
			if len(items) == 0 {
				break
			}
			for _, item := range items {
				name, _ := at(item, "metadata.name").(string)
				if k.path == cidrsPath { // its finalizer is the controller's
					if at(item, "metadata.deletionTimestamp") == nil {
						if _, err := t.server.send(ctx, "DELETE "+path+"/"+name, "", "", nil); err != nil {
							return err
						}
					}
					continue
				}
				_, err := t.server.send(ctx, "PATCH "+path+"/"+name, mergePatch, "", []byte(`{"metadata":{"finalizers":null}}`))
				if err == nil || unanswered(err) {
					_, err = t.server.send(ctx, "DELETE "+path+"/"+name+"?gracePeriodSeconds=0", "", "", nil)
				}
				if err != nil && !unanswered(err) {
					return err
				}
			}
		}
	}
	_, err := t.server.send(ctx, "DELETE /api/v1/namespaces/"+t.namespace, "", "", nil)
	return err
}

// owns reports whether an object without a namespace is one of the story.
func (t *telling) owns(object any) bool {
	name, _ := at(object, "metadata.name").(string)
	for i := range staticAddresses {
		if name == t.address(i) {
			return true
		}
	}
	return strings.HasPrefix(name, t.namespace+"-")
}

// settled waits until the controller of ServiceCIDRs has seen those of the story, and learns their versions.
func (t *telling) settled(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		list, err := t.server.send(ctx, "GET "+cidrsPath, "", "", nil)
		if err != nil {
			return false, err
		}
		items, _ := at(list.object, "items").([]any)
		for _, item := range items {
			if name, ok := at(item, "metadata.name").(string); ok && t.versions[name] != "" {
				t.versions[name], _ = at(item, "metadata.resourceVersion").(string)
			}
		}
		return !slices.ContainsFunc(items, func(item any) bool {
			conditions, _ := at(item, "status.conditions").([]any)
			finalizers, _ := at(item, "metadata.finalizers").([]any)
			return t.owns(item) && at(item, "metadata.deletionTimestamp") == nil && (len(conditions) == 0 || !slices.Contains(finalizers, cidrFinalizer))
		}), nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return errors.New("the controller of ServiceCIDRs has not followed for 30 s")
	}
	return err
}

// cidrFinalizer is what the controller of ServiceCIDRs adds to them, with their conditions: the reference at once, Kubernetes a little later.
const cidrFinalizer = "networking.k8s.io/service-cidr-finalizer"

// givesAddressUp reports whether a request deletes the IPAddress of a Service. It comes back, on Kubernetes after a while.
func (t *telling) givesAddressUp(ctx context.Context, r Request) (bool, error) {
	method, path, _ := strings.Cut(r.Request, " ")
	if method != http.MethodDelete || !strings.HasPrefix(path, addressesPath+"/") {
		return false, nil
	}
	a, err := t.server.send(ctx, "GET "+t.here.Replace(path), "", "", nil)
	return at(a.object, "metadata.labels") != nil && strings.Contains(shown(at(a.object, "metadata.labels")), "ipallocator.k8s.io"), err
}

// A version or a uid of an object that is not known is none that an object has. What came since such an object came since the story began.
var placeholder = regexp.MustCompile(`\{(version|uid|since) ([\w.:-]+)\}`)

// tell sends a request and returns the answer without what may differ.
func (t *telling) tell(ctx context.Context, r Request) (answered, error) {
	fill := func(text string) string {
		return placeholder.ReplaceAllStringFunc(t.here.Replace(text), func(found string) string {
			m := placeholder.FindStringSubmatch(found)
			known := t.versions
			if m[1] == "uid" {
				known = t.uids
			}
			if v := known[m[2]]; v != "" {
				return v
			}
			return map[string]string{"version": "999999999", "uid": "22222222-2222-2222-2222-222222222222", "since": t.began}[m[1]]
		})
	}
	a, err := t.server.send(ctx, fill(r.Request), r.Type, r.Accept, []byte(fill(r.Body)))
	if unanswered(err) {
		return answered{}, nil
	}
	if err != nil {
		return a, err
	}
	method, path, _ := strings.Cut(r.Request, " ")
	for _, k := range kinds {
		t.asked[k.path] = t.asked[k.path] || strings.HasPrefix(path, k.path)
	}
	written := method != http.MethodGet && strings.HasPrefix(path, cidrsPath)
	if name, ok := at(a.object, "metadata.name").(string); ok && a.code < http.StatusBadRequest {
		if v, ok := at(a.object, "metadata.resourceVersion").(string); ok && v != "" {
			t.versions[name] = v
		}
		if v, ok := at(a.object, "metadata.uid").(string); ok && v != "" {
			t.uids[name] = v
		}
	}
	if written && a.code < http.StatusBadRequest {
		if err := t.settled(ctx); err != nil {
			return a, err
		}
	}
	if a.code < http.StatusBadRequest { // of a refusal, no text is compared
		chosen := t.dynamic
		if strings.Contains(path, "dryRun=All") {
			t.dynamic = maps.Clone(chosen) // what a dry run shows may be chosen later
		}
		a.object = t.normal(a.object)
		t.dynamic = chosen
		if written {
			withoutController(a.object)
		}
	}
	for i := range a.warnings {
		a.warnings[i] = t.plain(a.warnings[i])
	}
	return a, nil
}

// unanswered reports whether a server that goes on gave no answer to this request: its handler has panicked.
func unanswered(err error) bool { return err != nil && strings.Contains(err.Error(), "stream error") }

// changing are fields that two servers never have in common.
var changing = []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink", "remainingItemCount", "continue"}

// normal is a value without what may differ.
func (t *telling) normal(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for _, field := range changing {
			delete(v, field)
		}
		if _, is := v["deletionTimestamp"]; is {
			v["deletionTimestamp"] = "set"
		}
		if finalizers, ok := v["finalizers"].([]any); ok && slices.Contains(finalizers, cidrFinalizer) { // that of the controller comes sooner or later than others
			slices.SortFunc(finalizers, func(a, b any) int { return cmp.Compare(a.(string), b.(string)) })
		}
		if v["type"] == "Ready" && v["lastTransitionTime"] != nil { // of a ServiceCIDR: nobody sends such a condition
			v["lastTransitionTime"] = "set"
		}
		if _, is := v["columnDefinitions"]; is { // texts of a Table
			for _, c := range v["columnDefinitions"].([]any) {
				delete(c.(map[string]any), "description")
			}
		}
		for _, field := range sortedKeys(v) { // in an order, as what was chosen is told apart by it
			v[field] = t.normal(v[field])
		}
	case []any:
		for i := range v {
			v[i] = t.normal(v[i])
		}
	case string:
		return t.plain(v)
	case float64:
		if int(v) >= firstPort && int(v) < noPort {
			return t.plain(strconv.Itoa(int(v)))
		}
	}
	return value
}

var (
	addresses = regexp.MustCompile(`10\.96\.\d+\.\d+|fd00:10:96::[0-9a-f]*|\b3[0-2]\d{3}\b`)
	age       = regexp.MustCompile(`^\d+(ms|s|m)$|^<unknown>$|^<invalid>$`)
)

// withoutController drops what the controller adds to a ServiceCIDR after the answer to a write, or before.
func withoutController(object any) {
	o, _ := object.(map[string]any)
	delete(o, "status")
	metadata, _ := o["metadata"].(map[string]any)
	if finalizers, ok := metadata["finalizers"].([]any); ok {
		if finalizers = slices.DeleteFunc(finalizers, func(f any) bool { return f == cidrFinalizer }); len(finalizers) == 0 {
			delete(metadata, "finalizers")
		} else {
			metadata["finalizers"] = finalizers
		}
	}
}

// plain is a text without the namespace, and with what the server has chosen by the order in which it came.
func (t *telling) plain(text string) string {
	if age.MatchString(text) {
		return "AGE"
	}
	text = strings.ReplaceAll(text, t.namespace, "{namespace}")
	for i := range staticRanges {
		text = strings.ReplaceAll(text, t.part(i), fmt.Sprintf("{range %d}", i))
	}
	return addresses.ReplaceAllStringFunc(text, func(found string) string {
		for i := range staticAddresses {
			if found == t.address(i) {
				return fmt.Sprintf("{address %d}", i)
			}
		}
		if number, err := strconv.Atoi(found); err == nil {
			if number >= noPort {
				return found
			}
			for i := range staticPorts {
				if number == t.port(i) {
					return fmt.Sprintf("{port %d}", i)
				}
			}
		} else if a, err := netip.ParseAddr(found); err != nil || !slices.ContainsFunc(ranges, func(r netip.Prefix) bool { return r.Contains(a) }) || a == netip.MustParseAddr("fd00:10:96::5") {
			return found
		}
		if t.dynamic[found] == "" {
			t.dynamic[found] = fmt.Sprintf("{chosen %d}", len(t.dynamic)+1)
		}
		return t.dynamic[found]
	})
}

// Compare tells a story to both servers, up to the first request whose answers differ and are not tolerated. Tolerated differences come first. An error says that there was no answer.
func (p *Pair) Compare(ctx context.Context, slot int, s Story) ([]Told, error) {
	last := false
	before := func(reference *telling, r Request) (err error) {
		last, err = reference.givesAddressUp(ctx, r)
		return err
	}
	return p.tell(ctx, slot, s, before, func(told *both) (found []Told, ends bool, err error) {
		for _, d := range apart(told.want, told.got) {
			d.Request = told.request
			if t := toleranceOf(&d); t != nil {
				d.Tolerated = t.Name
				ends = ends || t.Ends
			} else {
				ends = true
			}
			found = append(found, d)
		}
		return found, ends || last, nil
	})
}

// both is a request that both servers have answered.
type both struct {
	reference, other *telling
	request          Request
	want, got        answered
}

// tell sends a story to both servers, one request after the other, until after says that it ends. Before, if set, is called before each request.
func (p *Pair) tell(ctx context.Context, slot int, s Story, before func(*telling, Request) error, after func(*both) (found []Told, ends bool, err error)) (found []Told, err error) {
	reference, err := begin(ctx, p.Reference, slot)
	if err != nil {
		return nil, err
	}
	defer func() { err = cmp.Or(err, reference.end(ctx)) }()
	other, err := begin(ctx, p.Real, slot)
	if err != nil {
		return nil, fmt.Errorf("the real API server gives no answer: %w", err)
	}
	defer func() {
		if ended := other.end(ctx); err == nil && ended != nil {
			err = fmt.Errorf("the real API server gives no answer: %w", ended)
		}
	}()
	for i, r := range s.Steps {
		p.Requests.Add(1)
		if before != nil {
			if err := before(reference, r); err != nil {
				return found, fmt.Errorf("request %d to the reference: %w", i+1, err)
			}
		}
		want, err := reference.tell(ctx, r)
		if err != nil {
			return found, fmt.Errorf("request %d to the reference: %w", i+1, err)
		}
		got, err := other.tell(ctx, r)
		if err != nil {
			return found, fmt.Errorf("request %d: the real API server gives no answer: %w", i+1, err)
		}
		differences, ends, err := after(&both{reference, other, r, want, got})
		if err != nil {
			return found, fmt.Errorf("request %d: %w", i+1, err)
		}
		for _, d := range differences {
			d.Step = i
			found = append(found, d)
		}
		if ends {
			return found, nil
		}
	}
	return found, nil
}

// apart says what differs between two answers.
func apart(want, got answered) (found []Told) {
	differs := func(what string, want, got any) {
		found = append(found, Told{What: what, Reference: shown(want), Real: shown(got)})
	}
	if want.code != got.code {
		said := func(code int) any {
			if code == 0 {
				return "no answer"
			}
			return code
		}
		differs("code", said(want.code), said(got.code))
		return found
	}
	if warnings, others := inOrder(want.warnings, nil), inOrder(got.warnings, nil); !slices.Equal(warnings, others) {
		differs("warnings", warnings, others)
	}
	if want.code >= http.StatusBadRequest {
		if a, b := at(want.object, "reason"), at(got.object, "reason"); !reflect.DeepEqual(a, b) {
			differs("reason", a, b)
		}
		a, b := slices.Compact(causesOf(want.object)), slices.Compact(causesOf(got.object))
		both := func(field string) bool { return slices.Contains(a, field) && slices.Contains(b, field) }
		if a, b := slices.DeleteFunc(slices.Clone(a), both), slices.DeleteFunc(slices.Clone(b), both); len(a)+len(b) > 0 {
			differs("causes", a, b)
		}
		return found
	}
	for _, path := range paths("", want.object, got.object) {
		differs(path, at(want.object, path), at(got.object, path))
	}
	return found
}

// paths are where two values differ.
func paths(prefix string, a, b any) (out []string) {
	if reflect.DeepEqual(a, b) {
		return nil
	}
	join := func(part string) string { return strings.TrimPrefix(prefix+"."+part, ".") }
	x, ok := a.(map[string]any)
	y, also := b.(map[string]any)
	if ok && also {
		for _, key := range sortedKeys(x) {
			out = append(out, paths(join(key), x[key], y[key])...)
		}
		for _, key := range sortedKeys(y) {
			if _, known := x[key]; !known {
				out = append(out, paths(join(key), nil, y[key])...)
			}
		}
		return out
	}
	l, ok := a.([]any)
	m, also := b.([]any)
	if ok && also && len(l) == len(m) {
		for i := range l {
			out = append(out, paths(join(strconv.Itoa(i)), l[i], m[i])...)
		}
		return out
	}
	if prefix == "" {
		prefix = "body"
	}
	return []string{prefix}
}

// Shrink returns the shortest story that it finds which still differs in the same way, and what differs then.
func (p *Pair) Shrink(ctx context.Context, slot int, s Story, d Told) (Story, Told, error) {
	return p.shrink(ctx, slot, s, d, p.Compare)
}

func (p *Pair) shrink(ctx context.Context, slot int, s Story, d Told, compare func(context.Context, int, Story) ([]Told, error)) (Story, Told, error) {
	s = Story{s.Steps[:d.Step+1]}.clone()
	try := func(smaller Story) bool {
		found, err := compare(ctx, slot, smaller)
		if err != nil {
			return false // what cannot be sent is no smaller story
		}
		i := slices.IndexFunc(found, func(f Told) bool { return f.Class() == d.Class() && f.Tolerated == "" })
		if i >= 0 {
			s, d = Story{smaller.Steps[:found[i].Step+1]}, found[i]
		}
		return i >= 0
	}
	for smaller := true; smaller && ctx.Err() == nil; {
		smaller = false
		for i := len(s.Steps) - 2; i >= 0 && ctx.Err() == nil; i-- {
			if i < len(s.Steps)-1 {
				smaller = try(Story{slices.Delete(slices.Clone(s.Steps), i, i+1)}) || smaller
			}
		}
		for i := 0; i < len(s.Steps) && ctx.Err() == nil; i++ {
			for _, body := range simpler(s.Steps[i].Body) {
				c := s.clone()
				c.Steps[i].Body = body
				if try(c) {
					smaller = true
					break
				}
			}
		}
	}
	return s, d, nil
}

// simpler are bodies with one field less.
func simpler(body string) (out []string) {
	var object any
	if json.Unmarshal([]byte(body), &object) != nil {
		return nil
	}
	var without func(value any, rebuilt func(any) any)
	without = func(value any, rebuilt func(any) any) {
		switch v := value.(type) {
		case map[string]any:
			for _, key := range sortedKeys(v) {
				less := map[string]any{}
				for k, of := range v {
					if k != key {
						less[k] = of
					}
				}
				out = append(out, shown(rebuilt(less)))
				without(v[key], func(inner any) any {
					more := maps.Clone(less)
					more[key] = inner
					return rebuilt(more)
				})
			}
		case []any:
			for i := range v {
				out = append(out, shown(rebuilt(slices.Delete(slices.Clone(v), i, i+1))))
				without(v[i], func(inner any) any {
					more := slices.Clone(v)
					more[i] = inner
					return rebuilt(more)
				})
			}
		}
	}
	without(object, func(v any) any { return v })
	return out
}
