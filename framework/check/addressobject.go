package check

import (
	"context"
	"net/netip"

	"github.com/onsi/ginkgo/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AddressObject identifies the IPAddress object that stands for an address in use; it is empty where the candidate shows none. The repair of kube-apiserver, when
// it has not seen a change yet, takes an address that was given back once more, by chance and for a while; that it was given back before shows in another object.
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

// TakenAgain reports whether another object stands for an address than the one that did while it was in use, and records that.
func (cp *ControlPlane) TakenAgain(ctx context.Context, ip string, object types.UID) bool {
	now := cp.AddressObject(ctx, ip)
	if object == "" || now == "" || now == object {
		return false
	}
	Record(ip+" was freed and taken again", "IPAddress %s stands for it, not %s", now, object)
	return true
}
