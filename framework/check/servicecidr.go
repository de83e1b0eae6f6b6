package check

import (
	"context"
	"encoding/json"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ServiceCIDRs is the path of the ServiceCIDR objects (KEP-1880).
const ServiceCIDRs = "/apis/networking.k8s.io/v1/servicecidrs"

// ServiceCIDR is a ServiceCIDR object in JSON.
func ServiceCIDR(name string, cidrs ...string) []byte {
	body, err := json.Marshal(&networkingv1.ServiceCIDR{
		TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "ServiceCIDR"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       networkingv1.ServiceCIDRSpec{CIDRs: cidrs},
	})
	Must(err)
	return body
}

// AddServiceCIDR adds ranges until the end of the check, and returns the name of their object. The Services go first: what
// has an address of the range must not outlive it.
func (cp *ControlPlane) AddServiceCIDR(ctx context.Context, cidrs ...string) string {
	ginkgo.GinkgoHelper()
	name := cp.Name(cp.Namespace())
	Expect(cp.Do(ctx, "POST", ServiceCIDRs, "application/json", ServiceCIDR(name, cidrs...))).To(BeAccepted())
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) {
		cp.Do(ctx, "DELETE", cp.Path(""), "", nil)
		cp.Do(ctx, "DELETE", ServiceCIDRs+"/"+name, "", nil)
	})
	return name
}
