package gitguard

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/runner/workspace"
)

// lay makes files, and folders for names that end in a slash.
func lay(t *testing.T, root string, names ...string) *workspace.Snapshot {
	t.Helper()
	base := &workspace.Snapshot{}
	for _, name := range names {
		path := filepath.Join(root, name)
		dir := path
		if name[len(name)-1] != '/' {
			dir = filepath.Dir(path)
		} else {
			base.Entries = append(base.Entries, workspace.Entry{Path: workspace.Path(filepath.Clean(name)), Type: workspace.TypeDir})
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if dir != path {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return base
}

func TestWhatIsGuardedOfRepositories(t *testing.T) {
	whole := func(git string) (names []string) {
		for _, name := range gitFiles {
			names = append(names, git+"/"+name)
		}
		return names
	}
	for name, c := range map[string]struct {
		files   []string
		inPlace bool
		want    []string
	}{
		"none":                           {[]string{"a"}, true, nil},
		"a repository":                   {[]string{".git/config"}, true, whole(".git")},
		"a work tree's file":             {[]string{".git"}, true, []string{".git"}},
		"one in a folder":                {[]string{"sub/", "sub/.git/config"}, true, whole("sub/.git")},
		"one in a folder, copied":        {[]string{".git/config", "sub/", "sub/.git/config"}, false, whole(".git")},
		"a module":                       {[]string{"m/", "m/.git", ".git/modules/g/m/HEAD"}, true, append(append(whole(".git"), whole(".git/modules/g/m")...), "m/.git")},
		"a module of a module":           {[]string{".git/modules/m/HEAD", ".git/modules/m/modules/n/HEAD"}, true, slices.Concat(whole(".git"), whole(".git/modules/m"), whole(".git/modules/m/modules/n"))},
		"a folder of modules, with none": {[]string{".git/modules/x/y"}, true, whole(".git")},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			base := lay(t, root, c.files...)
			got := Files(root, base, c.inPlace)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			for _, n := range got {
				if filepath.Base(n) != "hooks" {
					continue
				}
				if info, err := os.Stat(filepath.Join(root, n)); err != nil || !info.IsDir() {
					t.Errorf("%s is not there to be protected: %v", n, err)
				}
			}
		})
	}
}
