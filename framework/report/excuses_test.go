package report

import "testing"

func TestAnExcuseMayBeRewordedButNotWidened(t *testing.T) {
	listed := Expectation{Requirement: "api-ports-list", Check: "*: one", ProxyMode: "ipvs", Reason: "Old words.", Source: "a.go", Expires: "2027-12-31"}
	reworded := listed
	reworded.Reason, reworded.Source, reworded.Link = "New words.", "a.go line 7", "https://example.com"
	reworded.WaitsFor, reworded.Expires = "a fix", "2027-04-30"
	if !listed.Excuses(&reworded) {
		t.Error("other words make another excuse")
	}
	for name, change := range map[string]func(*Expectation){
		"check":        func(x *Expectation) { x.Check = "" },
		"mode":         func(x *Expectation) { x.ProxyMode = "" },
		"versions":     func(x *Expectation) { x.Versions = "<1.40" },
		"intermittent": func(x *Expectation) { x.Intermittent = true },
		"requirement":  func(x *Expectation) { x.Requirement = "api-port-values" },
	} {
		wider := reworded
		change(&wider)
		if listed.Excuses(&wider) {
			t.Errorf("an excuse with another %s is taken for the listed one", name)
		}
	}
}
