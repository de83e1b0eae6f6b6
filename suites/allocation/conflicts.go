package allocation

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// racers is how many clients want the same address at a time.
const racers = 32

var _ = ginkgo.Describe("conflicts", func() {
	check.It(spec.AllocDuplicateRefused, "refuses the address of a Service that named it, in the same and in another namespace",
		func(ctx context.Context, cp *check.ControlPlane) {
			first := createOnChosen(ctx, cp, primaryRange(cp))
			refuseTaken(ctx, cp, first.Spec.ClusterIP)
			refuseTaken(ctx, cp, first.Spec.ClusterIP, check.InNamespace(cp.NewNamespace(ctx)))
		})

	check.It(spec.AllocDuplicateRefused, "refuses the address of a Service that was given it, in the same and in another namespace",
		func(ctx context.Context, cp *check.ControlPlane) {
			first := cp.Arrange(ctx, check.Service("first"))
			refuseTaken(ctx, cp, first.Spec.ClusterIP)
			refuseTaken(ctx, cp, first.Spec.ClusterIP, check.InNamespace(cp.NewNamespace(ctx)))
		})

	check.It(spec.AllocDuplicateRefused, "refuses the address in use whatever the type",
		func(ctx context.Context, cp *check.ControlPlane) {
			first := cp.Arrange(ctx, check.Service("first"))
			for _, t := range []corev1.ServiceType{corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer} {
				refuseTaken(ctx, cp, first.Spec.ClusterIP, check.OfType(t))
			}
		})

	check.It(spec.AllocFirstAddressKubernetes, "gives the Service kubernetes the first address, which nobody else gets",
		func(ctx context.Context, cp *check.ControlPlane) {
			first := check.BandsOf(primaryRange(cp)).First.String()
			own, err := cp.Client().CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
			check.Must(err)
			Expect(own.Spec.ClusterIP).To(Equal(first))
			refuseTaken(ctx, cp, first)
		})

	check.It(spec.AllocUnique, "tells addresses apart by value, not by spelling", check.DualStack(),
		func(ctx context.Context, cp *check.ControlPlane) {
			ipv6 := check.WithFamilies(corev1.IPv6Protocol)
			first := createOnChosen(ctx, cp, cp.CIDROf(corev1.IPv6Protocol), ipv6)
			addr := netip.MustParseAddr(first.Spec.ClusterIP)
			for _, spelling := range []string{addr.StringExpanded(), strings.ToUpper(addr.String())} {
				refuseTaken(ctx, cp, spelling, ipv6)
			}
		})

	check.It(spec.AllocUnique, "keeps addresses unique while Services of two namespaces come, go and change",
		func(ctx context.Context, cp *check.ControlPlane) {
			keepUnique(ctx, cp, []string{cp.Namespace(), cp.NewNamespace(ctx)})
		})

	check.It(spec.AllocConcurrentStatic, "gives an address that 32 clients name at a time to one of them",
		func(ctx context.Context, cp *check.ControlPlane) {
			var answers []check.Response
			ip, _ := onFreeAddress(ctx, cp, func(ip string) check.Response {
				answers = race(ctx, cp, func(int) *corev1.Service { return check.Service(cp.Name("racer"), check.WithClusterIP(ip)) })
				return answers[max(0, slices.IndexFunc(answers, check.Response.Accepted))]
			})
			Expect(oneWon(answers, check.BeRefused()).Spec.ClusterIP).To(Equal(ip))
		})

	check.It(spec.AllocConcurrentLastAddress, "gives the last free address to one of 32 clients that name none", check.Exclusive(), check.OnServiceCIDR("10.96.0.0/29"),
		func(ctx context.Context, cp *check.ControlPlane) {
			left := takeAllButOne(ctx, cp)
			winner := oneWins(ctx, cp, func(int) *corev1.Service { return check.Service(cp.Name("racer")) }, check.BeExhausted())
			Expect(winner.Spec.ClusterIP).To(Equal(left))
		})

	check.It(spec.AllocConcurrentLastAddress, "gives the last free address to one of 32 clients of which half name it", check.Exclusive(), check.OnServiceCIDR("10.96.0.0/29"),
		func(ctx context.Context, cp *check.ControlPlane) {
			left := takeAllButOne(ctx, cp)
			winner := oneWins(ctx, cp, func(i int) *corev1.Service {
				if i%2 == 0 {
					return check.Service(cp.Name("racer"))
				}
				return check.Service(cp.Name("racer"), check.WithClusterIP(left))
			}, check.BeExhausted())
			Expect(winner.Spec.ClusterIP).To(Equal(left))
		})

	check.It(spec.AllocAddressBeforeService, "has reserved the address of a Service when watchers see it",
		func(ctx context.Context, cp *check.ControlPlane) {
			watched := cp.NewNamespace(ctx)
			events, err := cp.Client().CoreV1().Services(watched).Watch(ctx, metav1.ListOptions{})
			check.Must(err)
			defer events.Stop()
			const services = 8
			answers := make(chan check.Response, services)
			go func() {
				defer ginkgo.GinkgoRecover()
				defer close(answers)
				for range services {
					answers <- cp.Create(ctx, check.Service(cp.Name("seen"), check.InNamespace(watched)))
				}
			}()
			defer func() {
				for range answers { // no create outlives the check
				}
			}()
			for range services {
				svc := nextAdded(ctx, events, answers)
				refuseTaken(ctx, cp, svc.Spec.ClusterIP)
			}
		})

	check.It(spec.AllocFailureNamed, "says that an address could not be allocated when one is taken or out of range",
		func(ctx context.Context, cp *check.ControlPlane) {
			taken := cp.Arrange(ctx, check.Service("taken")).Spec.ClusterIP
			outside := primaryRange(cp).Addr().Prev().String()
			for _, ip := range []string{taken, outside} {
				speakOfAllocation(cp.Create(ctx, check.Service(cp.Name("refused"), check.WithClusterIP(ip))))
			}
		})
})

