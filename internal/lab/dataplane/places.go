package dataplane

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

	"github.com/service-conformance/conformance/internal/lab/process"
	"github.com/service-conformance/conformance/internal/wholefile"
)

// Place is a network namespace of a running lab that a shell can be opened in.
type Place struct {
	// Name of a node, or "outside", or NAMESPACE/NAME of a pod.
	Name      string       `json:"name"`
	Addresses []netip.Addr `json:"addresses"`
	// Descriptor is the file descriptor by which the process of the lab holds the namespace; Inode tells whether it still does.
	Descriptor int    `json:"descriptor"`
	Inode      uint64 `json:"inode"`
}

// placesFile is a file in the folder of a running lab.
const placesFile = "places.json"

// WritePlaces writes down where the nodes and pods of a lab are, for processes outside.
func WritePlaces(d *process.RunDir, places []Place) error {
	b, err := json.MarshalIndent(places, "", "  ")
	if err != nil {
		return err
	}
	return wholefile.Write(d.File(placesFile), append(b, '\n'), 0o600)
}

// ReadPlaces reads what WritePlaces has written into the folder of a lab.
func ReadPlaces(dir string) ([]Place, error) {
	b, err := os.ReadFile(filepath.Join(dir, placesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var places []Place
	if err := json.Unmarshal(b, &places); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, placesFile), err)
	}
	return places, nil
}

// FindPlace finds what a user names: a node before a pod, a pod of the namespace "default" before those of others.
func FindPlace(places []Place, name string) (Place, error) {
	for _, full := range []string{name, "default/" + name} {
		if i := slices.IndexFunc(places, func(p Place) bool { return p.Name == full }); i >= 0 {
			return places[i], nil
		}
	}
	var found []Place
	for _, p := range places {
		if strings.HasSuffix(p.Name, "/"+name) {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 0:
		return Place{}, fmt.Errorf("there is no node or pod %q; there are %s", name, placeNames(places))
	case 1:
		return found[0], nil
	}
	return Place{}, fmt.Errorf("pods of several namespaces are called %q: name one of %s", name, placeNames(found))
}

// placeNames names places, the pods among them up to a number that can be read.
func placeNames(places []Place) string {
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
