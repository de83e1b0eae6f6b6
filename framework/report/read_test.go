package report

import (
	"os"
	"testing"
)

func TestX(t *testing.T) {
	for _, p := range []string{"/tmp/lt/ref", "/tmp/lt/kindlent", "/tmp/lt/kindbase", "/tmp/lab-ipt", "/tmp/l1", "/tmp/lab1", "/tmp/hp-lab", "/tmp/lab-nft"} {
		if _, err := os.Stat(p + "/report.json"); err != nil {
			continue
		}
		r, err := Open(p)
		if err != nil {
			t.Log(p, err)
			continue
		}
		t.Log(p, r.VerdictLine())
	}
}