// refuseTaken demands that an address cannot be named since it is in use.
func refuseTaken(ctx context.Context, cp *check.ControlPlane, ip string, options ...check.ServiceOption) {
	ginkgo.GinkgoHelper()
	options = append(options, check.WithClusterIP(ip))
	Expect(cp.Create(ctx, check.Service(cp.Name("duplicate"), options...))).To(check.BeRefused(), "%s is in use", ip)
}

// takeAllButOne names every free address of a small range but one, which it returns. Whichever addresses are in use already may stay so.
func takeAllButOne(ctx context.Context, cp *check.ControlPlane) string {
	ginkgo.GinkgoHelper()
	b, used := check.BandsOf(cp.CIDR()), cp.AddressesInUse(ctx, cp.CIDR())
	var free []string
	for addr := b.First; addr.Compare(b.Last) <= 0; addr = addr.Next() {
		if !used[addr] {
			free = append(free, addr.String())
		}
	}
	left := len(free) / 2
	for i, ip := range free {
		if i != left {
			cp.Arrange(ctx, check.Service(cp.Name("taken"), check.WithClusterIP(ip)))
		}
	}
	return free[left]
}

// oneWins lets 32 clients create Services at a time and demands that one succeeds and the others are refused as stated.
func oneWins(ctx context.Context, cp *check.ControlPlane, service func(i int) *corev1.Service, refused OmegaMatcher) *corev1.Service {
	ginkgo.GinkgoHelper()
	return oneWon(race(ctx, cp, service), refused)
}

// race creates Services, all at a time.
func race(ctx context.Context, cp *check.ControlPlane, service func(i int) *corev1.Service) []check.Response {
	ginkgo.GinkgoHelper()
	answers := make([]check.Response, racers)
	check.Concurrently(racers, func(i int) { answers[i] = cp.Create(ctx, service(i)) })
	return answers
}

// oneWon demands that one of the creates was accepted, and returns its Service.
func oneWon(answers []check.Response, refused OmegaMatcher) *corev1.Service {
	ginkgo.GinkgoHelper()
	for _, a := range answers {
		if !a.Accepted() {
			Expect(a).To(refused)
		}
	}
	created := winners(answers)
	Expect(created).To(HaveLen(1), "Services that %d clients created at a time", racers)
	return created[0]
}

// winners are the Services of the creates that were accepted.
func winners(answers []check.Response) (created []*corev1.Service) {
	for _, a := range answers {
		if a.Accepted() {
			created = append(created, a.Service)
		}
	}
	return created
}

// onAllocation are words by which a message says that it is about the allocation of an address. The document gives the sense of the message alone.
var onAllocation = []string{"allocat", "address", "clusterip", "cluster ip", " ip ", "range"}

