package apiserver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// next returns the next event as "TYPE name".
func next(t *testing.T, w watch.Interface) string {
	t.Helper()
	e, open := <-w.ResultChan()
	if !open {
		return "closed"
	}
	switch o := e.Object.(type) {
	case *corev1.Service:
		return fmt.Sprintf("%s %s", e.Type, o.Name)
	case *metav1.Status:
		return fmt.Sprintf("%s %d", e.Type, o.Code)
	}
	return fmt.Sprintf("%s %T", e.Type, e.Object)
}

func TestWatchSeesEveryChangeInOrder(t *testing.T) {
	eachEncoding(t, func(t *testing.T, contentType string) {
		g, ctx := NewWithT(t), t.Context()
		services := clientFor(t, startServer(t, Options{}), contentType).CoreV1().Services("default")
		w, err := services.Watch(ctx, metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		defer w.Stop()
		g.Expect(next(t, w)).To(Equal("ADDED kubernetes"))
		created, err := services.Create(ctx, newService("a"), metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		e := <-w.ResultChan()
		g.Expect(e.Type).To(Equal(watch.Added))
		g.Expect(e.Object.(*corev1.Service).Spec).To(Equal(created.Spec))
		_, err = services.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"x":"y"}}}`), metav1.PatchOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(next(t, w)).To(Equal("MODIFIED a"))
		g.Expect(services.Delete(ctx, "a", metav1.DeleteOptions{})).To(Succeed())
		g.Expect(next(t, w)).To(Equal("DELETED a"))

		replay, err := services.Watch(ctx, metav1.ListOptions{ResourceVersion: created.ResourceVersion})
		g.Expect(err).NotTo(HaveOccurred())
		defer replay.Stop()
		g.Expect(next(t, replay)).To(Equal("MODIFIED a"))
		g.Expect(next(t, replay)).To(Equal("DELETED a"))
	})
}

func TestWatchWithSelectorSeesObjectsComeAndGo(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	c := clientFor(t, startServer(t, Options{}), mediaJSON)
	w, err := c.CoreV1().Services(metav1.NamespaceAll).Watch(ctx, metav1.ListOptions{LabelSelector: "in=yes"})
	g.Expect(err).NotTo(HaveOccurred())
	defer w.Stop()
	services := c.CoreV1().Services("default")
	label := func(v string) {
		_, err := services.Patch(ctx, "a", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"in":%q}}}`, v), metav1.PatchOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	}
	_, err = services.Create(ctx, newService("a"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	label("yes")
	label("no")
	label("yes")
	g.Expect(services.Delete(ctx, "a", metav1.DeleteOptions{})).To(Succeed())
	for _, want := range []string{"ADDED a", "DELETED a", "ADDED a", "DELETED a"} {
		g.Expect(next(t, w)).To(Equal(want))
	}
}

func TestWatchListEndsTheInitialEventsWithABookmark(t *testing.T) {
	eachEncoding(t, func(t *testing.T, contentType string) {
		g, ctx := NewWithT(t), t.Context()
		services := clientFor(t, startServer(t, Options{}), contentType).CoreV1().Services("default")
		w, err := services.Watch(ctx, metav1.ListOptions{
			SendInitialEvents: new(true), AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		})
		g.Expect(err).NotTo(HaveOccurred())
		defer w.Stop()
		g.Expect(next(t, w)).To(Equal("ADDED kubernetes"))
		e := <-w.ResultChan()
		g.Expect(e.Type).To(Equal(watch.Bookmark))
		g.Expect(e.Object.(*corev1.Service).Annotations).To(HaveKeyWithValue(metav1.InitialEventsAnnotationKey, "true"))
		g.Expect(e.Object.(*corev1.Service).ResourceVersion).NotTo(BeEmpty())
	})
}

func TestWatchEndsInTimeWithABookmark(t *testing.T) {
	g := NewWithT(t)
	services := clientFor(t, startServer(t, Options{}), mediaJSON).CoreV1().Services("default")
	w, err := services.Watch(t.Context(), metav1.ListOptions{TimeoutSeconds: new(int64(1)), AllowWatchBookmarks: true, ResourceVersion: "1"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(next(t, w)).To(Equal("ADDED kubernetes"))
	g.Expect((<-w.ResultChan()).Type).To(Equal(watch.Bookmark))
	g.Expect(next(t, w)).To(Equal("closed"))
}

func TestWatchFromTooLongAgoIsGone(t *testing.T) {
	g, ctx := NewWithT(t), context.Background()
	s := startServer(t, Options{})
	for i := range 2*keptEvents + 1 { // straight into the store: this is about the log, not about requests
		node := s.empty(nodes)
		node.SetName(fmt.Sprintf("n%d", i%8))
		if old := s.store.get(nodes, "", node.GetName()); old != nil {
			_, err := s.store.update(nodes, old, node, s.viewer(nodes), nil)
			g.Expect(err).NotTo(HaveOccurred())
			continue
		}
		_, err := s.store.create(nodes, node, s.viewer(nodes), nil)
		g.Expect(err).NotTo(HaveOccurred())
	}
	w, err := clientFor(t, s, mediaJSON).CoreV1().Nodes().Watch(ctx, metav1.ListOptions{ResourceVersion: "1"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(next(t, w)).To(Equal("ERROR 410"))
	g.Expect(next(t, w)).To(Equal("closed"))
	w, err = clientFor(t, s, mediaJSON).CoreV1().Nodes().Watch(ctx, metav1.ListOptions{ResourceVersion: fmt.Sprint(s.store.current() - keptEvents)})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect((<-w.ResultChan()).Type).To(Equal(watch.Modified))
	w.Stop()
}

func TestWatchAsTableNamesTheColumnsOnce(t *testing.T) {
	g := NewWithT(t)
	s := startServer(t, Options{})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+"/api/v1/watch/namespaces", nil)
	g.Expect(err).NotTo(HaveOccurred())
	r.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	resp, err := http.DefaultClient.Do(r)
	g.Expect(err).NotTo(HaveOccurred())
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for i := range 4 {
		g.Expect(lines.Scan()).To(BeTrue())
		var e struct {
			Type   string
			Object metav1.Table
		}
		g.Expect(json.Unmarshal(lines.Bytes(), &e)).To(Succeed())
		g.Expect(e.Object.Rows).To(HaveLen(1))
		g.Expect(e.Object.ColumnDefinitions).To(HaveLen(map[bool]int{true: 3, false: 0}[i == 0]))
	}
}
