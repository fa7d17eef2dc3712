package shell

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/plugins/sdk"
)

// needLandlock skips where the kernel binds nothing.
func needLandlock(t testing.TB) {
	t.Helper()
	if abi := landlockABI(); abi < 4 {
		t.Skipf("Landlock ABI %d: paths are bound from 2, lengths of files from 3, connections from 4", abi)
	}
}

// files writes files into a new folder and returns its path without links.
func filesIn(t testing.TB, files map[string]string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// treeOf is what is in a folder: files with their content, links with their target.
func treeOf(t testing.TB, root string) map[string]string {
	t.Helper()
	tree := map[string]string{}
	err := filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		name := strings.TrimPrefix(p, root)
		if err != nil || e.IsDir() {
			tree[name+"/"] = ""
			return err
		}
		if leads, err := os.Readlink(p); err == nil {
			tree[name] = "-> " + leads
			return nil
		}
		b, err := os.ReadFile(p)
		tree[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// bothWays runs a command with a shell of its own, and with one that has waited in
// the folder that prepare is called with, before each command.
func bothWays(t *testing.T, run func(t *testing.T, b *bash, prepare func(dir string))) {
	t.Helper()
	t.Run("its own shell", func(t *testing.T) {
		b := newBash(t, grace)
		run(t, b, func(string) { b.quit() })
	})
	t.Run("a shell that waits", func(t *testing.T) {
		b := newBash(t, grace)
		say(t, b, t.TempDir(), map[string]any{"command": "true"})
		run(t, b, func(dir string) {
			b.quit()
			b.prepareNext(dir)
		})
	})
}

func bound(root string, programs string, paths ...string) *sdk.Binding {
	b := &sdk.Binding{Programs: strings.Fields(programs)}
	for _, p := range paths {
		op, name, _ := strings.Cut(p, " ")
		b.Paths = append(b.Paths, sdk.BoundPath{Path: filepath.Join(root, name), Op: op})
	}
	return b
}

// What a script does beyond what it was judged by fails, and what it was judged by works.
func TestACallCannotExceedItsFacts(t *testing.T) {
	needLandlock(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	for name, tc := range map[string]struct {
		reason, command, programs string
		paths                     []string
		// want is the tree afterwards where it differs from before; "" is removed.
		want map[string]string
		text string
	}{
		"write beside": {
			"an existing file gives no right to its neighbours", "echo x > a; echo x > b; echo x > new; echo x >> sub/c", "echo",
			[]string{"write a"},
			map[string]string{"/a": "x\n"},
			"bash: line 1: b: Permission denied",
		},
		"nothing at all":       {"a call that writes nothing", "echo x > a; mkdir d; rm b; ln -s a l; mv a z; touch new; truncate -s 0 b", "echo mkdir rm ln mv touch truncate", nil, nil, "Permission denied"},
		"programs":             {"only the judged programs start", "cat a; head b; /usr/bin/id; ./sub/run", "cat", nil, nil, "head: Permission denied"},
		"remove":               {"a right to write is none to remove", "rm a; mv a z", "rm mv", []string{"write a"}, nil, "Permission denied"},
		"remove only":          {"a right to remove is none to write elsewhere", "rm a; echo x > b", "rm", []string{"remove a"}, map[string]string{"/a": ""}, "b: Permission denied"},
		"rename":               {"", "mv a sub/a; echo x > b", "mv", []string{"remove a", "write sub/a", "rename a", "rename sub/a"}, map[string]string{"/a": "", "/sub/a": "one\n"}, "b: Permission denied"},
		"create":               {"a file that is made", "echo x > new; echo y >> new; cat new; rm a", "cat rm", []string{"write new"}, map[string]string{"/new": "x\ny\n"}, "cannot remove 'a'"},
		"a folder":             {"", "mkdir -p d/e && echo x > d/e/f; rm b", "mkdir rm", []string{"write d/e", "write d/e/f"}, map[string]string{"/d/": "", "/d/e/": "", "/d/e/f": "x\n"}, "cannot remove 'b'"},
		"replace":              {"sed writes beside", "sed -i s/three/four/ sub/c; echo x > b", "sed", []string{"replace sub/c"}, map[string]string{"/sub/c": "four\n"}, "b: Permission denied"},
		"read":                 {"reads are not bound", "cat a b sub/c /etc/hostname >/dev/null && echo ok", "cat", nil, nil, "ok"},
		"connect":              {"no network", "exec 9<>/dev/tcp/127.0.0.1/" + port + " && echo connected", "", nil, nil, "Permission denied"},
		"background":           {"a job in the background is bound, too", "(sleep 0; echo x > b) & wait; echo x | tee b", "sleep tee", nil, nil, "b: Permission denied"},
		"substitution":         {"and one in a substitution", `echo "$(id)$(echo x > b)"; cat <(id)`, "cat", nil, nil, "id: Permission denied"},
		"eval":                 {"and what is evaluated", `eval 'rm b'; x=rm; $x b; exec rm b`, "", nil, nil, "rm: Permission denied"},
		"the interface":        {"the command that binds is gone", "type " + bindCommand + "; ls /proc/self/fd | wc -l", "ls wc", nil, nil, "4"},
		"chmod of descriptors": {"a new program cannot be made", "printf '#!/bin/bash\nid' > new; chmod +x new; ./new", "chmod", []string{"write new"}, map[string]string{"/new": "#!/bin/bash\nid"}, "Permission denied"},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, b *bash, prepare func(string)) {
				t.Helper()
				root := filesIn(t, map[string]string{"a": "one\n", "b": "two\n", "sub/c": "three\n", "sub/run": "#!/bin/sh\necho ran\n"})
				if err := os.Chmod(filepath.Join(root, "sub/run"), 0o755); err != nil {
					t.Fatal(err)
				}
				prepare(root)
				want := treeOf(t, root)
				for name, text := range tc.want {
					if want[name] = text; text == "" && !strings.HasSuffix(name, "/") {
						delete(want, name)
					}
				}
				res := runTool(t.Context(), t, b.tool(), &sdk.Call{Workspace: root, Binding: bound(root, tc.programs, tc.paths...)}, map[string]any{"command": tc.command})
				if diff := cmp.Diff(want, treeOf(t, root)); diff != "" {
					t.Errorf("%s: the tree (want, got): %s\n%s", tc.reason, diff, res.Text)
				}
				if !strings.Contains(res.Text, tc.text) {
					t.Errorf("%s: got %q, want %q in it", tc.reason, res.Text, tc.text)
				}
				denied := strings.Contains(res.Text, "Permission denied") || strings.Contains(res.Text, "cannot remove")
				if named := len(lines(res.Record, root)) > 0; recordable() && named != denied {
					t.Errorf("%s: it exceeded its facts: %v, and the record says %q", tc.reason, denied, lines(res.Record, root))
				}
			})
		})
	}
}

