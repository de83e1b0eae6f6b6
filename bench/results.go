package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// results is the folder of what was measured: a folder for each version of the program, a file for each machine.
const results = "results"

// Spread is what several measurements of a figure gave.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

func spreadOf(values []float64) Spread {
	return Spread{Median: median(values), Min: slices.Min(values), Max: slices.Max(values)}
}

// Measurement is what a command took.
type Measurement struct {
	Name    string `json:"name"`
	Command string `json:"command"`
	// Commit is that of the program, with "+" if it was built with changes.
	Commit string    `json:"commit"`
	Date   time.Time `json:"date"`
	// N is how often it was run.
	N int `json:"n"`
	// Wall is in seconds. Processor is in seconds, of the whole machine, so it counts containers too.
	Wall      Spread `json:"wall"`
	Processor Spread `json:"processor"`
	// Busy is the share of the processors that worked for others just before the first run, from 0 to 1: above quietShare the machine was not quiet.
	Busy float64 `json:"busy"`
	// Memory is the largest resident set of one process of the command, in MiB.
	Memory  Spread `json:"memory,omitzero"`
	Checks  int    `json:"checks,omitempty"`
	Verdict string `json:"verdict,omitempty"`
	// Changes, P50 and P99 are the time to consistency of the run in the middle, in seconds.
	Changes int     `json:"changes,omitempty"`
	P50     float64 `json:"p50,omitempty"`
	P99     float64 `json:"p99,omitempty"`
}

// Allocator is one allocation and one release, in nanoseconds, in a range that is so full, in percent.
type Allocator struct {
	Full       int     `json:"full"`
	Reference  float64 `json:"reference"`
	Kubernetes float64 `json:"kubernetes"`
}

// File is all that was measured of a version on a machine.
type File struct {
	Version    string        `json:"version"`
	Machine    Machine       `json:"machine"`
	Runs       []Measurement `json:"runs,omitempty"`
	Servers    *Servers      `json:"servers,omitempty"`
	Allocators []Allocator   `json:"allocators,omitempty"`
}

func (f *File) path() string { return filepath.Join(results, f.Version, f.Machine.name()+".json") }

// open reads what was measured of the version on this machine so far; there may be nothing.
func open(version string) (*File, error) {
	f := &File{Version: version, Machine: thisMachine()}
	text, err := os.ReadFile(f.path())
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		err = json.Unmarshal(text, f)
	}
	f.Machine = thisMachine()
	return f, err
}

// put enters a measurement in the place of an older one of the same name. Runs are in the order of the cases.
func (f *File) put(m Measurement) {
	f.Runs = slices.DeleteFunc(f.Runs, func(old Measurement) bool { return old.Name == m.Name })
	f.Runs = append(f.Runs, m)
	slices.SortStableFunc(f.Runs, func(a, b Measurement) int { return place(a.Name) - place(b.Name) })
}

func (f *File) save() error {
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(f.path()), 0o755); err != nil {
		return err
	}
	return os.WriteFile(f.path(), append(text, '\n'), 0o644)
}

// latest are the files of the newest version: the folder whose name is the last one in the order of versions.
func latest() ([]*File, error) {
	versions, err := os.ReadDir(results)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, v := range versions {
		names = append(names, v.Name())
	}
	if len(names) == 0 {
		return nil, errors.New("nothing was measured: run bench runs")
	}
	slices.SortFunc(names, compareVersions)
	paths, err := filepath.Glob(filepath.Join(results, names[len(names)-1], "*.json"))
	if err != nil {
		return nil, err
	}
	var files []*File
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		f := &File{}
		if err := json.Unmarshal(text, f); err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// compareVersions orders releases, and puts what is none ("devel") behind all of them.
func compareVersions(a, b string) int {
	va, vb := strings.HasPrefix(a, "v"), strings.HasPrefix(b, "v")
	switch {
	case va && vb:
		return semver(a).Compare(semver(b))
	case va:
		return -1
	case vb:
		return 1
	}
	return strings.Compare(a, b)
}

func median(values []float64) float64 {
	slices.Sort(values)
	if n := len(values); n%2 == 0 {
		return (values[n/2-1] + values[n/2]) / 2
	}
	return values[len(values)/2]
}
