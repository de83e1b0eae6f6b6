package kindcluster

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/framework/candidate"
)

// TestNarrowingChangesTheRouteOfThePod has a program of its own instead of ip, which knows a route for the pod of IPv4 alone.
func TestNarrowingChangesTheRouteOfThePod(t *testing.T) {
	dir := t.TempDir()
	ip := `#!/bin/sh
case "$*" in
"-4 route show 10.244.1.7/32") echo "10.244.1.7 dev veth7 scope host " ;;
*" route replace "*) echo "ip $*" ;;
esac
`
	if err := os.WriteFile(filepath.Join(dir, "ip"), []byte(ip), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", narrowing([]netip.Addr{netip.MustParseAddr("10.244.1.7"), netip.MustParseAddr("fd00:10:244::7")}, candidate.NarrowMTU))
	cmd.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := "ip -4 route replace 10.244.1.7 dev veth7 scope host mtu 1300\n" + noRoute + "\n"; string(out) != want {
		t.Errorf("the node did %q, want %q", out, strings.TrimSpace(want))
	}
}
