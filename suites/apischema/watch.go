package apischema

import (
	"context"
	"fmt"
	"time"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// watchDelay bounds how long an event may take to be delivered.
const watchDelay = 10 * time.Second

// watcher reads the events of the Services of the check's namespace, one by one.
type watcher struct {
	ctx    context.Context
	events <-chan watch.Event
}

// watchFrom begins a watch, which ends with the check.
func watchFrom(ctx context.Context, cp *check.ControlPlane, options metav1.ListOptions) *watcher {
	ginkgo.GinkgoHelper()
	w, err := cp.Client().CoreV1().Services(cp.Namespace()).Watch(ctx, options)
	check.Must(err)
	ginkgo.DeferCleanup(w.Stop)
	return &watcher{ctx: ctx, events: w.ResultChan()}
}

// next waits for the next event and demands that it is of this kind and Service.
func (w *watcher) next(kind watch.EventType, name string) *corev1.Service {
	ginkgo.GinkgoHelper()
	select {
	case e, open := <-w.events:
		Expect(open).To(BeTrue(), "the watch goes on until %s %s", kind, name)
		svc, ok := e.Object.(*corev1.Service)
		Expect(ok).To(BeTrue(), "the next event is %s %s, not %s with %v", kind, name, e.Type, e.Object)
		Expect(string(e.Type)+" "+svc.Name).To(Equal(string(kind)+" "+name), "the next event")
		return svc
	case <-time.After(watchDelay):
		ginkgo.Fail(fmt.Sprintf("the watch did not deliver %s %s within %s", kind, name, watchDelay))
	case <-w.ctx.Done():
		check.Abort("%v", context.Cause(w.ctx))
	}
	return nil
}

var _ = ginkgo.Describe("a watch", func() {
	check.It(spec.APIWatchEvents, "delivers each create, change and deletion in order",
		func(ctx context.Context, cp *check.ControlPlane) {
			before := cp.Arrange(ctx, check.Service("before"))
			w := watchFrom(ctx, cp, metav1.ListOptions{ResourceVersion: before.ResourceVersion})
			created := cp.Arrange(ctx, check.Service("watched"))
			changed := cp.MergePatch(ctx, "watched", `{"spec":{"selector":{"app":"changed"}}}`)
			Expect(changed).To(check.BeAccepted())
			Expect(cp.PatchStatus(ctx, "watched", `{"metadata":{"labels":{"a":"b"}}}`)).To(check.BeAccepted())
			Expect(cp.Delete(ctx, "before")).To(check.BeAccepted())
			Expect(cp.Delete(ctx, "watched")).To(check.BeAccepted())

			seen := w.next(watch.Added, "watched")
			Expect(seen.Spec).To(Equal(created.Spec))
			Expect(seen.ResourceVersion).To(Equal(created.ResourceVersion))
			seen = w.next(watch.Modified, "watched")
			Expect(seen.Spec.Selector).To(HaveKeyWithValue("app", "changed"))
			Expect(seen.ResourceVersion).To(Equal(changed.Service.ResourceVersion))
			Expect(seen.Labels).NotTo(HaveKey("a"), "the object of that moment")
			Expect(w.next(watch.Modified, "watched").Labels).To(HaveKey("a"))
			w.next(watch.Deleted, "before")
			seen = w.next(watch.Deleted, "watched")
			Expect(seen.UID).To(Equal(created.UID))
			Expect(seen.Labels).To(HaveKey("a"), "the last state")
		})

	check.It(spec.APIWatchFromVersion, "delivers exactly the changes after a resourceVersion",
		func(ctx context.Context, cp *check.ControlPlane) {
			cp.Arrange(ctx, check.Service("first"))
			second := cp.Arrange(ctx, check.Service("second"))
			cp.Arrange(ctx, check.Service("third"))
			Expect(cp.MergePatch(ctx, "first", `{"metadata":{"labels":{"a":"b"}}}`)).To(check.BeAccepted())
			w := watchFrom(ctx, cp, metav1.ListOptions{ResourceVersion: second.ResourceVersion})
			w.next(watch.Added, "third")
			w.next(watch.Modified, "first")
			cp.Arrange(ctx, check.Service("fourth"))
			w.next(watch.Added, "fourth")
		})

	check.It(spec.APIWatchInitial, "begins with what there is",
		func(ctx context.Context, cp *check.ControlPlane) {
			svc := cp.Arrange(ctx, check.Service("there"))
			w := watchFrom(ctx, cp, metav1.ListOptions{})
			Expect(cp.Delete(ctx, "there")).To(check.BeAccepted())
			Expect(w.next(watch.Added, "there").Spec).To(Equal(svc.Spec))
			w.next(watch.Deleted, "there")
		})

	check.It(spec.APIWatchSelector, "delivers what comes to match its selector and what ceases to",
		func(ctx context.Context, cp *check.ControlPlane) {
			cp.Arrange(ctx, check.Service("other", metadataLabelled("team", "red")))
			svc := cp.Arrange(ctx, check.Service("watched", metadataLabelled("team", "red")))
			w := watchFrom(ctx, cp, metav1.ListOptions{ResourceVersion: svc.ResourceVersion, LabelSelector: "team=blue"})
			for _, team := range []string{"blue", "red"} {
				Expect(cp.MergePatch(ctx, "other", `{"metadata":{"annotations":{"team":"`+team+`"}}}`)).To(check.BeAccepted(), "a change that no selector sees")
				Expect(cp.MergePatch(ctx, "watched", `{"metadata":{"labels":{"team":"`+team+`"}}}`)).To(check.BeAccepted())
			}
			cp.Arrange(ctx, check.Service("last", metadataLabelled("team", "blue")))
			w.next(watch.Added, "watched")
			w.next(watch.Deleted, "watched")
			w.next(watch.Added, "last")
		})
})
