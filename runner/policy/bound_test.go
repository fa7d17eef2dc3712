package policy

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/plugins/sdk"
	programs "agentctl.dev/agentctl/plugins/shell"
)

// everyday are commands of people who work on a repository. Those that are dynamic or opaque
// are not bound; the test counts them.
var everyday = []string{
	"ls", "ls -la src", "pwd", "cat README.md", "head -n 1 README.md src/main.go", "tail -2 README.md", "wc -l src/main.go src/util.go", "sort names.txt | uniq -c",
	"grep -rn func src", "grep -c . README.md || true", "find . -name '*.go' -type f", "find src -type f -exec grep -l main {} +", "find . -name '*.go' | xargs wc -l",
	"cut -d, -f1 data.csv | sort -u", "tr a-z A-Z < names.txt", "sed -n 1,2p README.md", "sed s/one/two/ names.txt", "awk -F, '{print $2}' data.csv", "diff names.txt data.csv",
	"cmp names.txt names.txt && echo same", "basename src/main.go .go", "dirname src/main.go", "realpath src", "stat -c %s names.txt", "du -a src | sort -k2", "file README.md",
	"md5sum names.txt", "sha256sum README.md names.txt", "od -c names.txt | head -2", "nl names.txt", "tac names.txt", "seq 1 3", "date +%Y > year.txt", "env | grep -c PATH", "id -u",
	"uname -s", "which ls", "true", "false", "test -f README.md && echo yes", "[ -d src ] && ls src", "printf '%s\\n' a b", "echo hello", "echo hello > out.txt", "echo more >> names.txt",
	"cat names.txt > copy.txt", "cat <<'END' > doc.md\n# title\nEND", "cat > src/new.go <<< 'package main'", "tee out.txt < names.txt", "echo a | tee -a names.txt | wc -c",
	"mkdir build", "mkdir -p build/a/b && ls build", "mkdir -p src && touch src/x", "touch new.txt", "touch -r names.txt data.csv", "cp names.txt copy.txt", "cp names.txt src/", "cp -r src lib",
	"cp src/*.go build.d/ 2>/dev/null; true", "mv names.txt people.txt", "mv src/util.go .", "mv src lib", "mv names.txt data.csv src/", "rm names.txt", "rm -f nothing.txt", "rm -r src", "rm -rf src build",
	"rm src/*.go", "rmdir empty", "mkdir d && rmdir d", "ln -s README.md link && cat link", "ln names.txt hard", "chmod +x run.sh", "chmod -R u+w src", "sed -i s/one/ONE/ names.txt",
	"sed -i.bak -e s/a/b/ names.txt data.csv", "sort -o names.txt names.txt", "sort names.txt > sorted.txt", "truncate -s 0 names.txt", "dd if=names.txt of=part.txt bs=2 count=1 2>/dev/null",
	"split -l 1 names.txt part-", "gzip -k names.txt", "gzip names.txt && gunzip names.txt.gz", "tar -cf src.tar src", "tar -czf src.tgz src", "tar -cf t.tar src && mkdir x && tar -xf t.tar -C x", "zcat names.gz 2>/dev/null; true",
	"cd src && ls", "cd src && cat main.go && cd ..", "(cd src && touch y)", "for f in a b; do echo $f > $f.txt; done", "if [ -f names.txt ]; then cp names.txt n2; fi", "x=1; echo $x",
	"cat names.txt | while read -r n; do echo \"$n!\"; done", "sleep 0 & wait", "ls nothing", "cat src/*.go | wc -l", "echo {a,b}.txt", "export A=1 && env | grep ^A=", "timeout 5 ls", "nice ls", "time ls",
	"env LC_ALL=C sort names.txt", "ls > list.txt 2> errors.txt", "{ echo a; echo b; } > two.txt", "grep -q one names.txt && touch found", "install -m 644 names.txt copy.txt", "patch --version | head -1",
	"paste names.txt names.txt", "join names.txt names.txt", "comm names.txt names.txt", "expand names.txt", "fold -w 3 names.txt", "rev names.txt", "column -t names.txt", "xargs -n1 echo < names.txt",
	"git status", "git log --oneline", "git diff", "git diff HEAD~0 --stat", "git show --stat HEAD", "git add names.txt && git status --short", "git add -A", "git branch", "git rev-parse HEAD~0 > rev.txt",
	"git ls-files", "git stash list", "git blame names.txt | wc -l", "echo x > names.txt && git checkout names.txt", "git checkout -b feature", "git commit -qam m --allow-empty", "git rm -q names.txt", "git mv names.txt n2",
	"git tag v1", "git config user.name", "git grep func", "git reset -q", "git restore names.txt", "git switch -c other", "git merge-base HEAD HEAD", "git stash && git stash pop", "git clean -fd", "git describe --always",
}

