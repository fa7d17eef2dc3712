package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ShareBlobs gives a run the blobs of another one. They are never written again, so both
// have the same files where the file system allows that, and copies elsewhere.
func ShareBlobs(from, to string) error {
	source, target := filepath.Join(from, blobFolder), filepath.Join(to, blobFolder)
	entries, err := os.ReadDir(source)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("share blobs: %w", err)
	}
	if err := os.MkdirAll(target, 0o700); err != nil {
		return fmt.Errorf("share blobs: %w", err)
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || strings.HasPrefix(e.Name(), blobTemp) {
			continue
		}
		place := filepath.Join(target, e.Name())
		if err := os.Link(filepath.Join(source, e.Name()), place); err == nil || errors.Is(err, fs.ErrExist) {
			continue
		}
		b, err := ReadBlob(from, hashPrefix+e.Name())
		if err == nil {
			err = os.WriteFile(place, b, 0o600)
		}
		if err != nil {
			return fmt.Errorf("share blobs: %w", err)
		}
	}
	return nil
}
