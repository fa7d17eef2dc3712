package policy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
)

// repo makes a repository that tracks some files.
func repo(t testing.TB, root string, files ...string) {
	t.Helper()
	put(t, root, files...)
	runGit(t, root, "init", "-q")
	runGit(t, root, "add", "-f", ".")
	runGit(t, root, "commit", "-q", "-m", "x")
}

func runGit(t testing.TB, dir string, args ...string) {
	t.Helper()
	c := exec.Command("git", args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

var showing = []string{
	"git show", "git show HEAD", "git show --stat main", "git log -p", "git log -1 --patch", "git log -u", "git log --cc", "git log -L1,1:x", "git log -Sx", "git -P log -p",
	"git diff HEAD~1", "git diff", "rm -f .env; git diff", "git diff --cached", "git diff --word-diff --stat", "git diff-tree -p HEAD", "git format-patch -1 --stdout",
	"git cat-file --batch", "git cat-file -p abcdef", "git cat-file blob abcdef", "git worktree add x", "git clone . x", "git clone -q . x", "git clone \"$PWD\" x",
	"git status -vv", "git status -sv", "git stash show -p", "git stash list -p", "git archive HEAD", "git range-diff a b c", "git reflog -p", "git whatchanged -p",
	"git grep x HEAD", "git push ../elsewhere HEAD", "git -C d show", "cd d && git show", "(cd d; git log -p)", "git commit -v --dry-run", "git add -p", "git checkout -p", "git reset -p",
	"git for-each-ref --format='%(raw)'", "git tag --format '%(raw)'", "git notes add -C abcdef", "git fsck --lost-found", "sh -c 'git show'", "env git show", "sudo git show",
	"git blame -- .env", "git blame .env", "git show HEAD -- .", "git show HEAD -- '*.go'", "git show HEAD -- ':!a.go'", "git show HEAD -- a.go .env", "git log -p -- d/..",
	"git diff HEAD -- .e*", "git rebase --show-current-patch", "git log --author -- -p", "git log -p --until -- main", "git show --grep --stat", "git show --format --stat",
	"git diff -O --stat", "git diff --stat -p", "git show -s -p", "git log --stat -p", "git show -- ", "git show HEAD -- x:y", "git show $x -- a.go .env", "git cat-file -t --batch", "git am --show-current-patch", "git mv d e; git show",
}

var telling = []string{
	"git status", "git log", "git log --oneline -n 5", "git log --stat", "git diff --stat", "git diff --name-only HEAD~1", "git show --stat", "git show -s HEAD~1", "git branch -a",
	"git log -p -- a.go", "git diff -- a.go d", "git show HEAD -- d/b.go", "git blame a.go", "git add -A", "git commit -m x", "git stash list", "git worktree list",
	"git cat-file -t HEAD", "git log -p --grep x -- a.go", "git show -p HEAD -- a.go", "git rev-parse HEAD", "git ls-files", "git checkout -b x", "git tag v1", "git remote -v", "git fetch origin", "cd d && git diff -- b.go",
}

func TestGitShowsNoFileThatMayNotBeRead(t *testing.T) {
	for name, text := range ways {
		e := engine(t, text)
		root := e.context.Workspace.Root
		repo(t, root, ".env", "a.go", "d/b.go")
		for _, script := range showing {
			if d := decide(t, e, bash(script)); d.Action == message.Allow {
				t.Errorf("%s: %s: allowed by %s", name, script, d.Rule)
			}
		}
		for _, script := range telling {
			if d := decide(t, e, bash(script)); d.Action != message.Allow {
				t.Errorf("%s: %s: got %s by %s (%s)", name, script, d.Action, d.Rule, d.Message)
			}
		}
		if d := decide(t, e, bash("git show")); d.Action != message.Deny || !strings.Contains(d.Message, ".env") || !strings.Contains(d.Message, "--") {
			t.Errorf("%s: got %s by %s (%s)", name, d.Action, d.Rule, d.Message)
		}
	}
}

func TestGitShowsWhereNothingIsUnreadable(t *testing.T) {
	for name, text := range ways {
		e := engine(t, text)
		repo(t, e.context.Workspace.Root, "a.go", "d/b.go", ".env.md")
		for _, script := range append(telling, "git show", "git log -p", "git diff", "git diff HEAD~1", "git archive HEAD", "git clone . x", "git -C d show", "git stash show -p") {
			if d := decide(t, e, bash(script)); d.Action != message.Allow {
				t.Errorf("%s: %s: got %s by %s (%s)", name, script, d.Action, d.Rule, d.Message)
			}
		}
	}
}

func TestWhatGitTracksIsNotForgotten(t *testing.T) {
	e := engine(t, ways["rule"])
	root := e.context.Workspace.Root
	repo(t, root, ".env", "a.go")
	if d := decide(t, e, bash("git rm --cached .env")); d.Action != message.Allow {
		t.Fatalf("got %s by %s", d.Action, d.Rule)
	}
	runGit(t, root, "rm", "-q", "--cached", ".env")
	if d := decide(t, e, bash("git show")); d.Action != message.Deny {
		t.Errorf("a file that was in the index at the first command of git: got %s", d.Action)
	}
	put(t, root, "d/new.env")
	runGit(t, root, "add", "-f", "d/new.env")
	if d := decide(t, e, bash("git show HEAD -- d")); d.Action != message.Deny || !strings.Contains(d.Message, "d/new.env") {
		t.Errorf("a file that was added since: got %s (%s)", d.Action, d.Message)
	}
}

func TestARepositoryThatIsNotUnderstoodIsAskedAbout(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, index string) error{
		"none":   func(_ *testing.T, index string) error { return os.Remove(index) },
		"cut":    func(_ *testing.T, index string) error { return os.Truncate(index, 100) },
		"broken": func(_ *testing.T, index string) error { return os.WriteFile(index, []byte("DIRC, of a kind"), 0o600) },
		"huge":   func(_ *testing.T, index string) error { return os.Truncate(index, indexLimit+1) },
		"folder": func(_ *testing.T, index string) error {
			return swap(index, func() error { return os.Mkdir(index, 0o700) })
		},
		"split": func(t *testing.T, index string) error {
			t.Helper()
			runGit(t, filepath.Dir(filepath.Dir(index)), "update-index", "--split-index")
			return nil
		},
	} {
		e := engine(t, ways["rule"])
		root := e.context.Workspace.Root
		repo(t, root, "a.go")
		if err := damage(t, filepath.Join(root, ".git", "index")); err != nil {
			t.Fatal(err)
		}
		if d := decide(t, e, bash("git show")); d.Action != message.Ask {
			t.Errorf("%s: got %s by %s", name, d.Action, d.Rule)
		}
		if d := decide(t, e, bash("git status")); d.Action != message.Allow {
			t.Errorf("%s: names are no content: got %s by %s", name, d.Action, d.Rule)
		}
	}
}

func TestAScriptWithVeryManyCommandsOfGit(t *testing.T) {
	e := engine(t, ways["rule"])
	repo(t, e.context.Workspace.Root, "a.go")
	if d := decide(t, e, bash(strings.Repeat("git show; ", 5000))); d.Action != message.Allow {
		t.Errorf("the same command: got %s by %s (%s)", d.Action, d.Rule, d.Message)
	}
	var b strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&b, "git show HEAD -- f%d; ", i)
	}
	if d := decide(t, e, bash(b.String())); d.Action != message.Ask {
		t.Errorf("commands that differ: got %s by %s (%s)", d.Action, d.Rule, d.Message)
	}
}