// What was there when the call was judged may be something else when it runs.
func TestAPathThatWasReplacedIsNotTheJudgedOne(t *testing.T) {
	needLandlock(t)
	for name, change := range map[string]func(t *testing.T, root string) error{
		"a link in its place": func(_ *testing.T, root string) error {
			return os.Symlink(filepath.Join(root, "b"), filepath.Join(root, "a"))
		},
		"a link on the way to it": func(_ *testing.T, root string) error {
			return os.Symlink(filepath.Join(root, "sub"), filepath.Join(root, "way"))
		},
		"another name of a file": func(_ *testing.T, root string) error {
			return os.Link(filepath.Join(root, "b"), filepath.Join(root, "a"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, b *bash, prepare func(string)) {
				t.Helper()
				root := filesIn(t, map[string]string{"b": "two\n", "sub/c": "three\n"})
				if err := change(t, root); err != nil {
					t.Fatal(err)
				}
				prepare(root)
				before := treeOf(t, root)
				binding := bound(root, "", "write a")
				if name == "a link on the way to it" {
					binding = bound(root, "", "write way/c")
				}
				res := runTool(t.Context(), t, b.tool(), &sdk.Call{Workspace: root, Binding: binding}, map[string]any{"command": "echo x > a; echo x > way/c"})
				if diff := cmp.Diff(before, treeOf(t, root)); diff != "" {
					t.Errorf("the tree (before, after): %s\n%s", diff, res.Text)
				}
			})
		})
	}
}

