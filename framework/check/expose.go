package check

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/spec"
)

// Expose creates the Service and returns it as stored. The check is unknown if the server does not accept it.
func (n *Network) Expose(ctx context.Context, svc *corev1.Service) *corev1.Service {
	ginkgo.GinkgoHelper()
	return n.noted(n.create(ctx, svc))
}

// ExposeApart is Expose of a Service whose virtual IP no other Service of the check has had. An address that was given
// up may come again at once.
func (n *Network) ExposeApart(ctx context.Context, service func() *corev1.Service) *corev1.Service {
	ginkgo.GinkgoHelper()
	for range triesApart {
		svc := n.create(ctx, service())
		n.mu.Lock()
		again := n.exposed[svc.Spec.ClusterIP]
		n.mu.Unlock()
		if !again {
			return n.noted(svc)
		}
	}
	Abort("%d Services in a row got a virtual IP that the check has given up", triesApart)
	return nil
}

// triesApart is more than the check has given up: those that are tried keep their addresses.
const triesApart = 20

// noted remembers the virtual IP of a Service.
func (n *Network) noted(svc *corev1.Service) *corev1.Service {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.exposed[svc.Spec.ClusterIP] = true
	return svc
}

// create creates a Service whose name no other one of the check has.
func (n *Network) create(ctx context.Context, svc *corev1.Service) *corev1.Service {
	ginkgo.GinkgoHelper()
	svc = n.claimedForm(svc)
	path := n.servicePath(svc)
	a, again := n.insist(ctx, http.MethodPost, path, "application/json", encode(svc))
	if again && !a.Accepted() { // because of the name, or of an address or node port that it names
		if stored := n.Do(ctx, http.MethodGet, path+"/"+svc.Name, "", nil); stored.Accepted() {
			a = stored
		}
	}
	return arranged(a).Service
}

// Change applies a JSON merge patch to the Service and returns it as stored. The check is unknown if the server does not accept it.
func (n *Network) Change(ctx context.Context, name, patch string) *corev1.Service {
	ginkgo.GinkgoHelper()
	n.shots.changing()
	svc := n.noted(n.patch(ctx, n.Path(name), patch))
	n.belong(spec.FeatureExternalIPs, svc.Spec.ExternalIPs...)
	return svc
}

// ChangeStatus applies a JSON merge patch to the status of the Service. The check is unknown if the server does not accept it.
func (n *Network) ChangeStatus(ctx context.Context, name, patch string) *corev1.Service {
	ginkgo.GinkgoHelper()
	points := ingressAddresses(patch)
	n.belong(spec.FeatureLoadBalancer, points...)
	if len(points) > 0 && !claimed(spec.FeatureLoadBalancer) {
		return arranged(n.Get(ctx, name)).Service
	}
	return n.patch(ctx, n.Path(name)+"/status", patch)
}

// ingressAddresses are the addresses of the ingress points that a merge patch of a status sets.
func ingressAddresses(patch string) (addresses []string) {
	var svc corev1.Service
	if err := json.Unmarshal([]byte(patch), &svc); err != nil {
		return nil
	}
	for _, in := range svc.Status.LoadBalancer.Ingress {
		addresses = append(addresses, in.IP)
	}
	return addresses
}

func (n *Network) patch(ctx context.Context, path, patch string) *corev1.Service {
	ginkgo.GinkgoHelper()
	a, _ := n.insist(ctx, http.MethodPatch, path, string(types.MergePatchType), []byte(patch))
	return arranged(a).Service
}

// Unexpose deletes the Service. The check is unknown if the server does not accept that.
func (n *Network) Unexpose(ctx context.Context, name string) {
	ginkgo.GinkgoHelper()
	n.end(ctx, http.MethodDelete, name, "", nil)
}

// LetGo takes the finalizers from a Service whose deletion was asked for. The check is unknown if the server does not accept that.
func (n *Network) LetGo(ctx context.Context, name string) {
	ginkgo.GinkgoHelper()
	n.end(ctx, http.MethodPatch, name, string(types.MergePatchType), []byte(`{"metadata":{"finalizers":null}}`))
}

// end sends what may be the end of a Service: one that is gone when the server is asked again has come to it.
func (n *Network) end(ctx context.Context, method, name, contentType string, body []byte) {
	ginkgo.GinkgoHelper()
	if a, again := n.insist(ctx, method, n.Path(name), contentType, body); !again || a.Code != http.StatusNotFound {
		arranged(a)
	}
}

// insist is Do of what a check needs to come to its subject: where the server gives it up, it is sent again. The server may then have carried it out before, see
// candidate.Insist.
func (n *Network) insist(ctx context.Context, method, path, contentType string, body []byte) (a Response, again bool) {
	ginkgo.GinkgoHelper()
	Must(candidate.Insist(ctx, func(repeated bool) (err error) {
		again = repeated
		a, err = n.Ask(ctx, method, path, contentType, body)
		return err
	}))
	return a, again
}

// arranged returns the answer to a request that a check needs to come to its subject.
func arranged(a Response) Response {
	ginkgo.GinkgoHelper()
	if !a.Accepted() {
		Abort("the arrangement of the check was not accepted: %s", a)
	}
	return a
}
