package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/service-conformance/conformance/framework/wholefile"
)

// place is a network namespace of a running lab that a shell can be opened in.
type place struct {
	// Name of a node, or "outside", or NAMESPACE/NAME of a pod.
	Name      string       `json:"name"`
	Addresses []netip.Addr `json:"addresses"`
	// Descriptor is the file descriptor by which the process of the lab holds the namespace; Inode tells whether it still does.
	Descriptor int    `json:"descriptor"`
	Inode      uint64 `json:"inode"`
}

// placesFile is a file in the folder of a running lab.
const placesFile = "places.json"

func writePlaces(d *runDir, places []place) error {
	b, err := json.MarshalIndent(places, "", "  ")
	if err != nil {
		return err
	}
	return wholefile.Write(d.file(placesFile), append(b, '\n'), 0o600)
}

func readPlaces(dir string) ([]place, error) {
	b, err := os.ReadFile(filepath.Join(dir, placesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var places []place
	if err := json.Unmarshal(b, &places); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, placesFile), err)
	}
	return places, nil
}

// findPlace finds what a user names: a node before a pod, a pod of the namespace "default" before those of others.
func findPlace(places []place, name string) (place, error) {
	for _, full := range []string{name, "default/" + name} {
		if i := slices.IndexFunc(places, func(p place) bool { return p.Name == full }); i >= 0 {
			return places[i], nil
		}
	}
	var found []place
	for _, p := range places {
		if strings.HasSuffix(p.Name, "/"+name) {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 0:
		return place{}, fmt.Errorf("there is no node or pod %q; there are %s", name, placeNames(places))
	case 1:
		return found[0], nil
	}
	return place{}, fmt.Errorf("pods of several namespaces are called %q: name one of %s", name, placeNames(found))
}

// placeNames names places, the pods among them up to a number that can be read.
func placeNames(places []place) string {
	const most = 20
	var names []string
	for _, p := range places {
		names = append(names, p.Name)
	}
	if len(names) > most {
		names = append(names[:most], fmt.Sprintf("%d more", len(names)-most))
	}
	return strings.Join(names, ", ")
}

// outsideName is the place outside of the cluster.
const outsideName = "outside"