// populate makes a repository with some files, or copies one.
func populate(t *testing.T, template string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if template != "" {
		if err := os.CopyFS(root, os.DirFS(template)); err != nil {
			t.Fatal(err)
		}
		return root
	}
	for name, text := range map[string]string{
		"README.md": "# one\n\ntwo\n", "src/main.go": "package main\n\nfunc main() {}\n", "src/util.go": "package main\n", "names.txt": "one\ntwo\n", "data.csv": "a,b\nc,d\n", "run.sh": "echo hi\n", "empty/.keep": "",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(root, "empty/.keep")); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-qm", "first"}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	return root
}

// contents are the files below a folder; of git's own only the names count, and not those of
// objects, whose names depend on the time.
func contents(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		name := strings.TrimPrefix(p, root)
		if err != nil || strings.HasPrefix(name, "/.git/objects/") {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		all[name] = info.Mode().String()
		if e.Type().IsRegular() && !strings.HasPrefix(name, "/.git/") && !strings.HasSuffix(name, ".gz") && !strings.HasSuffix(name, "tar") && !strings.HasSuffix(name, "tgz") && name != "/rev.txt" {
			b, err := os.ReadFile(p)
			all[name] += " " + string(b)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestEverydayCommandsEndBoundAsTheyEndUnbound: what a call is bound to is enough for it.
func TestEverydayCommandsEndBoundAsTheyEndUnbound(t *testing.T) {
	for _, kv := range []string{"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C", "GIT_AUTHOR_NAME=x", "GIT_AUTHOR_EMAIL=x@y", "GIT_COMMITTER_NAME=x", "GIT_COMMITTER_EMAIL=x@y", "GIT_AUTHOR_DATE=2020-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2020-01-01T00:00:00Z"} {
		name, value, _ := strings.Cut(kv, "=")
		t.Setenv(name, value)
	}
	tool := programs.Tools()[0]
	p := compile(t, "permissions: [{permission: bash, pattern: '*', action: allow}, {permission: edit, pattern: '*', action: allow}, {permission: read, pattern: '*', action: allow}, {permission: bash, pattern: 'sudo *', action: deny}]")
	template := populate(t, "")
	var unbound []string
	for _, command := range everyday {
		run := func(bind bool) (string, map[string]string) {
			root := populate(t, template)
			raw, err := json.Marshal(map[string]string{"command": command})
			if err != nil {
				t.Fatal(err)
			}
			call := &sdk.Call{Workspace: root}
			if bind {
				tools := testTools()
				for i := range tools {
					tools[i].Binds = true
				}
				d, err := NewEngine([]*Compiled{p}, Context{Workspace: Workspace{Root: root}, Tools: tools}).Decide(t.Context(), message.ToolCall{ID: "c", Tool: "bash", Args: raw})
				if err != nil || d.Binding == nil {
					unbound = append(unbound, command)
					return "", nil
				}
				call.Binding = given(d.Binding)
			}
			res, err := tool.Run(t.Context(), call, raw)
			if err != nil {
				t.Fatalf("%s: %v", command, err)
			}
			code := 0
			if res.ExitCode != nil {
				code = *res.ExitCode
			}
			text, _ := json.Marshal([]any{code, strings.ReplaceAll(res.Text, root, ".")})
			return string(text), contents(t, root)
		}
		boundText, boundTree := run(true)
		if boundTree == nil {
			continue
		}
		text, tree := run(false)
		if strings.HasPrefix(command, "time") || strings.HasPrefix(command, "git") {
			text, boundText = text[:2], boundText[:2] // times and hashes differ
		}
		if text != boundText {
			t.Errorf("%s: unbound %s, bound %s", command, text, boundText)
		}
		if diff := cmp.Diff(tree, boundTree); diff != "" {
			t.Errorf("%s: the tree (unbound, bound): %s", command, diff)
		}
	}
	t.Logf("%d of %d commands are not bound: %s", len(unbound), len(everyday), strings.Join(unbound, "; "))
	if len(unbound)*3 > len(everyday) {
		t.Error("too few commands are bound for the test to say much")
	}
	if slices.Contains(unbound, "echo hello > out.txt") {
		t.Error("a plain redirection is not bound")
	}
}

func given(b *message.Binding) *sdk.Binding {
	to := &sdk.Binding{Programs: b.Programs, Network: b.Network}
	for _, p := range b.Paths {
		to.Paths = append(to.Paths, sdk.BoundPath{Path: p.Path, Op: string(p.Op), Links: p.Links})
	}
	return to
}
