package check

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
)

func TestATableOfCasesMarksWhatIsUnmet(t *testing.T) {
	cases := []Case{
		{From: Host("node-0"), To: vip, Want: AnsweredBy(podNamed("a"))},
		{From: Outside("node-1"), To: netip.MustParseAddrPort("203.0.113.1:30080"), Protocol: corev1.ProtocolUDP, Want: Dropped()},
		{From: FromPod(podNamed("client")), To: vip, Path: "/healthz", SourcePort: 40000, Want: HTTPStatus(200)},
	}
	outcomes := [][]candidate.Outcome{{by("a")}, {by("b")}, {httpCode(503)}}
	want := strings.Join([]string{
		"after this: the Service is created",
		"not met within 30s",
		"   client                      to                        expected       observed",
		"✗  outside by node-1           203.0.113.1:30080/UDP     dropped        1× by b on 8080, seen from 10.0.0.1",
		"✗  pod client from port 40000  10.96.0.7:80/TCP/healthz  HTTP 200       1× HTTP 503",
		"✓  host of node-0              10.96.0.7:80/TCP          answered by a  1× by a on 8080, seen from 10.0.0.1",
	}, "\n")
	if got := tableOf("the Service is created", 30*time.Second, 0, cases, outcomes); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if now := tableOf("a node has gone", 0, 0, cases, outcomes); !strings.HasPrefix(now, "at this time: a node has gone\nnot met\n") {
		t.Errorf("got\n%s", now)
	}
	flapped := tableOf("a node has gone", time.Second, flaps+1, cases, outcomes)
	if !strings.HasPrefix(flapped, "after this: a node has gone\nthe demand held 4 times and each time ceased to hold\n") {
		t.Errorf("got\n%s", flapped)
	}
}

func TestATableOfCasesFoldsWhatFaredAlike(t *testing.T) {
	var cases []Case
	var outcomes [][]candidate.Outcome
	add := func(from candidate.Client, to string, o candidate.Outcome) {
		cases = append(cases, Case{From: from, To: netip.MustParseAddrPort(to), Want: AnsweredBy(podNamed("a"))})
		outcomes = append(outcomes, []candidate.Outcome{o})
	}
	for _, to := range []string{"198.19.0.1:80", "198.19.0.2:80"} {
		add(Outside("node-1"), to, met(candidate.Dropped))
		add(Outside("node-2"), to, met(candidate.Dropped))
		add(FromPod(podNamed("x")), to, met(candidate.Dropped))
		add(FromPod(podNamed("y")), to, met(candidate.Dropped))
		add(Host("node-1"), to, met(candidate.Refused)) // fared otherwise
	}
	for i := range 5 {
		add(candidate.Client{Gateway: "node-3", Address: i}, "198.19.0.9:80", met(candidate.Dropped))
	}
	want := strings.Join([]string{
		"✗  outside by node-1, node-2; pods x, y              198.19.0.1:80/TCP, 198.19.0.2:80/TCP  answered by a  1× dropped",
		"✗  host of node-1                                    198.19.0.1:80/TCP, 198.19.0.2:80/TCP  answered by a  1× refused",
		"✗  outside by node-3 (addresses 1, 2, 3 and 2 more)  198.19.0.9:80/TCP                     answered by a  1× dropped",
	}, "\n")
	if got := tableOf("a change", time.Second, 0, cases, outcomes); !strings.HasSuffix(got, want) {
		t.Errorf("got\n%s\nwant at the end\n%s", got, want)
	}
}

func TestATableOfCasesFitsOnAScreen(t *testing.T) {
	var cases []Case
	var outcomes [][]candidate.Outcome
	for i := range 100 {
		o := by("a")
		if i%2 == 0 {
			o = met(candidate.Dropped)
		}
		o.Source = netip.MustParseAddrPort(fmt.Sprintf("10.0.1.%d:1", i))
		cases = append(cases, Case{From: Host("node-0"), To: vip, Want: AnsweredBy(podNamed(fmt.Sprint("a-", i)))})
		outcomes = append(outcomes, []candidate.Outcome{o})
	}
	clipped := tableOf("the Service is created", time.Second, 0, cases, outcomes)
	if strings.Count(clipped, "✗") != tableRows || strings.Contains(clipped, "✓") || !strings.HasSuffix(clipped, "\nand 60 more lines that are not met, 0 that are") {
		t.Errorf("got\n%s", clipped)
	}
}
