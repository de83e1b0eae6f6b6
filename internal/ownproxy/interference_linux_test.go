package ownproxy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/internal/lab/fakes"
	"github.com/service-conformance/conformance/internal/lab/process"
)

// Between the list of virtual servers and the change of one, the proxy may remove it. The kernel lists by position, so
// one may be named twice. What is to be changed may be so from an earlier time.
func TestMeddlingPassesOverWhatTheProxyRemovesMeanwhile(t *testing.T) {
	// A stand-in whose list loses what is on 10.96.0.2 once it was read, and that fails on what is on 10.96.0.3. A
	// change of 10.96.0.4 is undone before the reader that fails in it looks again.
	const program = `#!/bin/sh
cd "$(dirname "$0")" || exit 1
without() { grep -v -F -e "$1" list >left; mv left list; }
undo() {
	case $1,$3 in
	-a,10.96.0.4:*) without "-a $2 $3 -r $5 " ;;
	-d,10.96.0.4:*) echo "-a $2 $3 -r $5 -m -w 1" >>list ;;
	esac
}
case $1 in
-Sn) cat list; without 10.96.0.2; exit ;;
esac
echo "$@" >>tried
case $3 in 10.96.0.3:*) echo broken >&2; exit 1 ;; esac
grep -q -F -e "-A $2 $3 " list || { echo Service not defined >&2; exit 255; }
case $1 in
-a)
	! grep -q -F -e "-a $2 $3 -r $5 " list || { undo "$@"; echo Destination already exists >&2; exit 1; }
	echo "-a $2 $3 -r $5 -m -w 100" >>list
	;;
-d)
	grep -q -F -e "-a $2 $3 -r $5 " list || { undo "$@"; echo No such destination >&2; exit 255; }
	without "-a $2 $3 -r $5 "
	;;
esac
`
	server := func(address string) string {
		return "-A -t " + address + ":443 -s rr\n-a -t " + address + ":443 -r 10.244.1.2:6443 -m -w 1\n"
	}
	for name, script := range map[string]string{"add": addRealServerScript, "drop": dropRealServersScript} {
		for _, c := range []struct {
			what  string
			list  string
			fails bool
		}{
			{"one goes meanwhile", server("10.96.0.1") + server("10.96.0.2"), false},
			{"one is named twice, and its change undone", server("10.96.0.4") + server("10.96.0.4") + server("10.96.0.1"), false},
			{"one is so already, and no longer when somebody looks", server("10.96.0.4") + "-a -t 10.96.0.4:443 -r 192.0.2.66:9 -m -w 100\n" + server("10.96.0.1"), false},
			{"one cannot be changed, and stays", server("10.96.0.3") + server("10.96.0.1"), true},
		} {
			t.Run(name+"/"+c.what, func(t *testing.T) {
				dir := t.TempDir()
				fakes.Must(t, os.WriteFile(filepath.Join(dir, "ipvsadm"), []byte(program), 0o700))
				fakes.Must(t, os.WriteFile(filepath.Join(dir, "list"), []byte(c.list), 0o600))
				cmd := exec.Command("/bin/sh", "-c", script)
				cmd.Env = []string{"PATH=" + dir + ":" + process.SystemPath}
				out, err := cmd.CombinedOutput()
				if (err != nil) != c.fails {
					t.Errorf("%v: %s", err, out)
				}
				tried, err := os.ReadFile(filepath.Join(dir, "tried"))
				fakes.Must(t, err)
				for line := range strings.Lines(c.list) {
					if virtual := strings.Fields(line)[2]; !c.fails && !strings.Contains(string(tried), virtual) {
						t.Errorf("%s was not tried: %s", virtual, tried)
					}
				}
			})
		}
	}
}
