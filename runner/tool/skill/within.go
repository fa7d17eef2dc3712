package skill

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// maxWithin bounds how deep a skill may be in an image that does not name its folder.
const maxWithin = 8

// Within returns the folder of the skill in the files of an image: the one that is named,
// else their root, or the only folder in it, and so on.
func Within(dir, named string) (string, error) {
	if named != "" {
		if !filepath.IsLocal(named) {
			return "", fmt.Errorf("dir: %q is not a folder of the image: write its path from the root of the image", short(named))
		}
		return filepath.Join(dir, filepath.FromSlash(named)), nil
	}
	for range maxWithin {
		if _, err := os.Lstat(filepath.Join(dir, File)); err == nil {
			return dir, nil
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return "", cause(err)
		}
		if len(entries) != 1 || !entries[0].IsDir() {
			return "", severalFolders(entries)
		}
		dir = filepath.Join(dir, entries[0].Name())
	}
	return "", fmt.Errorf("there is no %s in its first %d folders: name the folder with spec.dir", File, maxWithin)
}

// severalFolders is the error for an image that does not show which folder is the skill.
func severalFolders(entries []os.DirEntry) error {
	const most = 10
	var names []string
	for _, e := range entries {
		if e.IsDir() && len(names) < most {
			names = append(names, Line(e.Name()))
		}
	}
	if len(names) == 0 {
		return errors.New("there is no " + File)
	}
	return fmt.Errorf("there is no %s at its root: name the folder with spec.dir, perhaps %s", File, strings.Join(names, ", "))
}
