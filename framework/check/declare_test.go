package check

import (
	"runtime"
	"testing"
)

func TestPlaced(t *testing.T) {
	for function, want := range map[string][2]string{
		module + "suites/proxy.init.func1.2":    {"proxy", "suites/proxy/a.go:3"},
		"example.org/other.git/mine.init.func1": {"mine", "example.org/other.git/mine/a.go:3"},
		"main.main":                             {"cmd", "main/a.go:3"},
	} {
		suite, location := placed(&runtime.Frame{Function: function, File: "/src/" + want[0] + "/a.go", Line: 3})
		if suite != want[0] || location != want[1] {
			t.Errorf("%s: suite %s at %s, want %s", function, suite, location, want)
		}
	}
}
