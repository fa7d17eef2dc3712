package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// OverlookedPolicies says which policies a repository seems to bring and LoadRepository does
// not read: those in sub folders, and those of the repository above the folder dir.
func OverlookedPolicies(dir string) (warnings []string) {
	policies := filepath.Join(dir, RepositoryPolicies)
	for _, e := range someNames(policies) {
		name := filepath.Join(policies, e.Name())
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && bringsManifests(name) {
			warnings = append(warnings, fmt.Sprintf("the policies in %q are not read: move them into %s itself", filepath.Join(RepositoryPolicies, e.Name()), RepositoryPolicies))
		}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return warnings
	}
	var above []string
	for at := dir; ; at = filepath.Dir(at) {
		if name := filepath.Join(at, RepositoryPolicies); at != dir && bringsManifests(name) {
			above = append(above, fmt.Sprintf("the policies in %q are not read: the run works on a folder below; run it in the one that brings them, or copy them", name))
		}
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return append(warnings, above...)
		}
		if at == filepath.Dir(at) {
			return warnings // it is in no repository
		}
	}
}

// bringsManifests reports whether a folder holds a manifest, or another folder.
func bringsManifests(dir string) bool {
	for _, e := range someNames(dir) {
		if !strings.HasPrefix(e.Name(), ".") && (e.IsDir() || manifestName(e.Name())) {
			return true
		}
	}
	return false
}

// someNames lists a folder that is no link, as far as LoadRepository would; none where it
// cannot be listed.
func someNames(dir string) []os.DirEntry {
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, _ := f.ReadDir(MaxRepositoryNames)
	return entries
}