func swap(old string, by func() error) error {
	if err := os.Remove(old); err != nil {
		return err
	}
	return by()
}

func TestEveryRepositoryIsFoundAsGitFindsIt(t *testing.T) {
	e := engine(t, ways["rule"])
	root := e.context.Workspace.Root
	repo(t, root, "a.go")
	other := filepath.Join(t.TempDir(), "other")
	if err := os.Mkdir(other, 0o755); err != nil {
		t.Fatal(err)
	}
	repo(t, other, ".env")
	runGit(t, other, "worktree", "add", "-q", filepath.Join(root, "linked"))
	runGit(t, root, "clone", "-q", "--bare", other, "bare")
	if err := os.Symlink(other, filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	for script, want := range map[string]message.Action{
		"git show": message.Allow, "cd linked && git show": message.Deny, "git -C link show": message.Deny, "git -C bare show": message.Ask,
		"git -C " + other + " show": message.Deny, "git fetch ./link": message.Deny, "git fetch link main": message.Deny, "git clone link x": message.Deny,
		"git clone file://" + other + " x": message.Deny, "git remote add o link": message.Deny, "git remote add o https://h/x": message.Allow, "git -C .git show": message.Allow,
		"cd $x; git show": message.Ask,
	} {
		d := decide(t, e, bash(script))
		// The other repository is outside, so that it is asked about by the list.
		if d.Action != want && (d.Action != message.Ask || want != message.Allow || !strings.Contains(script, other)) {
			t.Errorf("%s: got %s by %s (%s), want %s", script, d.Action, d.Rule, d.Message, want)
		}
	}
}

func TestIndexNames(t *testing.T) {
	for _, version := range []string{"2", "3", "4"} {
		for _, format := range []string{"sha1", "sha256"} {
			root := t.TempDir()
			want := []string{".env", "a.go", strings.Repeat("long/", 60) + "name", "d/b.go", "d/bb.go", "ü.go"}
			put(t, root, want...)
			runGit(t, root, "init", "-q", "--object-format="+format)
			runGit(t, root, "add", "-f", ".")
			if version == "3" {
				put(t, root, "later")
				runGit(t, root, "add", "-N", "later")
				want = []string{".env", "a.go", "d/b.go", "d/bb.go", "later", want[2], "ü.go"}
			} else {
				want = []string{".env", "a.go", "d/b.go", "d/bb.go", want[2], "ü.go"}
				runGit(t, root, "update-index", "--index-version", version)
			}
			got, err := readIndex(filepath.Join(root, ".git", "index"))
			if err != nil {
				t.Errorf("version %s, %s: %v", version, format, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("version %s, %s (-want +got):\n%s", version, format, diff)
			}
		}
	}
}

func FuzzIndexNames(f *testing.F) {
	root := f.TempDir()
	put(f, root, ".env", "d/a.go", "d/b.go")
	runGit(f, root, "init", "-q")
	runGit(f, root, "add", "-f", ".")
	for _, version := range []string{"2", "4"} {
		runGit(f, root, "update-index", "--index-version", version)
		data, err := os.ReadFile(filepath.Join(root, ".git", "index"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		names, err := indexNames(data)
		if err == nil && len(names) > len(data) {
			t.Errorf("%d names in %d bytes", len(names), len(data))
		}
	})
}

// TestALargeRepositoryCostsOnce measures nothing: a name is judged once, whatever the
// number of calls.
func TestALargeRepositoryCostsOnce(t *testing.T) {
	e := engine(t, ways["rule"])
	root := e.context.Workspace.Root
	var files []string
	for i := range 300 {
		files = append(files, fmt.Sprintf("d%d/f.go", i))
	}
	repo(t, root, files...)
	decide(t, e, bash("git show"))
	l := e.tracked.listings[filepath.Join(realPath(root), ".git", "index")]
	if l == nil || len(l.paths) != len(files) {
		t.Fatalf("the repository was not read: %+v", l)
	}
	l.paths[7].Clean, l.paths[7].Real = root+"/.env", root+"/.env"
	if d := decide(t, e, bash("git show")); d.Action != message.Allow {
		t.Errorf("a name was judged again: %s by %s", d.Action, d.Rule)
	}
}

func BenchmarkGitShowInALargeRepository(b *testing.B) {
	e := engine(b, ways["rule"])
	index := filepath.Join(e.context.Workspace.Root, ".git", "index")
	if err := os.MkdirAll(filepath.Dir(index), 0o700); err != nil {
		b.Fatal(err)
	}
	var info strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&info, "100644 e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\tsome/folder%d/of/file%d.go\n", i%500, i)
	}
	runGit(b, e.context.Workspace.Root, "init", "-q")
	c := exec.Command("git", "update-index", "--index-info")
	c.Dir, c.Stdin = e.context.Workspace.Root, strings.NewReader(info.String())
	if out, err := c.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	b.ResetTimer()
	first := time.Duration(0)
	for i := 0; b.Loop(); i++ {
		begin := time.Now()
		if d := decide(b, e, bash("git show")); d.Action != message.Allow {
			b.Fatalf("got %s by %s (%s)", d.Action, d.Rule, d.Message)
		}
		if i == 0 {
			first = time.Since(begin)
		}
	}
	b.ReportMetric(float64(first.Microseconds()), "first-µs")
}
