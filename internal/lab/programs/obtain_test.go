package programs

import (
	"strings"
	"testing"

	"github.com/service-conformance/conformance/internal/lab/fakes"
)

func TestBinariesOfTheUser(t *testing.T) {
	folder := fakes.Install(t, "etcd", "kube-apiserver")
	for name, c := range map[string]struct{ dir, reported, want, message string }{
		"any version":       {folder, "v1.36.3", "", ""},
		"as asked for":      {folder, "v1.36.3", "1.36.3", ""},
		"of a vendor":       {folder, "v1.34.2+vendor1", "v1.34.2", ""},
		"another version":   {folder, "v1.36.3", "v1.37.1", "not v1.37.1"},
		"without stamps":    {folder, "v0.0.0-master+$Format:%H$", "", "version stamps"},
		"malformed version": {folder, "v1.36.3", "newest", `"newest"`},
		"empty folder":      {t.TempDir(), "", "", "kube-apiserver"},
	} {
		t.Setenv("FAKE_VERSION", c.reported)
		_, b, err := InFolder(t.Context(), c.dir, c.want, ControlPlaneComponents, ServerOptions{})
		if c.message == "" {
			if err != nil || b.Version != c.reported {
				t.Errorf("%s: %+v, %v", name, b, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: error %v, want one about %q", name, err, c.message)
		}
	}
}
