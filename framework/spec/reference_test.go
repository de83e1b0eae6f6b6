package spec

import (
	"net/url"
	"testing"
)

func TestReferencesLeadToSections(t *testing.T) {
	c := Default()
	for source, want := range map[string]string{
		"virtual-ips#session-affinity":                 "https://kubernetes.io/docs/reference/networking/virtual-ips/#session-affinity",
		"service-v1#spec.type":                         "https://kubernetes.io/docs/reference/kubernetes-api/service-resources/service-v1/",
		"kep#KEP-1880":                                 "https://github.com/kubernetes/enhancements/tree/master/keps",
		"upstream#pkg/kubelet/envvars/envvars.go":      "https://github.com/kubernetes/kubernetes/blob/v1.37.1/pkg/kubelet/envvars/envvars.go",
		"upstream#k8s.io/api/core/v1/types.go":         "https://github.com/kubernetes/kubernetes/blob/v1.37.1/staging/src/k8s.io/api/core/v1/types.go",
		"dns-specification":                            "https://github.com/kubernetes/dns/blob/master/docs/specification.md",
		"api-conventions#concurrency-control-and-more": "https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md#concurrency-control-and-more",
	} {
		got := c.References(&Requirement{Sources: []string{source}})
		if len(got) != 1 || got[0].URL != want {
			t.Errorf("%s leads to %+v instead of %s", source, got, want)
		}
	}
	for i := range c.Requirements {
		r := &c.Requirements[i]
		all := c.References(r)
		if len(all) != len(r.Sources) {
			t.Errorf("%s has %d sources and %d references", r.ID, len(r.Sources), len(all))
		}
		for _, ref := range all {
			if u, err := url.Parse(ref.URL); err != nil || u.Scheme != "https" {
				t.Errorf("%s: %q is no address", r.ID, ref.URL)
			}
		}
	}
}
