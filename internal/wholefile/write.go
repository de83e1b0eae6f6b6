// Package wholefile writes files that appear complete or not at all. A reader sees the old content or the new one.
package wholefile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write writes data to the file, with these permissions whatever the umask. It replaces a file that is there.
func Write(path string, data []byte, mode fs.FileMode) error {
	return Stream(path, mode, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Stream is Write for content that is made while it is written. If content fails, its error is returned and path is left as it was.
func Stream(path string, mode fs.FileMode, content func(io.Writer) error) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-") // in the same folder, so that the rename is one step
	if err != nil {
		return err
	}
	err = content(file)
	if err == nil {
		err = file.Chmod(mode)
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}
