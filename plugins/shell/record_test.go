package shell

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/plugins/sdk"
)

// needRecord skips where nothing can be recorded.
func needRecord(t testing.TB) {
	t.Helper()
	needLandlock(t)
	if !recordable() {
		t.Skip("nothing can be recorded here: the test of package record says why")
	}
}

// lines are what a record says was exceeded, with paths relative to a folder.
func lines(record *sdk.Record, root string) (all []string) {
	if record == nil {
		return []string{"no record"}
	}
	for _, e := range record.Exceeded {
		line := e.Op + " " + strings.TrimPrefix(e.Path+e.Program+e.Address, root+"/")
		if e.To != "" {
			line += " to " + strings.TrimPrefix(e.To, root+"/")
		}
		all = append(all, line)
	}
	slices.Sort(all)
	return all
}

// What a script tries beyond its facts is in the record, also where the script hides that.
func TestWhatExceedsTheFactsIsNamed(t *testing.T) {
	needRecord(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	address := listener.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	outside := filesIn(t, map[string]string{"o": "outside\n"})
	for name, tc := range map[string]struct {
		command, programs string
		paths, want       []string
	}{
		"hidden":                {"echo x > b 2>/dev/null || true", "", []string{"write a"}, []string{"write b"}},
		"hidden by a group":     {"{ rm b; id; } >/dev/null 2>&1; exit 0", "rm", nil, []string{"execute /usr/bin/id", "remove b"}},
		"in the background":     {"(sleep 0.05; echo x > b) 2>/dev/null & wait", "sleep", nil, []string{"write b"}},
		"left behind":           {"setsid bash -c 'sleep 0.05; echo x > b; sleep 5' >/dev/null 2>&1 & sleep 0.2", "setsid bash sleep", nil, []string{"write b"}},
		"a daemon":              {"(setsid bash -c 'echo x > b; exec sleep 5' >/dev/null 2>&1 &) ; sleep 0.2", "setsid bash sleep", nil, []string{"write b"}},
		"a program":             {"head -1 a 2>/dev/null; cat a", "cat", nil, []string{"execute /usr/bin/head"}},
		"a script":              {"./sub/run 2>/dev/null; true", "", nil, []string{"execute sub/run"}},
		"by exec":               {"exec id 2>/dev/null", "", nil, []string{"execute /usr/bin/id"}},
		"through env":           {"env -i id 2>/dev/null; true", "env", nil, []string{"execute /usr/bin/id"}},
		"a connection":          {"(exec 9<>/dev/tcp/127.0.0.1/" + port + ") 2>/dev/null; true", "", nil, []string{"connect " + address}},
		"a rename":              {"mv a z 2>/dev/null; true", "mv", nil, []string{"rename a to z"}},
		"a rename outward":      {"mv a " + outside + "/z 2>/dev/null; true", "mv", []string{"remove a"}, []string{"rename a to " + outside + "/z"}},
		"a hard link":           {"ln b h 2>/dev/null; true", "ln", nil, []string{"link b to h"}},
		"a link":                {"ln -s b h 2>/dev/null; true", "ln", nil, []string{"create h"}},
		"a folder":              {"mkdir -p x/y 2>/dev/null; true", "mkdir", nil, []string{"create x"}},
		"a pipe":                {"mkfifo p 2>/dev/null; true", "mkfifo", nil, []string{"create p"}},
		"behind a link":         {"rm way/c 2>/dev/null; echo x > way/new 2>/dev/null; true", "rm", nil, []string{"create sub/new", "remove sub/c"}},
		"a link to a file":      {"echo x > link 2>/dev/null; true", "", []string{"write a"}, []string{"write b"}},
		"outside":               {"echo x > " + outside + "/o 2>/dev/null; true", "", nil, []string{"write " + outside + "/o"}},
		"by dots":               {"cd sub; echo x > ../b 2>/dev/null; echo x > ./../sub/../new 2>/dev/null; true", "", nil, []string{"create new", "write b"}},
		"after cd":              {"cd sub && echo x > c 2>/dev/null; true", "", []string{"write a"}, []string{"write sub/c"}},
		"by a descriptor":       {"exec 7<b; echo x > /proc/self/fd/7 2>/dev/null; echo x > /dev/fd/7 2>/dev/null; true", "", nil, []string{"write b"}},
		"by proc":               {"echo x > /proc/self/cwd/b 2>/dev/null; echo x > /proc/$$/cwd/sub/c 2>/dev/null; true", "", nil, []string{"write b", "write sub/c"}},
		"a folder that is open": {"exec 7<sub; echo x > /proc/self/fd/7/c 2>/dev/null; true", "", nil, []string{"write sub/c"}},
		"emptied":               {"truncate -s 0 b 2>/dev/null; : > a; true", "truncate", []string{"write a"}, []string{"write b"}},
		"a temporary file":      {"sed -i s/one/two/ a 2>/dev/null; true", "sed", []string{"write a"}, nil},
		"nothing":               {"cat a b >/dev/null; echo x > a; echo err >&2; echo $(cat b) | cat", "cat", []string{"write a"}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, b *bash, prepare func(string)) {
				t.Helper()
				root := filesIn(t, map[string]string{"a": "one\n", "b": "two\n", "sub/c": "three\n", "sub/run": "#!/bin/sh\necho ran\n"})
				for _, err := range []error{
					os.Chmod(filepath.Join(root, "sub/run"), 0o755),
					os.Symlink("sub", filepath.Join(root, "way")), os.Symlink("b", filepath.Join(root, "link")),
				} {
					if err != nil {
						t.Fatal(err)
					}
				}
				prepare(root)
				before := treeOf(t, outside)
				binding := bound(root, tc.programs, tc.paths...)
				res := runTool(t.Context(), t, b.tool(), &sdk.Call{Workspace: root, Binding: binding}, map[string]any{"command": tc.command})
				got := lines(res.Record, root)
				if tc.want == nil { // a name that is made up: only what is done is known
					if len(got) != 1 || !strings.HasPrefix(got[0], "create sed") {
						t.Errorf("exceeded %q", got)
					}
				} else if diff := cmp.Diff(tc.want, append([]string{}, got...)); diff != "" {
					t.Errorf("exceeded (want, got): %s\n%s\n%+v", diff, res.Text, res.Record)
				}
				if diff := cmp.Diff(before, treeOf(t, outside)); diff != "" {
					t.Errorf("outside (before, after): %s", diff)
				}
			})
		})
	}
}

