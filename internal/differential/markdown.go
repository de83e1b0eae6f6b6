package differential

import (
	"cmp"
	"fmt"
	"strings"
)

// PassedOver is a class of differences that a random test passes over.
type PassedOver struct {
	// Suite is the command that passes over it: api, endpoints or traffic.
	Suite, Name, Why, Source string
}

// Markdown is the page that shows all cases, and what random tests pass over.
func Markdown(cases []Case, passed []PassedOver) string {
	count := map[Decision]int{}
	for _, c := range cases {
		count[c.Decided]++
	}
	var b strings.Builder
	fmt.Fprintf(&b, `# Differential cases

The reference is an independent reading of the documents. So where it differs from real Kubernetes,
one of them is wrong, or no document decides. Random tests look for such differences.

`+"```console"+`
$ conformance differential api --for 10m
$ conformance differential endpoints --for 10m
$ conformance differential dns --for 10m
$ conformance differential traffic --for 10m --proxy-mode nftables
`+"```"+`

The first command sends random requests to the reference and to a kube-apiserver of the lab. The second
one has Pods that come, change and go, and compares the EndpointSlices and Endpoints that controllers
make. The third and the fourth one make random Services and EndpointSlices, and change them. The third one
asks the DNS for their names and addresses. The fourth one sends traffic from pods, nodes and outside.
What differs twice is shrunk and printed as commands that show it, with both answers.
It is written to a file that the same command takes. The last line says how the run goes on.

The first one sends no protobuf, though it reads it. Its ServiceCIDRs are parts of the range that the
server has. It does not watch them, nor write their status, and its stories end where one is deleted,
or the IPAddress of a Service. The second one deletes no Service, for no garbage
collector runs. No pod of it ends that was not ready before, and no Service becomes an alias. How
endpoints are divided into slices is left open. The third one asks for nothing that the DNS specification
leaves open, such as names of Pods. None compares the texts of messages, shares of traffic, or what a
server chooses by itself.

Figures, all of Kubernetes v1.37.1 and beside other work:

| suite | compared | a second | classes |
|---|--:|--:|---|
| api, without ServiceCIDRs and IPAddresses | 846,142 requests | 280 | 11: two defects of kube-apiserver (K8, `+"`api-node-port-chosen`"+`), and what was tolerated before in another form |
| api, with them | 166,019 requests | 200 | 2: W28, and a defect of kube-apiserver (`+"`alloc-service-cidr-dry-run`"+`) |
| endpoints | 27,621 requests in 2,404 stories | 90 | none, after what the second paragraph leaves out |
| dns, CoreDNS v1.14.6 | 158,820 questions of 6,568 zones | 1,050 | 2: a defect of CoreDNS (`+"`proxy-dns-externalname-dangling`"+`), and names that it has beyond the document |
| traffic, iptables | 21,344 topologies | 2.6 | none |
| traffic, nftables | 10,000 topologies | 5.6 | none |

Inputs follow from a seed. `+"`make differential`"+` runs all of it. CI replays the
cases, and has new inputs for a minute with each change. What these show is told and fails the night alone.

## Cases

These classes of requests were answered differently by kube-apiserver v1.37.1. Classes W were found as
mistakes of the reference, classes K as deviations of Kubernetes. The requests are in
`+"`fixtures/differential/`"+`.

%d classes: the reference was corrected in %d, Kubernetes deviates in %d, and %d are tolerated.

`+"```console"+`
$ conformance differential replay
$ conformance differential replay --kubeconfig FILE
`+"```"+`

The first command replays all cases against the reference, the second against another API server.

| class | operation | reference before | reference now | Kubernetes | decision |
|---|---|---|---|---|---|
`, len(cases), count[Corrected], count[Deviation], count[Tolerated])
	for _, c := range cases {
		decision := fmt.Sprintf("%s. %s", c.Decided, c.Why)
		if c.Requirement != "" {
			decision += fmt.Sprintf(" (`%s`)", c.Requirement)
		}
		fmt.Fprintf(&b, "| %s: %s | %s | %s | %s | %s | %s |\n", c.Class, c.Name, cell(c.Operation), cell(c.Before), cell(c.AnswerNow()), cell(c.Kubernetes), cell(decision))
	}
	b.WriteString(`
## What random tests pass over

A run counts these and shows the counts. Some are known deviations, and others are decided by no
document.

| test | class | what both do | source |
|---|---|---|---|
`)
	for _, d := range passed {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", d.Suite, d.Name, cell(d.Why), cell(cmp.Or(d.Source, "-")))
	}
	return b.String()
}

// cell is a text that does not end its cell.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}
