package report

import (
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"strings"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
	"github.com/service-conformance/conformance/framework/words"
)

// bandPicture is a Service range to scale. It shows the place of each address that was handed out from left to right,
// and its turn from top to bottom.
type bandPicture struct {
	Name, Range      string
	Width, Height    int    // in units of the picture: addresses, turns
	StaticX, StaticW int    // the static band
	Static, Dynamic  string // paths, one stroke for each address of a band
	MarkWidth        int
	Words            []words.Phrase
}

// turns is the height of the picture in units: each address has as much of it as there are addresses.
const turns = 300

func bandsOf(name string, a *check.Addresses) bandPicture {
	cidr, err := netip.ParsePrefix(a.ServiceCIDR)
	if err != nil {
		return bandPicture{Name: name, Range: a.ServiceCIDR}
	}
	bands := check.BandsOf(cidr)
	size := 1 << min(31, cidr.Addr().BitLen()-cidr.Bits())
	p := bandPicture{
		Name: name, Range: a.ServiceCIDR, Width: size, Height: turns, StaticX: 1, StaticW: bands.Offset,
		MarkWidth: max(1, size/256),
	}
	var static, dynamic strings.Builder
	inStatic := 0
	for i, offset := range a.Offsets {
		path := &dynamic
		if bands.InStatic(check.AddressPlus(bands.Network, big.NewInt(int64(offset)))) {
			path = &static
			inStatic++
		}
		fmt.Fprintf(path, "M%d %dh%d", offset, i*turns/len(a.Offsets), p.MarkWidth)
	}
	p.Static, p.Dynamic = static.String(), dynamic.String()
	what := words.Say("bands-of", name, len(a.Offsets), cidr, len(a.Offsets)-inStatic, inStatic)
	if bands.Offset == 0 {
		what = words.Say("bands-none", name, len(a.Offsets), cidr)
	}
	p.Words = []words.Phrase{what, words.Say("bands-axes", bands.Network, bands.Last)}
	if a.Concurrent > 0 {
		p.Words = append(p.Words, words.Say("bands-concurrent", a.Concurrent))
	}
	return p
}

// graph is who reached whom in a demand that was not met.
type graph struct {
	Height       int
	From, To     []node
	Edges        []edge
	Left, Hidden int
}

// HiddenWords say how many edges are not drawn.
func (g *graph) HiddenWords() words.Phrase { return words.Say("graph-hidden", g.Hidden) }

type node struct {
	Text string
	Y    int
}

type edge struct {
	Y1, Y2 int
	Met    bool
	Text   string
}

// Bounds of a graph.
const (
	graphRows = 10
	rowHeight = 34
	graphText = 36
)

func graphOf(cases []check.CaseSeen) *graph {
	if len(cases) == 0 {
		return nil
	}
	g := &graph{}
	place := func(nodes *[]node, text string) (y int, ok bool) {
		if runes := []rune(text); len(runes) > graphText {
			text = string(runes[:graphText-1]) + "…"
		}
		if i := slices.IndexFunc(*nodes, func(n node) bool { return n.Text == text }); i >= 0 {
			return (*nodes)[i].Y, true
		}
		if len(*nodes) == graphRows {
			return 0, false
		}
		y = len(*nodes)*rowHeight + rowHeight/2
		*nodes = append(*nodes, node{text, y})
		return y, true
	}
	for _, c := range cases {
		to := strings.Join(c.To, ", ")
		y1, okFrom := place(&g.From, c.Clients)
		y2, okTo := place(&g.To, to)
		if !okFrom || !okTo {
			g.Hidden++
			continue
		}
		state := "as demanded: "
		if !c.Met {
			state = "not as demanded: "
		}
		g.Edges = append(g.Edges, edge{y1, y2, c.Met, fmt.Sprintf("%s to %s, %s%s (expected: %s)", c.Clients, to, state, c.Observed, c.Expected)})
	}
	slices.SortStableFunc(g.Edges, func(a, b edge) int { // what is not met is drawn last, above the rest
		switch {
		case a.Met == b.Met:
			return 0
		case a.Met:
			return -1
		}
		return 1
	})
	g.Height = max(len(g.From), len(g.To)) * rowHeight
	return g
}

// histogram is the distribution of times to consistency.
type histogram struct {
	*TimeToConsistency
	Bars    []bar
	Words   string
	Summary words.Phrase
}

type bar struct {
	X, Height, Y int
	Count        int
	Label        string
}

// Bounds of the bars in seconds; the last one has no bound.
var barBounds = []float64{0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30}

const (
	barWidth  = 56
	barHeight = 120
)

func (r *Report) histogram() *histogram {
	if r.TimeToConsistency == nil {
		return nil
	}
	counts := make([]int, len(barBounds)+1)
	for i := range r.Checks {
		if r.Checks[i].Suite != string(spec.Proxy) {
			continue
		}
		for _, c := range r.Checks[i].Convergence {
			at, _ := slices.BinarySearch(barBounds, c.Seconds)
			counts[at]++
		}
	}
	t := r.TimeToConsistency
	h := &histogram{TimeToConsistency: t, Summary: words.Say("times-summary", t.Changes, shortTime(t.P50), shortTime(t.P99), shortTime(t.Max))}
	most := max(1, slices.Max(counts))
	var texts []string
	for i, n := range counts {
		label := fmt.Sprintf("> %g s", barBounds[len(barBounds)-1])
		if i < len(barBounds) {
			label = fmt.Sprintf("≤ %g s", barBounds[i])
		}
		height := n * barHeight / most
		if n > 0 {
			height = max(height, 2)
			texts = append(texts, fmt.Sprintf("%s: %d", label, n))
		}
		h.Bars = append(h.Bars, bar{X: i * barWidth, Height: height, Y: barHeight - height, Count: n, Label: label})
	}
	h.Words = strings.Join(texts, ", ")
	return h
}

// shortTime is a time in seconds as it stands on pages.
func shortTime(seconds float64) string { return fmt.Sprintf("%.2f s", seconds) }
