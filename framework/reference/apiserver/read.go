package apiserver

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"sort"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	internalversionvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// get handles GET on an object or its status.
func (rq *request) get() error {
	options := &metav1.GetOptions{}
	if err := rq.query(options); err != nil {
		return err
	}
	e := rq.server.store.get(rq.resource, rq.namespace, rq.name)
	if err := rq.fresh(options.ResourceVersion); err != nil {
		return err
	}
	if e == nil {
		return storeError(errNotFound, rq.resource, rq.namespace, rq.name)
	}
	rq.answer(http.StatusOK, e.view)
	return nil
}

// versionRead reads the resource version that a client names.
var versionRead = rule.New("resource-version-read", parseResourceVersion, spec.APIResourceVersionClientError)

// parseResourceVersion reads a resource version from a client; empty is 0.
func parseResourceVersion(v string) (uint64, error) {
	if v == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("Invalid value: %q: resourceVersion must be a non-negative integer", v))
	}
	return n, nil
}

// fresh refuses to answer a client that has seen a later state than there is.
func (rq *request) fresh(version string) error {
	v, err := rq.book.versionRead.Do(version)
	if err != nil {
		return err
	}
	if v > rq.server.store.current() {
		return storeError(errFutureVersion, rq.resource, rq.namespace, rq.name)
	}
	return nil
}

// listOptions decodes and validates the parameters of list, watch and deletecollection.
func (rq *request) listOptions(options *internalversion.ListOptions) error {
	if err := rq.query(options); err != nil {
		return err
	}
	if errs := internalversionvalidation.ValidateListOptions(options, true); len(errs) > 0 {
		return invalidOptions("ListOptions", errs)
	}
	if options.Limit < 0 {
		options.Limit = 0
	}
	return nil
}

// matcher makes the filter of a list or a watch from its selectors.
func (rq *request) matcher(options *internalversion.ListOptions) (func(object) bool, error) {
	labelSelector, fieldSelector := options.LabelSelector, options.FieldSelector
	if rq.name != "" { // the deprecated watch on one object
		byName := fields.OneTermEqualSelector("metadata.name", rq.name)
		if fieldSelector == nil {
			fieldSelector = byName
		} else {
			fieldSelector = fields.AndSelectors(byName, fieldSelector)
		}
	}
	if fieldSelector == nil || fieldSelector.Empty() {
		fieldSelector = nil
	} else {
		var err error
		if fieldSelector, err = rq.book.fieldsSelectable.Do(rq.resource, fieldSelector); err != nil {
			return nil, err
		}
	}
	if labelSelector != nil && labelSelector.Empty() {
		labelSelector = nil
	}
	return func(obj object) bool {
		return (labelSelector == nil || labelSelector.Matches(labels.Set(obj.GetLabels()))) &&
			(fieldSelector == nil || fieldSelector.Matches(rq.resource.fieldSet(obj)))
	}, nil
}

// Rules for lists.
var (
	fieldsSelectable = rule.New("fields-selectable", func(res *resource, selector fields.Selector) (fields.Selector, error) {
		for _, requirement := range selector.Requirements() {
			if !res.selectable(requirement.Field) {
				return nil, apierrors.NewBadRequest("field label not supported: " + requirement.Field)
			}
		}
		return selector, nil
	}, spec.APIListFields, spec.APIListFieldsUnsupported)

	listNamespace = rule.New("list-namespace", func(rq *request) string { return rq.namespace }, spec.APIListNamespace)

	listSelected = rule.New("list-selected", (*request).matcher, spec.APIListLabels, spec.APIListFields)

	listContinued = rule.New("list-continued", (*request).resume, spec.APIListChunks, spec.APIListContinueInvalid)
)

// list handles GET on a collection.
func (rq *request) list() error {
	options := &internalversion.ListOptions{}
	if err := rq.listOptions(options); err != nil {
		return err
	}
	match, err := rq.book.listSelected.Do(rq, options)
	if err != nil {
		return err
	}
	entries, meta, err := rq.listed(options, match, rq.book.listNamespace.Do(rq))
	if err != nil {
		return err
	}
	objs := make([]object, len(entries))
	for i, e := range entries {
		objs[i] = e.view
	}
	rq.answer(http.StatusOK, rq.resource.newList(meta, objs))
	return nil
}

