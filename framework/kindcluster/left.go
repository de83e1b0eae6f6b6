package kindcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/service-conformance/conformance/internal/scratch"
)

// scratchKind is that of the folders in which Create writes what clusters are made from.
const scratchKind = "kind"

const configSuffix = ".yaml"

func init() { scratch.OnSweep(scratchKind, deleteLeft) }

// NewFolder makes a folder for the files of clusters. If this process is killed, the next one finds by them which clusters it has made, and deletes those.
func NewFolder() (*scratch.Folder, error) { return scratch.New(scratchKind) }

// deleteLeft deletes the clusters that were made from files in a folder, or by commands.
func deleteLeft(folder string) error {
	return errors.Join(tearDownLeft(folder), deleteKind(folder))
}

// Commands are the names of the clusters that were made by commands, have files in a folder, and were not removed.
func Commands(folder string) (names []string, err error) {
	records, err := filepath.Glob(filepath.Join(folder, "*"+recordSuffix))
	for _, r := range records {
		names = append(names, strings.TrimSuffix(filepath.Base(r), recordSuffix))
	}
	return names, err
}

// tearDownLeft calls the teardown commands of the clusters that were made by commands.
func tearDownLeft(folder string) error {
	names, err := Commands(folder)
	errs := []error{err}
	for _, name := range names {
		fmt.Fprintf(os.Stderr, "a killed run may have left cluster %s: its teardown command is called\n", name)
		if err := tearDown(folder, name); err != nil {
			errs = append(errs, fmt.Errorf("cluster %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

func tearDown(folder, name string) error {
	text, err := os.ReadFile(filepath.Join(folder, name+recordSuffix))
	if err != nil {
		return err
	}
	var l left
	if err := json.Unmarshal(text, &l); err != nil {
		return fmt.Errorf("%s: %w", name+recordSuffix, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), teardownWithin)
	defer cancel()
	c := &Command{Name: l.Name, ServiceCIDR: l.ServiceCIDR, Teardown: l.Teardown, Folder: folder, begun: true, dir: l.Folder}
	return c.Destroy(ctx)
}

// Remaining are the names of the clusters that were made from files in a folder, or by commands, and are still there.
func Remaining(folder string) ([]string, error) {
	names, err := Commands(folder)
	made, failed := madeIn(folder)
	if err = errors.Join(err, failed); err != nil || len(made) == 0 {
		return names, err
	}
	there, err := NewKind("", "").clusters()
	for _, name := range made {
		if slices.Contains(there, name) {
			names = append(names, name)
		}
	}
	return names, err
}

// deleteKind deletes the clusters of kind that were made from files in a folder.
func deleteKind(folder string) error {
	names, err := madeIn(folder)
	if err != nil || len(names) == 0 {
		return err
	}
	there, err := NewKind("", "").clusters()
	if err != nil {
		return fmt.Errorf("clusters %s: %w", strings.Join(names, ", "), err)
	}
	var errs []error
	for _, name := range names {
		if !slices.Contains(there, name) {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), destroyWithin)
		if err := NewKind(name, kubeconfigPath(folder, name)).Destroy(ctx); err != nil {
			errs = append(errs, fmt.Errorf("cluster %s: %w", name, err))
		}
		cancel()
	}
	return errors.Join(errs...)
}

// madeIn are the names of the clusters that were made from files in a folder. One that was there before has none.
func madeIn(folder string) (names []string, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*"+configSuffix))
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), configSuffix))
	}
	return names, err
}
