package dataplane

import (
	"strings"
	"testing"
)

func TestAPlaceIsFoundByTheNamesThatUsersGiveIt(t *testing.T) {
	var places []Place
	for i, name := range []string{"node-1", "outside", "a/web", "b/web", "default/db", "other/db", "other/only", "default/node-1"} {
		places = append(places, Place{Name: name, Descriptor: i})
	}
	for name, want := range map[string]string{
		"node-1": "node-1", "default/node-1": "default/node-1", "outside": "outside", "b/web": "b/web", "db": "default/db", "other/db": "other/db", "only": "other/only",
	} {
		if p, err := FindPlace(places, name); err != nil || p.Name != want {
			t.Errorf("%s: %+v, %v; want %s", name, p, err, want)
		}
	}
	for name, want := range map[string]string{
		"web": "name one of a/web, b/web", "nope": "there are node-1, outside, a/web", "c/web": `no node or pod "c/web"`, "": "no node or pod", "eb": "no node or pod", "b/": "no node or pod",
	} {
		if p, err := FindPlace(places, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v; want %q", name, p, err, want)
		}
	}
}

func TestManyPlacesAreNamedOnOneLine(t *testing.T) {
	var places []Place
	for range 500 {
		places = append(places, Place{Name: "default/some-pod"})
	}
	if _, err := FindPlace(places, "x"); len(err.Error()) > 1000 || !strings.Contains(err.Error(), "480 more") {
		t.Errorf("%v", err)
	}
}
