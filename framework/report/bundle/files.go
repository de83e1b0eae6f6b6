// Package bundle is what a vendor submits: the report of a run of all that an implementation claims, with its faces, logs and checksums. It writes bundles and
// verifies those of others, whose every byte it distrusts.
package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds of what is read: some ten times what the largest run writes.
const (
	mostFiles   = 2000
	largestFile = 64 << 20
	largestAll  = 256 << 20
)

// Files are the files of a bundle by their slash-separated paths.
type Files map[string][]byte

// Open reads a bundle, which is a folder or a .tar.gz of one, into memory. It refuses what is too large, links, and names that leave the folder. The error is
// one line.
func Open(name string) (Files, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("read bundle: %w", err)
	}
	if info.IsDir() {
		return openFolder(name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read bundle: %w", err)
	}
	defer f.Close()
	files, err := readArchive(f)
	if err != nil {
		return nil, fmt.Errorf("read bundle %s: %w", name, err)
	}
	return files, nil
}

func openFolder(dir string) (Files, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("read bundle %s: %w", dir, err)
	}
	defer root.Close()
	files := Files{}
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if !entry.Type().IsRegular() {
			return fmt.Errorf("%q is no ordinary file", name)
		}
		f, err := root.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		return files.add(name, f)
	})
	if err != nil {
		return nil, fmt.Errorf("read bundle %s: %w", dir, err)
	}
	return files, nil
}

// readArchive reads a .tar.gz whose files are all in one folder.
func readArchive(r io.Reader) (Files, error) {
	unzipped, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("this is neither a folder nor a .tar.gz: %w", err)
	}
	files, top := Files{}, ""
	archive := tar.NewReader(unzipped)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the archive is broken: %w", err)
		}
		name := header.Name
		switch {
		case strings.Contains(name, `\`) || !filepath.IsLocal(name):
			return nil, fmt.Errorf("%q leaves the folder of the archive", name)
		case header.Typeflag == tar.TypeDir:
			continue
		case header.Typeflag != tar.TypeReg:
			return nil, fmt.Errorf("%q is no ordinary file", name)
		}
		first, inside, found := strings.Cut(path.Clean(name), "/")
		if !found || top != "" && first != top {
			return nil, fmt.Errorf("%q is not in the one folder that an archive holds", name)
		}
		top = first
		if err := files.add(inside, archive); err != nil {
			return nil, err
		}
	}
}

// add reads a file.
func (files Files) add(name string, r io.Reader) error {
	if _, twice := files[name]; twice {
		return fmt.Errorf("%q is in it twice", name)
	}
	if len(files) == mostFiles {
		return fmt.Errorf("it holds more than %d files, which no bundle does", mostFiles)
	}
	data, err := io.ReadAll(io.LimitReader(r, largestFile+1))
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	if len(data) > largestFile {
		return fmt.Errorf("%q is larger than %d MiB, which no file of a bundle is", name, largestFile>>20)
	}
	files[name] = data
	all := 0
	for _, data := range files {
		all += len(data)
	}
	if all > largestAll {
		return fmt.Errorf("it is larger than %d MiB, which no bundle is", largestAll>>20)
	}
	return nil
}

// names are the paths in order.
func (files Files) names() (names []string) {
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// archive is the .tar.gz of the files in a folder of that name. It is the same for the same files.
func (files Files) archive(folder string) ([]byte, error) {
	var out bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(zipped)
	for _, name := range files.names() {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: path.Join(folder, name), Mode: 0o644, Size: int64(len(files[name])), Format: tar.FormatPAX}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(files[name]); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(archive.Close(), zipped.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