// listed returns the part of a list that the options ask for.
func (rq *request) listed(options *internalversion.ListOptions, match func(object) bool, namespace string) (listed []*entry, meta metav1.ListMeta, err error) {
	entries, version, after := []*entry(nil), uint64(0), ""
	if options.Continue != "" {
		if options.ResourceVersion != "" && options.ResourceVersion != "0" {
			return nil, meta, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
		}
		if entries, version, after, err = rq.book.listContinued.Do(rq, options.Continue); err != nil {
			return nil, meta, err
		}
	} else {
		if err := rq.fresh(options.ResourceVersion); err != nil {
			return nil, meta, err
		}
		entries, version = rq.server.store.list(rq.resource, "")
		if wantsExactly(options) && options.ResourceVersion != strconv.FormatUint(version, 10) {
			// Only the present state is kept: as after a compaction of the storage.
			return nil, meta, apierrors.NewResourceExpired("The provided resource version is too old: only the latest state can be listed")
		}
	}
	all := entries
	entries = inNamespace(entries, rq.resource, namespace)
	entries = entries[sort.Search(len(entries), func(i int) bool { return entries[i].key > after }):]
	selective := options.LabelSelector != nil && !options.LabelSelector.Empty() || options.FieldSelector != nil && !options.FieldSelector.Empty()

	meta.ResourceVersion = strconv.FormatUint(version, 10)
	listed = make([]*entry, 0, min(len(entries), 1024))
	for i, e := range entries {
		if !match(e.view) {
			continue
		}
		listed = append(listed, e)
		if rest := len(entries) - i - 1; options.Limit > 0 && int64(len(listed)) == options.Limit && rest > 0 {
			meta.Continue = rq.server.snapshots.token(rq.resource, version, all, e.key)
			if !selective {
				remaining := int64(rest)
				meta.RemainingItemCount = &remaining
			}
			break
		}
	}
	return listed, meta, nil
}

// wantsExactly reports whether a list is to be that of its resource version, and of no newer one. A list in parts is, if it does not say what it wants
// (https://kubernetes.io/docs/reference/using-api/api-concepts/, semantics for get and list).
func wantsExactly(options *internalversion.ListOptions) bool {
	inParts := options.Limit > 0 && options.ResourceVersion != "" && options.ResourceVersion != "0"
	return options.ResourceVersionMatch == metav1.ResourceVersionMatchExact || options.ResourceVersionMatch == "" && inParts
}

// continueToken is what a client sends back for the next part of a list.
type continueToken struct {
	Version uint64 `json:"rv"`
	After   string `json:"start"`
}

// snapshots keeps the states that partial lists were begun on, so that all parts of a list come from one state. The lists
// themselves are shared with the store and cost nothing; what is kept alive are objects that have changed since.
type snapshots struct {
	mu    sync.Mutex
	kept  [16]snapshot
	count int
}

type snapshot struct {
	resource *resource
	version  uint64
	entries  []*entry
}

// token returns the token for the part after a key, and keeps the state if it is not kept yet. The oldest one makes room.
func (s *snapshots) token(r *resource, version uint64, entries []*entry, after string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.find(r, version) == nil {
		s.kept[s.count%len(s.kept)] = snapshot{resource: r, version: version, entries: entries}
		s.count++
	}
	data, err := json.Marshal(continueToken{Version: version, After: after})
	if err != nil { // a struct of a number and a string always encodes
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

// find returns the kept state of a version, nil if it is no longer kept.
func (s *snapshots) find(r *resource, version uint64) []*entry {
	for _, k := range s.kept {
		if k.resource == r && k.version == version {
			return k.entries
		}
	}
	return nil
}

// parseContinueToken reads a continue token.
func parseContinueToken(text string) (token continueToken, err error) {
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(data, &token)
	}
	if err != nil || token.Version == 0 || token.After == "" {
		return token, apierrors.NewBadRequest("continue key is not valid: use the one that the list answered with")
	}
	return token, nil
}

// resume returns the state that a list was begun on, and where it goes on.
func (rq *request) resume(text string) (entries []*entry, version uint64, after string, err error) {
	token, err := parseContinueToken(text)
	if err != nil {
		return nil, 0, "", err
	}
	s := rq.server.snapshots
	s.mu.Lock()
	defer s.mu.Unlock()
	if entries = s.find(rq.resource, token.Version); entries == nil {
		return nil, 0, "", apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. " +
			"You must start a new list without the continue parameter.")
	}
	return entries, token.Version, token.After, nil
}
