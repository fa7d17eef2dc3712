package manifest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"

	"agentctl.dev/agentctl/api/reason"
)

// maxFolders bounds the folders that are searched.
const maxFolders = 10000

// Find returns the paths that Load reads for one path: itself, and recursive also the
// folders below it. Load reports what cannot be read.
func Find(path string, recursive bool) ([]string, error) {
	info, err := os.Stat(path)
	if path == "-" || err != nil || !info.IsDir() {
		return []string{path}, nil //nolint:nilerr // Load reports it, with its place
	}
	if !recursive || Kustomized(path) {
		return []string{path}, nil
	}
	var all []string
	folders := 0
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() {
			return nil
		}
		if p != path && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if folders++; folders > maxFolders {
			return fmt.Errorf("more than %d folders", maxFolders)
		}
		if Kustomized(p) { // it names the folders below it that belong to it
			all = append(all, p)
			return fs.SkipDir
		}
		if holdsManifests(p) {
			all = append(all, p)
		}
		return nil
	})
	if err != nil {
		return nil, reason.Usagef("search %s: %w", path, err)
	}
	if len(all) == 0 {
		return nil, reason.Usagef("%s and the folders in it hold no manifest: no file ends in .yaml, .yml or .json", path)
	}
	return all, nil
}

// Kustomized reports whether a folder holds a kustomization.
func Kustomized(dir string) bool {
	return slices.ContainsFunc(konfig.RecognizedKustomizationFileNames(), func(name string) bool {
		info, err := os.Stat(filepath.Join(dir, name))
		return err == nil && info.Mode().IsRegular()
	})
}

func holdsManifests(dir string) bool {
	entries, _ := os.ReadDir(dir) // one that cannot be read has been reported by the walk
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return !e.IsDir() && !strings.HasPrefix(e.Name(), ".") && slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(e.Name())))
	})
}
