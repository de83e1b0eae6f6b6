package kindcluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/service-conformance/conformance/framework/scratch"
)

// scratchKind is that of the folders in which Create writes what clusters are made from.
const scratchKind = "kind"

const configSuffix = ".yaml"

func init() { scratch.OnSweep(scratchKind, deleteLeft) }

// NewFolder makes a folder for the files of clusters. If this process is killed, the next one finds by them which clusters it has made, and deletes those.
func NewFolder() (*scratch.Folder, error) { return scratch.New(scratchKind) }

// deleteLeft deletes the clusters that were made from files in a folder.
func deleteLeft(folder string) error {
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
