//go:build !linux

package journal

import (
	"errors"
	"os"
	"path/filepath"
)

// syncFilesystem syncs every file in dir, on systems without syncfs.
func syncFilesystem(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}