// A record lists what was done, in order.
func TestARecordListsWhatACallHasDone(t *testing.T) {
	needRecord(t)
	bothWays(t, func(t *testing.T, b *bash, prepare func(string)) {
		t.Helper()
		root := filesIn(t, map[string]string{"a": "one\n", "old": "x\n"})
		prepare(root)
		call := &sdk.Call{Workspace: root, Binding: bound(root, "cat rm mv chmod mkdir", "write new", "remove old", "write d", "write d/x", "rename a", "rename d/b", "remove a", "write d/b")}
		res := runTool(t.Context(), t, b.tool(), call, map[string]any{"command": `cat a > new; cat "a"; cat a > new; rm old; mkdir d; echo > d/x; mv a d/b; chmod 600 d/b`})
		p := func(name string) string { return filepath.Join(root, name) }
		want := &sdk.Record{
			Programs: []sdk.Program{
				{Path: "/usr/bin/cat", Argv: []string{"cat", "a"}},
				{Path: "/usr/bin/rm", Argv: []string{"rm", "old"}},
				{Path: "/usr/bin/mkdir", Argv: []string{"mkdir", "d"}},
				{Path: "/usr/bin/mv", Argv: []string{"mv", "a", "d/b"}},
				{Path: "/usr/bin/chmod", Argv: []string{"chmod", "600", "d/b"}},
			},
			Changes: []sdk.Change{
				{Op: "create", Path: p("new")},
				{Op: "write", Path: p("new")},
				{Op: "remove", Path: p("old")},
				{Op: "create", Path: p("d")},
				{Op: "create", Path: p("d/x")},
				{Op: "rename", Path: p("a"), To: p("d/b")},
				{Op: "mode", Path: p("d/b")},
			},
		}
		if diff := cmp.Diff(want, res.Record); diff != "" || *res.ExitCode != 0 {
			t.Errorf("exit code %s, record (want, got): %s\n%s", exit(res), diff, res.Text)
		}
	})
}