// speakOfAllocation demands that a refusal says that it is about the allocation of an address.
func speakOfAllocation(a check.Response) {
	ginkgo.GinkgoHelper()
	Expect(a.Accepted()).To(BeFalse(), "a create was accepted that cannot be given an address: %s", a)
	Expect(a.Status).NotTo(BeNil(), "a refusal comes with a Status: %s", a)
	said := " " + strings.ToLower(a.Status.Message) + " "
	Expect(slices.ContainsFunc(onAllocation, func(word string) bool { return strings.Contains(said, word) })).To(BeTrue(), "the message speaks of an address: %q", a.Status.Message)
}

// nextAdded returns the next Service that a watch sees for the first time, while it is being created or later.
func nextAdded(ctx context.Context, events watch.Interface, created <-chan check.Response) *corev1.Service {
	ginkgo.GinkgoHelper()
	for {
		select {
		case a, ok := <-created:
			if !ok {
				created = nil // all have been created
				continue
			}
			Expect(a).To(check.BeAccepted())
		case e, ok := <-events.ResultChan():
			if !ok {
				check.Abort("the watch on Services ended")
			}
			if svc, ok := e.Object.(*corev1.Service); ok && e.Type == watch.Added {
				return svc
			}
		case <-ctx.Done():
			check.Abort("no event of a Service that was created: %v", ctx.Err())
		}
	}
}

// steps is how long the random workload of keepUnique is.
const steps = 48

// keepUnique creates Services with and without naming an address, be it free or in use. It deletes them and turns them
// into aliases, all at random. After every step it demands that no address belongs to two Services.
func keepUnique(ctx context.Context, cp *check.ControlPlane, namespaces []string) {
	ginkgo.GinkgoHelper()
	type key struct{ namespace, name string }
	holds := map[key]string{} // the address of each Service, empty for an alias
	owner := map[string]key{}
	gained := func(k key, a check.Response) {
		ginkgo.GinkgoHelper()
		Expect(a).To(check.BeAccepted())
		ip := a.Service.Spec.ClusterIP
		other, taken := owner[ip]
		Expect(taken).To(BeFalse(), "%s belongs to %s/%s and was given to %s/%s", ip, other.namespace, other.name, k.namespace, k.name)
		holds[k], owner[ip] = ip, k
	}
	var keys []key
	for range steps {
		random := cp.Rand()
		if len(keys) < 4 || random.IntN(2) == 0 {
			k := key{namespaces[random.IntN(len(namespaces))], cp.Name("unique")}
			if random.IntN(4) == 0 && len(keys) > 0 { // an address that is in use: it must not be given
				if ip := holds[keys[random.IntN(len(keys))]]; ip != "" {
					Expect(cp.Create(ctx, check.Service(k.name, check.InNamespace(k.namespace), check.WithClusterIP(ip)))).To(check.BeRefused())
				}
				continue
			}
			gained(k, cp.Create(ctx, check.Service(k.name, check.InNamespace(k.namespace))))
			keys = append(keys, k)
			if cp.CIDR().IsValid() && random.IntN(3) == 0 { // an address that is free to be named
				named := createOnChosen(ctx, cp, cp.CIDR(), check.InNamespace(k.namespace))
				ip := named.Spec.ClusterIP
				Expect(owner).NotTo(HaveKey(ip), "addresses that Services had when %s was given to %s/%s", ip, named.Namespace, named.Name)
				k := key{named.Namespace, named.Name}
				holds[k], owner[ip] = ip, k
				keys = append(keys, k)
			}
			continue
		}
		i := random.IntN(len(keys))
		k := keys[i]
		path := "/api/v1/namespaces/" + k.namespace + "/services/" + k.name
		switch {
		case random.IntN(2) == 0:
			Expect(cp.Do(ctx, "DELETE", path, "", nil)).To(check.BeAccepted())
			delete(owner, holds[k])
			delete(holds, k)
			keys = append(keys[:i], keys[i+1:]...)
		case holds[k] != "":
			body := `{"spec":{"type":"ExternalName","externalName":"example.org"}}`
			Expect(cp.Do(ctx, "PATCH", path, "application/merge-patch+json", []byte(body))).To(check.BeAccepted())
			delete(owner, holds[k])
			holds[k] = ""
		}
	}
}
