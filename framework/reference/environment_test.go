package reference

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
)

func TestEnvironmentIsThatOfTheStart(t *testing.T) {
	b := newBench(t)
	tells := func(pod string) []string {
		t.Helper()
		told, err := b.Environment(t.Context(), podName(pod))
		b.Expect(err).NotTo(HaveOccurred())
		return told
	}
	b.backend("early", "node-1")
	web := b.service(nil)
	b.backend("late", "node-1")
	host := "WEB_SERVICE_HOST=" + web.Spec.ClusterIP
	b.Expect(tells("early")).NotTo(ContainElement(HavePrefix("WEB_")), "it began before the Service")
	b.Expect(tells("late")).To(ContainElement(host))
	_, err := b.StartPod(t.Context(), candidate.Pod{
		PodName: podName("own"), Node: "node-1", WithoutServiceLinks: true, Variables: map[string]string{"OWN": "$(KUBERNETES_SERVICE_PORT)"},
	})
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(tells("own")).To(And(ContainElement("OWN=443"), ContainElement(HavePrefix("KUBERNETES_SERVICE_HOST=")), Not(ContainElement(host))))
	b.Expect(b.Remove(t.Context(), podName("late"))).To(Succeed())
	_, err = b.Environment(t.Context(), podName("late"))
	b.Expect(err).To(HaveOccurred(), "a pod that is gone")
}

func TestReadinessFollowsTheProbe(t *testing.T) {
	b := newBench(t)
	b.backend("one", "node-1")
	b.backend("two", "node-2")
	s := b.service(func(s *corev1.Service) { s.Spec.Ports = s.Spec.Ports[:1] })
	answering := func() map[string]bool {
		pods := map[string]bool{}
		for range 40 {
			pods[b.podsOf(b.send(tcp("node-3", at(s.Spec.ClusterIP, 80))))[0]] = true
		}
		return pods
	}
	b.Expect(answering()).To(HaveLen(2))
	b.Expect(b.AnswerReadiness(t.Context(), podName("one"), false)).To(Succeed())
	b.Expect(answering()).To(Equal(map[string]bool{"two": true}))
	b.Expect(b.AnswerReadiness(t.Context(), podName("one"), true)).To(Succeed())
	b.Expect(answering()).To(HaveLen(2))
}
