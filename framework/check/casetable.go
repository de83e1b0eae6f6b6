package check

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/service-conformance/conformance/framework/candidate"
)

// Bounds of a table of cases, so that it fits on a screen.
const (
	tableRows     = 40
	listedClients = 8
	listedPlaces  = 6
)

// row is a line of a table of cases: all clients and destinations of which the same was demanded and observed.
type row struct {
	met                bool
	clients            []candidate.Client
	with               string // what clients have in common beside their place: a source port, a connection that stays open
	places             []string
	expected, observed string
}

// foldCases makes rows of cases. Cases that differ by their client only become one row, and then rows that differ by their destination only.
func foldCases(cases []Case, outcomes [][]candidate.Outcome) []row {
	var byPlace []row
	for i, c := range cases {
		p := c.probe()
		r := row{
			met: c.Want.Met(outcomes[i]), clients: []candidate.Client{c.From}, places: []string{fmt.Sprintf("%s/%s%s", c.To, p.Protocol, c.Path)},
			expected: c.Want.Text, observed: describe(outcomes[i]),
		}
		if c.SourcePort != 0 {
			r.with += fmt.Sprintf(" from port %d", c.SourcePort)
		}
		if c.Connection != "" {
			r.with += fmt.Sprintf(" on connection %q", c.Connection)
		}
		byPlace = append(byPlace, r)
	}
	byPlace = fold(byPlace, func(a, b *row) bool { return slices.Equal(a.places, b.places) }, func(into, from *row) {
		if !slices.Contains(into.clients, from.clients[0]) {
			into.clients = append(into.clients, from.clients[0])
		}
	})
	return fold(byPlace, func(a, b *row) bool { return slices.Equal(a.clients, b.clients) }, func(into, from *row) { into.places = append(into.places, from.places...) })
}

// fold joins rows that are alike, at the place of the first of them.
func fold(rows []row, alike func(a, b *row) bool, join func(into, from *row)) (folded []row) {
	for i := range rows {
		r := &rows[i]
		k := slices.IndexFunc(folded, func(f row) bool {
			return f.met == r.met && f.with == r.with && f.expected == r.expected && f.observed == r.observed && alike(&f, r)
		})
		if k < 0 {
			folded = append(folded, *r)
			continue
		}
		join(&folded[k], r)
	}
	return folded
}

// tableOf describes what was demanded and observed, one line for all cases that fared alike, the unmet ones marked and first.
func tableOf(what string, within time.Duration, held int, cases []Case, outcomes [][]candidate.Outcome) string {
	var b strings.Builder
	switch {
	case held > flaps:
		fmt.Fprintf(&b, "after this: %s\nthe demand held %d times and each time ceased to hold\n", what, held)
	case within > 0:
		fmt.Fprintf(&b, "after this: %s\nnot met within %s\n", what, within)
	default:
		fmt.Fprintf(&b, "at this time: %s\nnot met\n", what)
	}
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tclient\tto\texpected\tobserved")
	rows := unmetFirst(foldCases(cases, outcomes))
	hidden := map[bool]int{} // by whether they are met
	for i, r := range rows {
		mark := "✓"
		if !r.met {
			mark = "✗"
		}
		if i >= tableRows {
			hidden[r.met]++
			continue
		}
		fmt.Fprintf(w, "%s\t%s%s\t%s\t%s\t%s\n", mark, clientsText(r.clients), r.with, listed(r.places, listedPlaces), r.expected, r.observed)
	}
	w.Flush()
	if len(rows) > tableRows {
		fmt.Fprintf(&b, "and %d more lines that are not met, %d that are\n", hidden[false], hidden[true])
	}
	return strings.TrimRight(b.String(), "\n")
}

// unmetFirst sorts rows, those first that are not met.
func unmetFirst(rows []row) []row {
	slices.SortStableFunc(rows, func(a, b row) int {
		switch {
		case a.met == b.met:
			return 0
		case b.met:
			return -1
		}
		return 1
	})
	return rows
}

// casesSeen are the rows of a table of cases, for the report.
func casesSeen(cases []Case, outcomes [][]candidate.Outcome) (seen []CaseSeen) {
	rows := unmetFirst(foldCases(cases, outcomes))
	for _, r := range rows[:min(len(rows), tableRows)] {
		seen = append(seen, CaseSeen{Met: r.met, Clients: clientsText(r.clients) + r.with, To: r.places, Expected: r.expected, Observed: r.observed})
	}
	return seen
}

// clientsText names clients, those of one kind together: "pods a, b; hosts of node-1, node-2; outside by node-1 (32 addresses)".
func clientsText(clients []candidate.Client) string {
	var pods, hosts, gateways, rest []string
	addresses := map[string][]string{}
	for _, c := range clients {
		switch {
		case c.Gateway != "":
			if addresses[c.Gateway] == nil {
				gateways = append(gateways, c.Gateway)
			}
			addresses[c.Gateway] = append(addresses[c.Gateway], fmt.Sprint(c.Address+1))
		case c.Node != "":
			hosts = append(hosts, c.Node)
		case c.Balanced:
			rest = append(rest, c.String())
		default:
			pods = append(pods, c.Pod.Name)
		}
	}
	for i, g := range gateways {
		switch as := addresses[g]; {
		case len(as) == 1 && as[0] == "1":
		case len(as) == 1:
			gateways[i] += " (address " + as[0] + ")"
		default:
			gateways[i] += " (addresses " + listed(as, 3) + ")"
		}
	}
	var kinds []string
	for _, kind := range []struct {
		one, several string
		names        []string
	}{{"outside by ", "outside by ", gateways}, {"pod ", "pods ", pods}, {"host of ", "hosts of ", hosts}, {"", "", rest}} {
		switch len(kind.names) {
		case 0:
		case 1:
			kinds = append(kinds, kind.one+kind.names[0])
		default:
			kinds = append(kinds, kind.several+listed(kind.names, listedClients))
		}
	}
	return strings.Join(kinds, "; ")
}

// listed joins the first words of a list and says how many more there are.
func listed(words []string, most int) string {
	if len(words) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), len(words)-most)
	}
	return strings.Join(words, ", ")
}
