package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const small = "apiVersion: agentctl.dev/v1alpha1\nkind: Policy\nmetadata: {name: p%d}\nspec: {rules: [{name: a, match: {}, action: deny}]}\n"

// repositoryWith returns a folder with a folder of policies in it.
func repositoryWith(t *testing.T) (dir, policies string) {
	t.Helper()
	dir = t.TempDir()
	policies = filepath.Join(dir, RepositoryPolicies)
	if err := os.MkdirAll(policies, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir, policies
}

func writeText(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestPoliciesOfARepositoryAreReadByName(t *testing.T) {
	dir, policies := repositoryWith(t)
	writeText(t, policies+"/b.yaml", fmt.Sprintf(small, 2))
	writeText(t, policies+"/a.yml", fmt.Sprintf(small, 1))
	writeText(t, policies+"/.hidden.yaml", "nothing: [")
	writeText(t, policies+"/README.md", "nothing")
	writeText(t, policies+"/b_tests.yaml", "policy: p2\ntests: []\n")
	if err := os.Mkdir(policies+"/sub.yaml", 0o755); err != nil {
		t.Fatal(err)
	}
	set, found := LoadRepository(t.Context(), dir)
	if len(found) > 0 {
		t.Fatal(found)
	}
	var names []string
	for _, d := range set.Documents {
		names = append(names, d.Name+" "+strings.TrimPrefix(d.File, dir))
	}
	if got, want := strings.Join(names, ", "), "p1 /.agentctl/policies/a.yml, p2 /.agentctl/policies/b.yaml"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, empty := range []string{t.TempDir(), filepath.Join(t.TempDir(), "gone")} {
		set, found := LoadRepository(t.Context(), empty)
		if len(set.Documents) > 0 || found.HasErrors() != strings.HasSuffix(empty, "gone") {
			t.Errorf("%s: %d documents, %v", empty, len(set.Documents), found)
		}
	}
}

// A repository is foreign: what it brings is bounded, and no name in it leads anywhere else.
func TestPoliciesOfARepositoryAreBoundedAndLinksAreNotFollowed(t *testing.T) {
	outside := t.TempDir()
	writeText(t, outside+"/policies.yaml", fmt.Sprintf(small, 1))
	for name, c := range map[string]struct {
		reason string
		make   func(dir, policies string)
		file   string
		want   string
	}{
		"link to a file": {"it could name a file of the person", func(_, p string) {
			must(t, os.Symlink(outside+"/policies.yaml", p+"/x.yaml"))
		}, "/.agentctl/policies/x.yaml", "is a link"},
		"link inside": {"one rule for all links", func(_, p string) {
			writeText(t, p+"/a.yaml", fmt.Sprintf(small, 1))
			must(t, os.Symlink("a.yaml", p+"/x.yaml"))
		}, "/.agentctl/policies/x.yaml", "is a link"},
		"link to a folder": {"the whole folder may be elsewhere", func(_, p string) {
			must(t, os.Remove(p))
			must(t, os.Symlink(outside, p))
		}, "/.agentctl/policies", "is a link"},
		"link above": {"or the one above it", func(d, _ string) {
			must(t, os.RemoveAll(d+"/.agentctl"))
			must(t, os.MkdirAll(outside+"/up/policies", 0o755))
			must(t, os.Symlink(outside+"/up", d+"/.agentctl"))
		}, "/.agentctl", "is a link"},
		"no folder": {"policies that cannot be read are not none", func(_, p string) {
			must(t, os.Remove(p))
			writeText(t, p, "x")
		}, "/.agentctl/policies", "is not a folder"},
		"named pipe": {"nobody waits for a writer", func(_, p string) {
			must(t, syscall.Mkfifo(p+"/x.yaml", 0o600))
		}, "/.agentctl/policies/x.yaml", "is a named pipe"},
		"too many files": {"each is compiled", func(_, p string) {
			for i := range MaxRepositoryFiles + 1 {
				writeText(t, fmt.Sprintf("%s/%d.yaml", p, i), fmt.Sprintf(small, i))
			}
		}, "/.agentctl/policies", "holds 33 files with policies, more than 32"},
		"too many names": {"each is looked at", func(_, p string) {
			for i := range MaxRepositoryNames + 1 {
				writeText(t, fmt.Sprintf("%s/%d.txt", p, i), "")
			}
		}, "/.agentctl/policies", "holds more than 1000 files"},
		"too large": {"together", func(_, p string) {
			writeText(t, p+"/a.yaml", fmt.Sprintf(small, 1)+strings.Repeat("# x\n", MaxRepositoryBytes/8))
			writeText(t, p+"/b.yaml", fmt.Sprintf(small, 2)+strings.Repeat("# x\n", MaxRepositoryBytes/8))
		}, "/.agentctl/policies/b.yaml", "larger than 256 KiB together"},
		"no policy": {"a broken file is not an empty one", func(_, p string) {
			writeText(t, p+"/a.yaml", "")
		}, "/.agentctl/policies/a.yaml", "holds no document"},
		"not a manifest": {"nor is text", func(_, p string) {
			writeText(t, p+"/a.yaml", "just words")
		}, "/.agentctl/policies/a.yaml", "a manifest is a mapping"},
	} {
		dir, policies := repositoryWith(t)
		c.make(dir, policies)
		_, found := LoadRepository(t.Context(), dir)
		if !found.HasErrors() {
			t.Errorf("%s: it is read: %s", name, c.reason)
			continue
		}
		if f := found[0]; f.Position.File != dir+c.file || !strings.Contains(f.Message, c.want) {
			t.Errorf("%s: %s: %s, want %s: %s", name, f.Position, f.Message, c.file, c.want)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
