//go:build !linux

package journal

import (
	"os"
	"path/filepath"
)

// syncFilesystem syncs every file in dir, where the system has no syncfs.
func syncFilesystem(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := syncPath(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}
