package check

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/spec"
)

// AddressObject identifies the IPAddress object that stands for an address in use; it is empty where the candidate
// shows none. The repair of kube-apiserver may take an address that was given back once more, if it has not seen a
// change yet. Another object then shows that the address was given back before.
func (cp *ControlPlane) AddressObject(ctx context.Context, ip string) types.UID {
	ginkgo.GinkgoHelper()
	if _, err := netip.ParseAddr(ip); err != nil { // no address: that of an alias, or "None"
		return ""
	}
	object, err := cp.Client().NetworkingV1().IPAddresses().Get(ctx, ip, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	Must(err)
	return object.UID
}

// TakenAgain reports whether an address now belongs to another object than while it was in use. It records that,
// because it proves that the address was given back. A check that counts on that demands StaysFree.
func (cp *ControlPlane) TakenAgain(ctx context.Context, ip string, object types.UID) bool {
	ginkgo.GinkgoHelper()
	now := cp.AddressObject(ctx, ip)
	if object == "" || now == "" || now == object {
		return false
	}
	Record(ip+" was freed and taken again", "IPAddress %s stands for it, not %s", now, object)
	return true
}

// StaysFree demands of an address that was given back and taken again that a Service has it, or that it is free after all. If it is not so, the check goes on: that the
// address was given back is shown. In the end it fails with spec.AllocFreedStaysFree alone.
func (cp *ControlPlane) StaysFree(ctx context.Context, ip string) {
	ginkgo.GinkgoHelper()
	unmet := converge(ctx, "a Service that has "+ip, settles, nil, func(g gomega.Gomega) {
		if cp.AddressObject(ctx, ip) == "" {
			return
		}
		all, err := cp.Client().CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		Must(err)
		g.Expect(slices.ContainsFunc(all.Items, func(s corev1.Service) bool { return slices.Contains(s.Spec.ClusterIPs, ip) })).
			To(gomega.BeTrue(), "a Service has %s, which was given back and is taken again", ip)
	})
	if unmet != "" {
		failLater(unmet, spec.AllocFreedStaysFree)
	}
}

// settles bounds how long an address may be taken before its Service can be seen.
const settles = 5 * time.Second
