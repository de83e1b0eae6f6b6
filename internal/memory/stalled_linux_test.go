package memory

import (
	"testing"
	"time"
)

func TestParsePressure(t *testing.T) {
	got, ok := parsePressure([]byte("some avg10=0.00 avg60=18.18 avg300=55.63 total=563607801\nfull avg10=0.00 avg60=9.28 avg300=32.09 total=334826706\n"))
	if want := 563607801 * time.Microsecond; !ok || got != want {
		t.Errorf("%s, %t; want %s", got, ok, want)
	}
	for _, s := range []string{"", "full avg10=0.00 total=1\n", "some avg10=0.00\n", "some total=many\n"} {
		if _, ok := parsePressure([]byte(s)); ok {
			t.Errorf("%q was understood", s)
		}
	}
}
