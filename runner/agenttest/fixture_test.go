package agenttest

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// tree lists the files of a folder with their contents; of a link, where it leads to.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case d.Type()&fs.ModeSymlink != 0:
			all[rel], err = os.Readlink(path)
		case d.Type().IsRegular():
			var text []byte
			text, err = os.ReadFile(path) //nolint:gosec // of this test
			all[rel] = string(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFixturesAreWhatTheTestDeclares(t *testing.T) {
	source, outside := filepath.Join(t.TempDir(), "source"), t.TempDir()
	put(t, filepath.Join(source, "a.txt"), "a")
	put(t, filepath.Join(source, "sub", "b.txt"), "b")
	put(t, filepath.Join(outside, "victim"), "safe")
	for name, to := range map[string]string{"inside": "a.txt", "out": outside} {
		if err := os.Symlink(to, filepath.Join(source, name)); err != nil {
			t.Fatal(err)
		}
	}
	folder := &v1alpha1.TestFolder{Path: source}
	for name, c := range map[string]struct {
		reason string
		w      v1alpha1.TestWorkspace
		want   map[string]string
		err    string
	}{
		"nothing":   {"an empty folder", v1alpha1.TestWorkspace{}, map[string]string{}, ""},
		"files":     {"texts by their path", v1alpha1.TestWorkspace{Files: map[string]string{"x": "1", "d/e/y": "2"}}, map[string]string{"x": "1", "d/e/y": "2"}, ""},
		"source":    {"a folder with its links", v1alpha1.TestWorkspace{Source: folder}, map[string]string{"a.txt": "a", "sub/b.txt": "b", "inside": "a.txt", "out": outside}, ""},
		"both":      {"texts take the place of files", v1alpha1.TestWorkspace{Source: folder, Files: map[string]string{"a.txt": "other", "sub/c": "c"}}, map[string]string{"a.txt": "other", "sub/b.txt": "b", "sub/c": "c", "inside": "a.txt", "out": outside}, ""},
		"link":      {"a link that leads out is not written through", v1alpha1.TestWorkspace{Source: folder, Files: map[string]string{"out/victim": "broken"}}, nil, "path escapes"},
		"above":     {"nor is a path that does", v1alpha1.TestWorkspace{Files: map[string]string{"../x": "broken"}}, nil, "path escapes"},
		"no folder": {"a folder that is not there", v1alpha1.TestWorkspace{Source: &v1alpha1.TestFolder{Path: source + "/none"}}, nil, "no such file"},
		"a file":    {"a source is a folder", v1alpha1.TestWorkspace{Source: &v1alpha1.TestFolder{Path: source + "/a.txt"}}, nil, "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := newFixtures(t.TempDir()).of(t.Context(), &c.w)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("%s: %v", c.reason, err)
			}
			if err == nil {
				if diff := cmp.Diff(c.want, tree(t, dir)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", c.reason, diff)
				}
			}
			if diff := cmp.Diff(map[string]string{"victim": "safe"}, tree(t, outside)); diff != "" {
				t.Errorf("files outside were changed:\n%s", diff)
			}
		})
	}
}

func TestEqualFilesAreMadeOnce(t *testing.T) {
	f := newFixtures(t.TempDir())
	one, two := &v1alpha1.TestWorkspace{Files: map[string]string{"a": "1"}}, &v1alpha1.TestWorkspace{Files: map[string]string{"a": "1"}}
	other := &v1alpha1.TestWorkspace{Files: map[string]string{"a": "2"}}
	var dirs []string
	for _, w := range []*v1alpha1.TestWorkspace{one, two, other} {
		dir, err := f.of(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	if dirs[0] != dirs[1] || dirs[0] == dirs[2] {
		t.Errorf("folders %v", dirs)
	}
}

// TestACommitIsTheSameEachTime, whatever the user's git is configured to do.
func TestACommitIsTheSameEachTime(t *testing.T) {
	hooks := t.TempDir()
	put(t, filepath.Join(hooks, "pre-commit"), "#!/bin/sh\ntouch "+hooks+"/ran\nexit 1\n")
	if err := os.Chmod(filepath.Join(hooks, "pre-commit"), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "config")
	put(t, config, "[core]\n hooksPath = "+hooks+"\n[user]\n name = somebody\n[commit]\n gpgSign = true\n[init]\n defaultBranch = other\n")
	t.Setenv("GIT_CONFIG_GLOBAL", config)
	t.Setenv("GIT_DIR", t.TempDir())
	ids := map[string]bool{}
	for range 2 {
		w := &v1alpha1.TestWorkspace{Files: map[string]string{"a": "1", ".gitignore": "ignored\n", "ignored": "x"}, Commit: "--amend is no option here"}
		dir, err := newFixtures(t.TempDir()).of(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "git", "-c", "safe.directory=*", "log", "--format=%H %an %s %D", "--name-only")
		cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		id, rest, _ := strings.Cut(string(out), " ")
		if ids[id] = true; rest != "agentctl --amend is no option here HEAD -> main\n\n.gitignore\na\n" {
			t.Errorf("the repository holds %q", rest)
		}
	}
	if len(ids) != 1 {
		t.Errorf("the same files are commits %v", ids)
	}
	if _, err := os.Stat(filepath.Join(hooks, "ran")); err == nil {
		t.Error("a hook of the user has run")
	}
}

func TestACommitNeedsNoOtherRepository(t *testing.T) {
	source := t.TempDir()
	put(t, filepath.Join(source, ".git", "config"), "[core]\n fsmonitor = touch "+source+"/ran\n")
	_, err := newFixtures(t.TempDir()).of(t.Context(), &v1alpha1.TestWorkspace{Source: &v1alpha1.TestFolder{Path: source}, Commit: "x"})
	if err == nil || !strings.Contains(err.Error(), "is a repository already") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(source, "ran")); err == nil {
		t.Error("the configuration of the source has started a program")
	}
}