// A call that is not bound is recorded only if that is asked for, and then only what it
// executes.
func TestACallThatIsNotBoundIsAskedForWhatItExecutes(t *testing.T) {
	needRecord(t)
	bothWays(t, func(t *testing.T, b *bash, prepare func(string)) {
		t.Helper()
		root := filesIn(t, map[string]string{"a": "one\n"})
		prepare(root)
		command := map[string]any{"command": "cat a > new; ./nothing 2>/dev/null; (cat a; rm new) >/dev/null & wait"}
		if res := runTool(t.Context(), t, b.tool(), &sdk.Call{Workspace: root}, command); res.Record != nil {
			t.Errorf("not asked for: %+v", res.Record)
		}
		b.preparing.Wait()
		res := runTool(t.Context(), t, b.tool(), &sdk.Call{Workspace: root, RecordPrograms: true}, command)
		want := &sdk.Record{Programs: []sdk.Program{{Path: "/usr/bin/cat", Argv: []string{"cat", "a"}}, {Path: "/usr/bin/rm", Argv: []string{"rm", "new"}}}}
		if diff := cmp.Diff(want, res.Record); diff != "" {
			t.Errorf("asked for (want, got): %s", diff)
		}
	})
}

// A listed command is a program of the record itself.
func TestAListedCommandIsRecorded(t *testing.T) {
	needRecord(t)
	root := filesIn(t, map[string]string{"a": "one\n"})
	tool := (&listed{newBash(t, grace)}).tool()
	for name, call := range map[string]*sdk.Call{
		"bound":     {Workspace: root, Binding: bound(root, "cat")},
		"asked for": {Workspace: root, RecordPrograms: true},
	} {
		res := runTool(t.Context(), t, tool, call, map[string]any{"command": "cat", "args": []string{"a"}})
		want := &sdk.Record{Programs: []sdk.Program{{Path: "/usr/bin/cat", Argv: []string{"cat", "a"}}}}
		if diff := cmp.Diff(want, res.Record); diff != "" || res.Text != "one\n" {
			t.Errorf("%s: %q, record (want, got): %s", name, res.Text, diff)
		}
	}
	if res := runTool(t.Context(), t, tool, &sdk.Call{Workspace: root}, map[string]any{"command": "cat", "args": []string{"a"}}); res.Record != nil {
		t.Errorf("not asked for: %+v", res.Record)
	}
}

// A shell of its own that cannot be executed is an error of the call, as without a record.
func TestAProgramThatCannotBeExecutedIsAnError(t *testing.T) {
	needRecord(t)
	root := filesIn(t, map[string]string{"sh": "\x7fELF, but not really"})
	if err := os.Chmod(filepath.Join(root, "sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	b := newBash(t, grace)
	b.find.Do(func() { b.prepare(); b.shell = filepath.Join(root, "sh") })
	for name, call := range map[string]*sdk.Call{
		"bound":   {Workspace: root, Binding: &sdk.Binding{}},
		"unbound": {Workspace: root},
	} {
		raw, err := json.Marshal(map[string]any{"command": "true"})
		if err != nil {
			t.Fatal(err)
		}
		res, err := b.tool().Run(t.Context(), call, raw)
		if err != nil || !res.IsError || !strings.Contains(res.Text, "exec format error") {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
}
