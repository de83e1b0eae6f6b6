package allocation

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
	"github.com/service-conformance/conformance/internal/history"
)

// object is an event of an IPAddress object.
type object struct {
	at   time.Duration
	kind watch.EventType
	ip   *networkingv1.IPAddress
}

// watchObjects follows the IPAddress objects, where there are any.
func (s *story) watchObjects(ctx context.Context) {
	ginkgo.GinkgoHelper()
	last := s.servers[len(s.servers)-1] // which stays
	if !last.Has(spec.ServiceCIDRAPI) {
		return
	}
	events, err := last.Client().NetworkingV1().IPAddresses().Watch(ctx, metav1.ListOptions{})
	check.Must(err)
	ginkgo.DeferCleanup(events.Stop)
	s.watched, s.another = true, make(chan struct{}, 1)
	go func() {
		defer close(s.another)
		for e := range events.ResultChan() {
			ip, isAddress := e.Object.(*networkingv1.IPAddress)
			if !isAddress {
				continue
			}
			s.mu.Lock()
			s.objects = append(s.objects, object{s.now(), e.Type, ip})
			s.mu.Unlock()
			select {
			case s.another <- struct{}{}:
			default:
			}
		}
	}()
}

// recordObjects records what became of the IPAddress objects of an address.
func (s *story) recordObjects(ip string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var said []string
	for _, o := range s.objects {
		if o.ip.Name == ip {
			parent := "nobody"
			if o.ip.Spec.ParentRef != nil {
				parent = o.ip.Spec.ParentRef.Name
			}
			said = append(said, fmt.Sprintf("%s %s for %s", moment(o.at), strings.ToLower(string(o.kind)), parent))
		}
	}
	if len(said) > 0 {
		check.Record("IPAddress "+ip, "%s", strings.Join(said, ", "))
	}
}

// takenAgain are the addresses that were given back and then taken once more for a Service that is gone, see AddressObject. The object of a Service is another one
// than the object that stood for it before.
func (s *story) takenAgain(ctx context.Context) (again []string) {
	ginkgo.GinkgoHelper()
	if !s.watched {
		return nil
	}
	last := s.servers[len(s.servers)-1]
	now, err := last.Client().NetworkingV1().IPAddresses().List(ctx, metav1.ListOptions{})
	check.Must(err)
	left := map[string]*networkingv1.IPAddress{}
	for i := range now.Items {
		if ip := &now.Items[i]; s.history.Initially[ip.Name] == history.Free && s.named(ip.Name) {
			left[ip.Name] = ip
		}
	}
	if len(left) == 0 {
		return nil
	}
	check.Record("addresses that no Service has", "%d at the end", len(left))
	look := func() (again []string, all bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		seen := map[string]bool{}
		for _, o := range s.objects {
			now := left[o.ip.Name]
			switch {
			case now == nil:
			case o.ip.UID == now.UID:
				seen[now.Name] = true
			case o.kind == watch.Deleted && reflect.DeepEqual(o.ip.Spec.ParentRef, now.Spec.ParentRef) && !slices.Contains(again, now.Name):
				again = append(again, now.Name)
			}
		}
		return again, len(seen) == len(left)
	}
	for {
		again, all := look()
		if all {
			return again
		}
		select {
		case _, open := <-s.another:
			if !open {
				again, _ = look()
				return again
			}
		case <-ctx.Done():
			return again
		}
	}
}
