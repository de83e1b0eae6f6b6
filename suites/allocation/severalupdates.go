package allocation

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// returned is something that an update gives back.
type returned struct {
	what  string
	free  func(ctx context.Context, cp *check.ControlPlane) string
	owner func(cp *check.ControlPlane, which string) []check.ServiceOption
	next  func(cp *check.ControlPlane, which string) []check.ServiceOption
	patch string // of the spec, as JSON without braces
}

const (
	// updaters is how many clients update a Service at the same time.
	updaters = 4
	// updateRounds is how often they do. A server whose updates lose the race in one of ten rounds stays hidden in one of 500 runs.
	updateRounds = 60
	// roundsTime is after how long no further round begins, for a server that is far away.
	roundsTime = 20 * time.Second
)

// What updates give back.
var (
	addressOfAlias = returned{
		what: "the address", patch: `"type":"ExternalName","externalName":"example.org"`, free: freeAddress, owner: onAddress, next: onAddress,
	}
	addressOfSecondFamily = returned{
		what: "the address of the second family", patch: `"ipFamilyPolicy":"SingleStack"`,
		free: func(ctx context.Context, cp *check.ControlPlane) string {
			return freeAddressOf(ctx, cp, cp.CIDROf(cp.OtherFamily()))
		},
		owner: func(cp *check.ControlPlane, which string) []check.ServiceOption {
			return []check.ServiceOption{check.WithPolicy(corev1.IPFamilyPolicyRequireDualStack), check.With(func(s *corev1.Service) {
				s.Spec.IPFamilies = []corev1.IPFamily{cp.PrimaryFamily(), cp.OtherFamily()}
			}), check.WithClusterIPs(randomAddress(cp, cp.CIDROf(cp.PrimaryFamily())).String(), which)}
		},
		next: func(cp *check.ControlPlane, which string) []check.ServiceOption {
			return []check.ServiceOption{check.WithClusterIP(which), check.WithFamilies(cp.OtherFamily())}
		},
	}
	portOfOtherType = returned{
		what: "the node port", patch: `"type":"ClusterIP"`,
		free: func(ctx context.Context, cp *check.ControlPlane) string {
			return fmt.Sprint(cp.FreeNodePorts(ctx, 1)[0])
		},
		owner: onPort, next: onPort,
	}
)

func onAddress(_ *check.ControlPlane, which string) []check.ServiceOption {
	return []check.ServiceOption{check.WithClusterIP(which)}
}

func onPort(_ *check.ControlPlane, which string) []check.ServiceOption {
	var port int
	_, err := fmt.Sscan(which, &port)
	check.Must(err)
	return []check.ServiceOption{onNodePort(port)}
}

var _ = ginkgo.Describe("several updates at the same time", func() {
	check.It(spec.AllocUpdateFreesOwn, "free "+addressOfAlias.what+" of the Service once", check.Claiming(spec.FeatureExternalName), addressOfAlias.isFreedOnce)
	check.It(spec.AllocUpdateFreesOwn, "free "+addressOfSecondFamily.what+" of the Service once", check.DualStack(), addressOfSecondFamily.isFreedOnce)
	check.It(spec.AllocUpdateFreesOwn, "free "+portOfOtherType.what+" of the Service once", check.Claiming(spec.FeatureNodePort), portOfOtherType.isFreedOnce)
})

// isFreedOnce has clients update a Service at the same time while another one waits for what the Service gives back. Whoever gets it keeps it. A round is decided if
// somebody does.
func (r returned) isFreedOnce(ctx context.Context, cp *check.ControlPlane) {
	decided, tried := 0, 0
	for began := time.Now(); tried < updateRounds && (decided == 0 || time.Since(began) < roundsTime); tried++ {
		which := r.free(ctx, cp)
		create := func(name string, options []check.ServiceOption) (string, check.Response) {
			name = cp.Name(name)
			return name, cp.Create(ctx, check.Service(name, options...))
		}
		owner, made := create("owner", r.owner(cp, which))
		if !made.Accepted() {
			continue // another client has it by now
		}
		names := []string{owner}
		var done atomic.Int64
		var next check.Response
		check.Concurrently(updaters+1, func(i int) {
			if i < updaters {
				defer done.Add(1)
				cp.MergePatch(ctx, owner, fmt.Sprintf(`{"metadata":{"labels":{"updated-by":"%d"}},"spec":{%s}}`, i, r.patch))
				return
			}
			for last := false; !last && !next.Accepted(); {
				last = done.Load() == updaters // then once more
				var name string
				if name, next = create("next", r.next(cp, which)); next.Accepted() {
					names = append(names, name)
				}
			}
		})
		if next.Accepted() {
			decided++
			name, third := create("third", r.next(cp, which))
			Expect(third).NotTo(check.BeAccepted(), "%d clients took %s (%s) away from %s, %s got it meanwhile and has it, and %s names it as well",
				updaters, r.what, which, owner, names[1], name)
		}
		for _, name := range slices.Backward(names) {
			Expect(cp.Delete(ctx, name)).To(check.BeAccepted())
		}
	}
	check.Record("rounds", "%d of %d, in which another Service got %s", decided, tried, r.what)
	if decided == 0 {
		check.Abort("no other client got %s in any of %d rounds", r.what, tried)
	}
}
