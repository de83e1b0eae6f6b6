package allocation

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

var _ = ginkgo.Describe("restart", func() {
	check.It(spec.AllocRecordSurvivesRestart, "has every address of before allocated afterwards", check.Exclusive(), check.OnServiceCIDR(small),
		func(ctx context.Context, cp *check.ControlPlane) {
			static := cp.Arrange(ctx, check.Service("static", check.WithClusterIP("10.96.0.6")))
			dynamic := cp.Arrange(ctx, check.Service("dynamic"))
			cp.Restart(ctx)
			for _, svc := range []string{static.Spec.ClusterIP, dynamic.Spec.ClusterIP} {
				refuseTaken(ctx, cp, svc)
			}
			for range 3 {
				Expect(cp.Create(ctx, check.Service(cp.Name("later")))).To(check.BeAccepted())
			}
			Expect(cp.Create(ctx, check.Service("late"))).To(check.BeExhausted())
		})

	check.It(spec.AllocNodePortRecordSurvivesRestart, "has every node port of before in use afterwards", check.NodePorts(fewPorts),
		func(ctx context.Context, cp *check.ControlPlane) {
			cp.Arrange(ctx, check.Service("static", onNodePort(30063)))
			dynamic := cp.Arrange(ctx, check.Service("dynamic", manyPorts(62)))
			cp.Restart(ctx)
			for _, port := range []int{30063, nodePorts(dynamic)[0]} {
				Expect(cp.Create(ctx, check.Service(cp.Name("duplicate"), onNodePort(port)))).NotTo(check.BeAccepted(), "node port %d is in use", port)
			}
			Expect(cp.Create(ctx, check.Service("last", manyPorts(1)))).To(check.BeAccepted())
			Expect(cp.Create(ctx, check.Service("late", manyPorts(1)))).To(check.BeExhausted())
		})

	check.It(spec.AllocRestartDuringCreates, "leaves Services created around it with addresses of their own", check.Exclusive(), check.OnServiceCIDR("10.96.0.0/16"),
		func(ctx context.Context, cp *check.ControlPlane) {
			createMeanwhile(ctx, cp, func(ctx context.Context) { cp.Restart(ctx) })
			services := cp.List(ctx)
			check.Record("Services created around the restart", "%d", len(services))
			owner := map[string]string{}
			for i := range services {
				ip := services[i].Spec.ClusterIP
				Expect(ip).To(check.BeInRange(cp.CIDR()))
				Expect(owner[ip]).To(BeEmpty(), "%s belongs to %s and to %s", ip, owner[ip], services[i].Name)
				owner[ip] = services[i].Name
			}
			for ip := range owner {
				refuseTaken(ctx, cp, ip)
			}
		})
})

const (
	stormClients = 4
	// stormCreates is how many Services are created before and, again, after what is done.
	stormCreates = 40
	retryCreate  = 20 * time.Millisecond
)

// createMeanwhile creates Services from several clients before, while and after something is done to the API server. Creates may fail meanwhile.
func createMeanwhile(ctx context.Context, cp *check.ControlPlane, do func(context.Context)) {
	ginkgo.GinkgoHelper()
	var before, after atomic.Int64
	var begun, done atomic.Bool
	warm := make(chan struct{})
	stopped := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	defer func() { cancel(); <-stopped }()
	storm := func(int) {
		for after.Load() < stormCreates && ctx.Err() == nil {
			_, err := cp.Client().CoreV1().Services(cp.Namespace()).Create(ctx, check.Service(cp.Name("storm")), metav1.CreateOptions{})
			refused := apierrors.IsInvalid(err) || apierrors.IsInternalError(err) && !begun.Load()
			switch {
			case refused && !check.HasNoResponse(err):
				Expect(err).NotTo(HaveOccurred(), "a Service with a dynamic address")
			case err != nil && !begun.Load() && !check.Transient(err):
				check.Must(err) // nothing has happened to the server yet, and the next answer will be the same
			case err != nil:
				select {
				case <-ctx.Done():
				case <-time.After(retryCreate):
				}
			case done.Load():
				after.Add(1)
			case before.Add(1) == stormCreates:
				close(warm)
			}
		}
	}
	go func() {
		defer close(stopped)
		check.Concurrently(stormClients, storm)
	}()
	select {
	case <-warm:
	case <-stopped: // a demand was not met
		return
	case <-ctx.Done():
		check.Abort("fewer than %d Services could be created beforehand: %v", stormCreates, ctx.Err())
	}
	begun.Store(true)
	do(ctx)
	done.Store(true)
	select {
	case <-stopped:
	case <-ctx.Done():
		check.Abort("fewer than %d Services could be created afterwards: %v", stormCreates, ctx.Err())
	}
}
