package cluster

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/agent"
)

// TestEnvironmentOfAPodIsAskedFor demands that the kubelet is told what a check wants of the environment, beside what the agent needs.
func TestEnvironmentOfAPodIsAskedFor(t *testing.T) {
	c := &Cluster{runID: "run"}
	name := candidate.PodName{Namespace: "ns", Name: "p"}
	plain := c.podObject(&pod{Pod: candidate.Pod{PodName: name}}, controlPort, "{}").Spec
	if !*plain.EnableServiceLinks || len(plain.Containers[0].Env) != 1 {
		t.Errorf("service links %t, variables %v", *plain.EnableServiceLinks, plain.Containers[0].Env)
	}
	special := c.podObject(&pod{Pod: candidate.Pod{
		PodName: name, WithoutServiceLinks: true, Variables: map[string]string{"B": "$(A_SERVICE_HOST)", "A": ""},
	}}, controlPort, "{}").Spec
	want := []corev1.EnvVar{{Name: agent.ConfigVariable, Value: "{}"}, {Name: "A"}, {Name: "B", Value: "$(A_SERVICE_HOST)"}}
	if *special.EnableServiceLinks || !slices.Equal(special.Containers[0].Env, want) {
		t.Errorf("service links %t, variables %v, want %v", *special.EnableServiceLinks, special.Containers[0].Env, want)
	}
}

// TestWhatDecidesReadiness demands that only the pods of one check are probed for as long as they run.
func TestWhatDecidesReadiness(t *testing.T) {
	for by, want := range map[readyBy]struct{ probed, asked, gated bool }{
		readyByProbe: {probed: true},
		readyByGate:  {asked: true, gated: true},
		readyAtStart: {asked: true},
	} {
		o := (&Cluster{}).podObject(&pod{readyBy: by}, controlPort, "{}").Spec
		c := o.Containers[0]
		if got := (struct{ probed, asked, gated bool }{c.ReadinessProbe != nil, c.StartupProbe != nil, len(o.ReadinessGates) == 1}); got != want {
			t.Errorf("%d: %+v, want %+v", by, got, want)
		}
	}
}