// What people do every day ends bound as it ends unbound.
func TestABoundCommandDoesWhatItDoesUnbound(t *testing.T) {
	needLandlock(t)
	scratch := filesIn(t, nil) // in a sandbox /tmp, which is private there
	t.Setenv("TMPDIR", scratch)
	long := strings.Repeat("a line of a long document\n", 4000)
	for name, tc := range map[string]struct {
		command, programs string
		paths             []string
	}{
		"here-document":        {"cat <<'END' > a\none $x\nEND", "cat", []string{"write a"}},
		"middle here-document": {"cat > new <<'END'\n" + long[:20<<10] + "\nEND", "cat", []string{"write new"}},
		"long here-document":   {"cat > new <<'END'\n" + long + "END", "cat", []string{"write new"}},
		"here-string":          {`cat > a <<< "x"; read y <<< "z"; echo $y`, "cat", []string{"write a"}},
		"pipe":                 {"cat a b | sort -r | tee new | wc -l", "cat sort tee wc", []string{"write new"}},
		"background":           {"sleep 0 & echo $! >/dev/null; wait; echo done", "sleep", nil},
		"substitution":         {`diff <(cat a) <(cat b) > new; echo $?`, "diff cat", []string{"write new"}},
		"copy":                 {"cp a new && cp -r sub d", "cp", []string{"write new", "write d"}},
		"move":                 {"mv a z", "mv", []string{"write z", "remove a", "rename a", "rename z"}},
		"move a folder":        {"mkdir d && mv sub d/", "mkdir mv", []string{"write d", "remove sub", "rename sub", "write d/sub", "rename d/sub"}},
		"remove":               {"rm -r sub; rm -f a nothing", "rm", []string{"remove sub", "remove a", "remove nothing"}},
		"links":                {"ln -s a l && readlink l; ln a h", "ln readlink", []string{"write l", "write h"}},
		"sed":                  {"sed -i.bak s/o/0/ a b; cat a", "sed cat", []string{"replace a", "replace b"}},
		"find":                 {`find . -name '*.txt' -exec grep -l x {} +; find . -type f | xargs wc -l`, "find grep xargs wc", nil},
		"mkdir touch":          {"mkdir -p d/e && touch d/e/f && cd d/e && echo x > g && ls", "mkdir touch ls", []string{"write d/e", "write d/e/f", "write d/e/g"}},
		"twice":                {"echo a > new; echo b > new; cat new; rm new", "cat rm", []string{"write new", "remove new"}},
		"tar":                  {"tar -czf new.tgz a sub && mkdir d && tar -C d -xzf new.tgz && cat d/a", "tar sh gzip mkdir cat", []string{"replace new.tgz", "replace d"}},
		"sort in place":        {"sort -o a a; cat a", "sort cat", []string{"replace a"}},
		"modes":                {"chmod 600 a && stat -c %a a && touch -d 2020-01-01 b", "chmod stat touch", []string{"write a", "write b"}},
		"temporary":            {"truncate -s 3 a && dd if=/dev/zero of=new bs=4 count=1 2>/dev/null; od -c new", "truncate dd od", []string{"write a", "write new"}},
		"git":                  {"git init -q . && git add a && git -c user.name=x -c user.email=x@y commit -qm m && git status --short && git log --format=%s", "git", []string{"replace .git", "rename .git"}},
		"script":               {"ldd /bin/true > /dev/null; echo $?", "ldd", nil},
		"streams":              {"echo out; echo err >&2; echo again > /dev/stdout; exec 3>&1; echo three >&3", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, b *bash, prepare func(string)) {
				t.Helper()
				run := func(bind bool) (string, map[string]string) {
					root := filesIn(t, map[string]string{"a": "one\n", "b": "two\n", "sub/c.txt": "x three\n"})
					prepare(root)
					call := &sdk.Call{Workspace: root}
					if bind {
						call.Binding = bound(root, tc.programs, tc.paths...)
						call.Binding.Scratch = []string{scratch}
					}
					res := runTool(t.Context(), t, b.tool(), call, map[string]any{"command": tc.command})
					if exceeded := lines(res.Record, root); bind && len(exceeded) > 0 && recordable() {
						t.Errorf("exceeded its facts: %q", exceeded)
					}
					tree := treeOf(t, root)
					for name := range tree {
						if strings.HasPrefix(name, "/.git/") || strings.HasSuffix(name, ".tgz") {
							tree[name] = "" // it holds times
						}
					}
					if strings.Contains(tc.command, "git") {
						for name := range tree {
							if strings.Contains(name, "/objects/") {
								delete(tree, name)
							}
						}
					}
					return exit(res) + "\n" + strings.ReplaceAll(res.Text, root, "."), tree
				}
				text, tree := run(false)
				boundText, boundTree := run(true)
				if diff := cmp.Diff(text, boundText); diff != "" {
					t.Errorf("exit and output (unbound, bound): %s", diff)
				}
				if diff := cmp.Diff(tree, boundTree); diff != "" {
					t.Errorf("tree (unbound, bound): %s", diff)
				}
			})
		})
	}
}
