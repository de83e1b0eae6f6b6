package apiserver

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

// What can be wrong with lists.
var listFaults = []requestWrong{
	{fault.ListEverywhere, func(b *requestBook) { b.listNamespace.Off() }},
	{fault.ListDefaultOnly, func(b *requestBook) {
		b.listNamespace.Wrap(func(right func(*request) string) func(*request) string {
			return func(rq *request) string { return cmp.Or(right(rq), metav1.NamespaceDefault) }
		})
	}},
	{fault.ListLabelsIgnored, func(b *requestBook) {
		b.listSelected.Wrap(selectedBy(func(options *internalversion.ListOptions) { options.LabelSelector = nil }))
	}},
	{fault.ListFieldsIgnored, func(b *requestBook) {
		b.listSelected.Wrap(selectedBy(func(options *internalversion.ListOptions) { options.FieldSelector = nil }))
	}},
	{fault.ListFieldsTolerated, func(b *requestBook) {
		b.fieldsSelectable.Wrap(func(right selecting) selecting {
			return func(res *resource, selector fields.Selector) (fields.Selector, error) {
				selector, err := right(res, selector)
				if err != nil {
					return nil, nil
				}
				return selector, nil
			}
		})
	}},
	{fault.ContinueLatest, func(b *requestBook) {
		b.listContinued.Wrap(func(right continuing) continuing {
			return func(rq *request, token string) (entries []*entry, version uint64, after string, err error) {
				if _, version, after, err = right(rq, token); err != nil {
					return nil, 0, "", err
				}
				entries, _ = rq.server.store.list(rq.resource, "")
				return entries, version, after, nil
			}
		})
	}},
	{fault.ContinueRestarts, func(b *requestBook) {
		b.listContinued.Wrap(func(right continuing) continuing {
			return func(rq *request, token string) (entries []*entry, version uint64, after string, err error) {
				if _, err := parseContinueToken(token); err != nil {
					entries, version = rq.server.store.list(rq.resource, "")
					return entries, version, "", nil
				}
				return right(rq, token)
			}
		})
	}},
}

// selectedBy wraps a matching rule: other selectors are asked for.
func selectedBy(change func(*internalversion.ListOptions)) func(matching) matching {
	return func(right matching) matching {
		return func(rq *request, options *internalversion.ListOptions) (func(object) bool, error) {
			change(options)
			return right(rq, options)
		}
	}
}

// What can be wrong with watches.
var watchFaults = []requestWrong{
	{fault.WatchWithoutInitial, func(b *requestBook) { b.watchBeginsWithAll.Off() }},
	{fault.WatchRepeats, func(b *requestBook) {
		b.watchFromVersion.Wrap(func(right func(*store, *resource, uint64) (uint64, error)) func(*store, *resource, uint64) (uint64, error) {
			return func(s *store, res *resource, version uint64) (uint64, error) {
				return right(s, res, version-min(version, 1))
			}
		})
	}},
	{fault.WatchSelectorOfAdded, func(b *requestBook) {
		b.changeSeen.Wrap(func(right noticing) noticing {
			return func(e *event, was, is bool) (watch.EventType, object) {
				if was && !is && e.kind != watch.Deleted {
					return watch.Modified, e.object
				}
				return right(e, was, is)
			}
		})
	}},
	{fault.WatchAllAdded, func(b *requestBook) {
		b.changeSeen.Wrap(func(right noticing) noticing {
			return func(e *event, was, is bool) (watch.EventType, object) {
				_, obj := right(e, was, is)
				return watch.Added, obj
			}
		})
	}},
}
