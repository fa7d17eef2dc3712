package shell

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/plugins/sdk"
)

// look is a workspace and the tool that looks at it.
type look struct {
	*testing.T
	ws   string
	tool sdk.Tool
}

// newLook makes a workspace with two files, a folder, links that lead out, and a file
// outside.
func newLook(t *testing.T) *look {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := &look{T: t, ws: filepath.Join(top, "ws"), tool: (&listed{newBash(t, grace)}).tool()}
	l.write("a.txt", "one\ntwo\n")
	l.write("dir/b.txt", "three\n")
	l.write("../outside.txt", "secret\n")
	for name, to := range map[string]string{"link": "../outside.txt", "up": "..", "in": "dir"} {
		if err := os.Symlink(to, filepath.Join(l.ws, name)); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func (l *look) write(name, content string) {
	l.Helper()
	file := filepath.Join(l.ws, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		l.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		l.Fatal(err)
	}
}

func (l *look) call(cwd, command string, args ...string) (*sdk.Result, string) {
	l.Helper()
	call := &sdk.Call{Workspace: l.ws}
	res := runTool(l.Context(), l.T, l.tool, call, map[string]any{"command": command, "args": append([]string{}, args...), "cwd": cwd})
	return res, call.Written() + res.Text
}

// ok is what a call prints that must not be refused.
func (l *look) ok(cwd, command string, args ...string) string {
	l.Helper()
	res, text := l.call(cwd, command, args...)
	if res.IsError || res.ExitCode == nil {
		l.Errorf("%s %q in %q: %s", command, args, cwd, text)
	}
	return text
}

// refused is the warning of a call that must be refused.
func (l *look) refused(cwd, command string, args ...string) string {
	l.Helper()
	res, text := l.call(cwd, command, args...)
	var data listedData
	if err := json.Unmarshal([]byte(text), &data); err != nil || !res.IsError || data.OK || len(data.Warnings) != 1 || res.ExitCode != nil {
		l.Errorf("%s %q in %q was not refused: %s", command, args, cwd, text)
		return ""
	}
	return data.Warnings[0]
}

func (l *look) git(dir string, args ...string) {
	l.Helper()
	cmd := exec.CommandContext(l.Context(), "git", args...)
	cmd.Dir = filepath.Join(l.ws, dir)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	if out, err := cmd.CombinedOutput(); err != nil {
		l.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

func (l *look) repository(dir string) {
	l.Helper()
	l.git(dir, "init", "-q", "-b", "main")
	l.git(dir, "add", ".")
	l.git(dir, "commit", "-q", "-m", "first")
}

func TestListedCommandsShowTheWorkspace(t *testing.T) {
	l := newLook(t)
	for _, c := range []struct {
		reason, cwd, command string
		args                 []string
		want                 string
	}{
		{"a file", "", "cat", []string{"a.txt"}, "one\ntwo\n"},
		{"the folder is the one that is named", "dir", "cat", []string{"b.txt"}, "three\n"},
		{"a path may leave the folder as long as it stays in the workspace", "dir", "cat", []string{"../a.txt"}, "one\ntwo\n"},
		{"an absolute path, too", "dir", "cat", []string{l.ws + "/a.txt"}, "one\ntwo\n"},
		{"a link within", "in", "pwd", nil, l.ws + "/dir\n"},
		{"nothing is expanded", "", "cat", []string{"*"}, "cat: '*': No such file or directory\n"},
		{"nor run", "", "grep", []string{"-c", "$(touch x)", "a.txt"}, "0\n"},
		{"options in one word", "", "grep", []string{"-nie", "TWO", "--", "a.txt"}, "2:two\n"},
		{"a number as an option", "", "head", []string{"-1", "a.txt"}, "one\n"},
		{"a value that is attached", "", "tail", []string{"-n1", "a.txt"}, "two\n"},
		{"a pattern is no path", "", "grep", []string{"/etc/", "a.txt"}, ""},
		{"an expression", "", "find", []string{".", "-name", "*.txt", "-not", "-path", "./dir/*"}, "./a.txt\n"},
		{"counts", "", "wc", []string{"-l", "a.txt"}, "2 a.txt\n"},
	} {
		if got := l.ok(c.cwd, c.command, c.args...); got != c.want {
			t.Errorf("%s: %s %q printed %q, want %q", c.reason, c.command, c.args, got, c.want)
		}
	}
	if res, _ := l.call("", "grep", "nothing", "a.txt"); res.IsError || res.ExitCode == nil || *res.ExitCode != 1 {
		t.Errorf("the exit code is a result: %+v", res)
	}
}

func TestListedCommandsRefuseWhatIsNotListed(t *testing.T) {
	l := newLook(t)
	l.repository("")
	for _, c := range []struct {
		cwd, command string
		args         []string
		want         string
	}{
		{"", "rm", []string{"a.txt"}, `"rm" is not in the list of commands`},
		{"", "sh", []string{"-c", "touch x"}, `"sh" is not in the list`},
		{"", "/bin/cat", []string{"a.txt"}, `"/bin/cat" is not in the list`},
		{"", "cat; touch x", nil, "is not in the list"},
		{"", "find", []string{".", "-exec", "touch", "x", ";"}, `"-exec" is not`},
		{"", "find", []string{".", "-delete"}, `"-delete" is not`},
		{"", "find", []string{".", "-fprint", "x"}, `"-fprint" is not`},
		{"", "find", []string{"-L", "."}, `"-L" is not`},
		{"", "find", []string{".", "-name"}, "needs a value"},
		{"", "find", []string{".", "-name", "x", "-newermt", "2020"}, `"-newermt" is not`},
		{"", "grep", []string{"-f", "/etc/passwd", "a.txt"}, `"-f" is not`},
		{"", "grep", []string{"-nf/etc/passwd", "a.txt"}, `"-nf/etc/passwd" is not`},
		{"", "grep", []string{"-R", "x", "."}, `"-R" is not`},
		{"", "grep", []string{"--fil=/etc/passwd"}, `"--fil=/etc/passwd" is not`},
		{"", "grep", []string{"-e", "-f"}, "does not begin with a dash"},
		{"", "grep", []string{"-m"}, "needs a value"},
		{"", "ls", []string{"-lL"}, `"-lL" is not`},
		{"", "ls", []string{"--recurs"}, `"--recurs" is not`},
		{"", "tail", []string{"-f", "a.txt"}, `"-f" is not`},
		{"", "wc", []string{"--files0-from=a.txt"}, "is not in the list"},
		{"", "cat", []string{"a.txt", "--output=x"}, "is not in the list"},
		{"", "git", nil, "needs a subcommand"},
		{"", "git", []string{"-c", "alias.x=!touch x", "x"}, `git "-c" is not`},
		{"", "git", []string{"--exec-path=.", "status"}, `git "--exec-path=." is not`},
		{"", "git", []string{"-C", "..", "status"}, `git "-C" is not`},
		{"", "git", []string{"--git-dir=/x", "log"}, "is not in the list"},
		{"", "git", []string{"commit", "-m", "x"}, `git "commit" is not`},
		{"", "git", []string{"push"}, `git "push" is not`},
		{"", "git", []string{"config", "core.pager", "x"}, `git "config" is not`},
		{"", "git", []string{"grep", "-O./x", "one"}, `git "grep" is not`},
		{"", "git", []string{"branch", "new"}, `"new" is not accepted`},
		{"", "git", []string{"branch", "-D", "main"}, `"-D" is not`},
		{"", "git", []string{"tag", "v1"}, `"v1" is not accepted`},
		{"", "git", []string{"log", "--output=x"}, `"--output=x" is not`},
		{"", "git", []string{"diff", "--output", "x"}, `"--output" is not`},
		{"", "git", []string{"diff", "--no-index", "a.txt", "/etc/passwd"}, `"--no-index" is not`},
		{"", "git", []string{"diff", "a.txt", "/etc/passwd"}, "outside the workspace"},
		{"", "git", []string{"diff", "--ext-diff"}, `"--ext-diff" is not`},
		{"", "git", []string{"show", "--textconv", "HEAD"}, `"--textconv" is not`},
		{"", "git", []string{"log", "--show-signature"}, `"--show-signature" is not`},
		{"", "git", []string{"log", "--format=%G?"}, "starts another program"},
		{"", "git", []string{"log", "-p", "--submodule=diff"}, `"--submodule=diff" is not`},
		{"", "node", []string{"-e", "1"}, "asked for its version"},
		{"", "node", nil, "asked for its version"},
		{"", "go", []string{"version", "a.txt"}, "asked for its version"},
		{"", "python3", []string{"a.py"}, "asked for its version"},
		{"", "cat", []string{"../outside.txt"}, `"../outside.txt" is outside`},
		{"", "cat", []string{"--", "/etc/passwd"}, `"/etc/passwd" is outside`},
		{"", "cat", []string{"link"}, `"link" is outside`},
		{"", "cat", []string{"up/outside.txt"}, `"up/outside.txt" is outside`},
		{"", "ls", []string{"in/../../"}, "is outside"},
		{"", "ls", []string{"up/missing/file"}, "is outside"},
		{"", "grep", []string{"-r", "secret", "up"}, `"up" is outside`},
		{"", "grep", []string{"-r", "-e", "secret", ".."}, `".." is outside`},
		{"", "find", []string{"..", "-name", "x"}, `".." is outside`},
		{"", "cat", []string{"~/x"}, "no shell replaces"},
		{"", "cat", []string{"a\x00b"}, "NUL"},
		{"..", "ls", nil, "cwd .. is outside the workspace"},
		{"/", "ls", nil, "cwd / is outside the workspace"},
		{"up", "ls", nil, "cwd up is outside the workspace"},
		{"a.txt", "ls", nil, "cwd a.txt is not a folder"},
		{"missing", "ls", nil, "cwd missing does not exist"},
	} {
		if got := l.refused(c.cwd, c.command, c.args...); !strings.Contains(got, c.want) {
			t.Errorf("%s %q in %q: got %q, want %q in it", c.command, c.args, c.cwd, got, c.want)
		}
	}
	if _, err := os.Stat(filepath.Join(l.ws, "x")); err == nil {
		t.Error("a refused call has made a file")
	}
}

func TestListedCommandsHaveBoundedArguments(t *testing.T) {
	l := newLook(t)
	for name, args := range map[string]string{
		"unknown field":  `{"command":"ls","workdir":"dir"}`,
		"no command":     `{"args":["x"]}`,
		"too many":       `{"command":"ls","args":["` + strings.Repeat(`a","`, maxArgs) + `b"]}`,
		"too long":       `{"command":"ls","args":["` + strings.Repeat("a", maxArgLen+1) + `"]}`,
		"not a text":     `{"command":"ls","args":[1]}`,
		"args as a text": `{"command":"ls","args":"-l"}`,
	} {
		res, err := l.tool.Run(t.Context(), &sdk.Call{Workspace: l.ws}, json.RawMessage(args))
		if err != nil || !res.IsError || res.Code != sdk.CodeSchema {
			t.Errorf("%s: got %+v, %v", name, res, err)
		}
	}
}

// Each setting would make git start a program when a listed command compares or shows
// files.
func TestListedGitStartsNoProgramOfARepository(t *testing.T) {
	for name, set := range map[string][]string{
		"fsmonitor":   {"core.fsmonitor", "touch $WS/pwned; false"},
		"hooks":       {"core.hooksPath", "$WS/hooks"},
		"filter":      {"filter.x.clean", "touch $WS/pwned; cat"},
		"included":    {"include.path", "$WS/more.conf"},
		"process":     {"filter.x.process", "touch $WS/pwned; cat"},
		"textconv":    {"diff.x.textconv", "touch $WS/pwned; cat"},
		"driver":      {"diff.x.command", "touch $WS/pwned; true"},
		"external":    {"diff.external", "touch $WS/pwned; true"},
		"pager":       {"core.pager", "touch $WS/pwned; cat"},
		"log's pager": {"pager.log", "touch $WS/pwned; cat"},
		"gpg":         {"gpg.program", "$WS/hooks/post-index-change"},
		"signatures":  {"log.showSignature", "true"},
		"alias":       {"alias.status", "!touch $WS/pwned"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLook(t)
			l.write("more.conf", "[filter \"X.y\"]\n\tclean = touch "+l.ws+"/pwned; cat\n[filter \"x\"]\n\tclean = touch "+l.ws+"/pwned; cat\n")
			l.write("hooks/post-index-change", "#!/bin/sh\ntouch "+l.ws+"/pwned\n")
			if err := os.Chmod(filepath.Join(l.ws, "hooks/post-index-change"), 0o700); err != nil { //nolint:gosec // a hook has to be a program
				t.Fatal(err)
			}
			l.repository("")
			l.write(".gitattributes", "*.txt filter=x diff=x\n")
			l.git("", "config", set[0], strings.ReplaceAll(set[1], "$WS", l.ws))
			l.write("a.txt", "changed\n")
			old := time.Unix(1e9, 0) // git has a reason to write its index, and to run a hook behind it
			if err := os.Chtimes(filepath.Join(l.ws, "dir/b.txt"), old, old); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"status"}, {"diff"}, {"log", "-p"}, {"show", "HEAD"}, {"blame", "a.txt"}, {"ls-files", "-m"}} {
				l.call("", "git", args...)
				if _, err := os.Stat(filepath.Join(l.ws, "pwned")); err == nil {
					t.Fatalf("git %q has run a program that %s names", args, set[0])
				}
			}
			if !slices.Contains([]string{"fsmonitor", "hooks", "filter", "included", "process", "textconv", "driver", "external"}, name) {
				return // needs a terminal, a signature, or a command of its own
			}
			for _, args := range [][]string{{"diff"}, {"status"}, {"add", "-A"}} { // status writes its index only now and then
				cmd := exec.CommandContext(t.Context(), "git", args...)
				cmd.Dir = l.ws
				_ = cmd.Run() // the program that is named may fail git
			}
			if _, err := os.Stat(filepath.Join(l.ws, "pwned")); err != nil {
				t.Errorf("plain git does not run what %s names, so this test shows nothing", set[0])
			}
		})
	}
}

func TestListedGitStaysInTheWorkspace(t *testing.T) {
	l := newLook(t)
	l.repository("..") // the workspace is a folder of another repository
	if got := l.refused("", "git", "log"); !strings.Contains(got, "not a git repository") {
		t.Errorf("a repository above: got %q", got)
	}
	l.write(".git", "gitdir: ../.git\n")
	if got := l.refused("", "git", "log"); !strings.Contains(got, "is not all in the workspace") {
		t.Errorf("a repository elsewhere: got %q", got)
	}
	if err := os.Remove(filepath.Join(l.ws, ".git")); err != nil {
		t.Fatal(err)
	}
	l.repository("dir")
	if got := l.ok("dir", "git", "log", "--oneline"); !strings.HasSuffix(got, " first\n") {
		t.Errorf("a repository in a folder: got %q", got)
	}
	l.git("dir", "config", "core.worktree", filepath.Dir(l.ws))
	if got := l.refused("dir", "git", "diff"); !strings.Contains(got, "is not all in the workspace") {
		t.Errorf("files elsewhere: got %q", got)
	}
}

func TestListedGitShowsTheRepository(t *testing.T) {
	l := newLook(t)
	l.repository("")
	l.write("a.txt", "one\n2\n")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"status", "--short"}, " M a.txt"},
		{[]string{"status", "--porcelain=v2", "-b"}, "# branch.head main"},
		{[]string{"diff", "--stat", "HEAD", "--", "a.txt"}, "1 insertion"},
		{[]string{"diff", "-U0", "-w"}, "+2"},
		{[]string{"log", "-1", "--format=%s"}, "first"},
		{[]string{"log", "-n", "1", "--oneline", "--decorate", "main..main", "--all"}, ""},
		{[]string{"show", "HEAD:dir/b.txt"}, "three"},
		{[]string{"show", "--name-only", "HEAD"}, "dir/b.txt"},
		{[]string{"blame", "-L", "1,1", "a.txt"}, "one"},
		{[]string{"branch", "-v"}, "* main"},
		{[]string{"ls-files", "dir"}, "dir/b.txt"},
		{[]string{"ls-tree", "-r", "--name-only", "HEAD"}, "a.txt"},
		{[]string{"rev-parse", "--abbrev-ref", "HEAD"}, "main"},
		{[]string{"rev-list", "--count", "HEAD"}, "1"},
		{[]string{"describe", "--all"}, "heads/main"},
		{[]string{"shortlog", "-sn", "HEAD"}, "a"},
		{[]string{"tag", "-l"}, ""},
		{[]string{"--version"}, "git version"},
	} {
		if got := l.ok("", "git", c.args...); !strings.Contains(got, c.want) {
			t.Errorf("git %q printed %q, want %q in it", c.args, got, c.want)
		}
	}
}

func TestListedCommandsGetAnEmptyEnvironment(t *testing.T) {
	t.Setenv("TOKEN", "secret")
	t.Setenv("GIT_EXTERNAL_DIFF", "touch pwned")
	l := newLook(t)
	t.Setenv("PATH", l.ws+":"+os.Getenv("PATH")+":relative")
	l.write("cat", "#!/bin/sh\necho mine\n")
	if err := os.Chmod(filepath.Join(l.ws, "cat"), 0o700); err != nil { //nolint:gosec // a program that must not be taken
		t.Fatal(err)
	}
	if got := l.ok("", "cat", "a.txt"); got != "one\ntwo\n" {
		t.Errorf("a program of the workspace was run: %q", got)
	}
	at := &place{root: l.ws, dir: l.ws}
	for _, v := range at.environment(l.ws) {
		if strings.Contains(v, "secret") || strings.HasPrefix(v, "PATH=") && (strings.Contains(v, l.ws) || strings.Contains(v, "relative")) {
			t.Errorf("a command gets %s", v)
		}
	}
	if names := at.environment(l.ws); slices.ContainsFunc(names, func(v string) bool { return strings.HasPrefix(v, "GIT_EXTERNAL_DIFF") }) {
		t.Error("a command gets variables of this program")
	}
}

func TestListedCommandsAreBounded(t *testing.T) {
	l := newLook(t)
	l.write("big", strings.Repeat("0123456789abcde\n", 1<<16))
	res, text := l.call("", "cat", "big")
	if len(text) > listedOutput || len(text) < listedOutput/2 || !strings.Contains(text, "bytes left out") || res.IsError {
		t.Errorf("1 MiB of output became %d bytes", len(text))
	}

	// A pipe that nobody writes to keeps its reader until the time is over.
	fifo := filepath.Join(l.ws, "fifo")
	if err := exec.CommandContext(t.Context(), "mkfifo", fifo).Run(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	res, text = l.call("", "cat", "fifo")
	if took := time.Since(began); res.Code != sdk.CodeTimeout || took < listedTime || !strings.Contains(text, "timed out after 3000 ms") {
		t.Errorf("it took %v: %+v", took, res)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	res = runTool(ctx, t, l.tool, &sdk.Call{Workspace: l.ws}, map[string]any{"command": "cat", "args": []string{"fifo"}})
	if res.Code != sdk.CodeTimeout {
		t.Errorf("the end of the call: %+v", res)
	}
}

// A command of which another process is left is ended as a whole: git and its children, or
// a program of the list that was replaced by a script.
func TestNothingIsLeftOfAListedCommand(t *testing.T) {
	l := newLook(t)
	bin := t.TempDir()
	script := "#!/bin/sh\nsetsid sh -c 'trap \"\" TERM; echo $$ >" + l.ws + "/pid; while :; do /bin/sleep 1; done' &\nwhile [ ! -s " + l.ws + "/pid ]; do /bin/sleep 0.01; done\nexec /bin/sleep 60\n"
	if err := os.WriteFile(filepath.Join(bin, "cat"), []byte(script), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	res, _ := l.call("", "cat")
	if res.Code != sdk.CodeTimeout {
		t.Errorf("got %+v", res)
	}
	pid, err := os.ReadFile(filepath.Join(l.ws, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/proc/" + strings.TrimSpace(string(pid))); err == nil {
		t.Errorf("process %s is left", pid)
	}
}

// A submodule has settings of its own, and a partial clone fetches what it lacks.
func TestListedGitDoesNotFollowSubmodulesOrFetch(t *testing.T) {
	l := newLook(t)
	l.write("sub/c.txt", "c\n")
	l.repository("sub")
	l.repository("") // the folder becomes a submodule
	l.write("sub/c.txt", "changed\n")
	l.git("sub", "config", "core.fsmonitor", "touch "+l.ws+"/pwned; false")
	blob := filepath.Join(l.ws, ".git/objects")
	out, err := exec.CommandContext(t.Context(), "git", "-C", l.ws, "rev-parse", "HEAD:a.txt").Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(blob, string(out[:2]), strings.TrimSpace(string(out[2:])))); err != nil {
		t.Fatal(err)
	}
	for _, set := range [][]string{
		{"core.repositoryformatversion", "1"},
		{"extensions.partialClone", "origin"},
		{"remote.origin.promisor", "true"},
		{"remote.origin.url", "ext::sh -c touch% " + l.ws + "/pwned"},
		{"protocol.ext.allow", "always"},
		{"protocol.allow", "always"},
	} {
		l.git("", "config", set[0], set[1])
	}
	for _, args := range [][]string{{"status"}, {"diff"}, {"diff", "--stat", "HEAD"}, {"show", "HEAD"}, {"show", "HEAD:a.txt"}, {"log", "-p"}, {"describe", "--all"}, {"ls-files", "-m"}} {
		l.call("", "git", args...)
		if _, err := os.Stat(filepath.Join(l.ws, "pwned")); err == nil {
			t.Fatalf("git %q has run a program that the repository names", args)
		}
	}
	for _, args := range [][]string{{"status"}, {"show", "HEAD:a.txt"}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = l.ws
		_ = cmd.Run() // the program that is named may fail git
		if err := os.Remove(filepath.Join(l.ws, "pwned")); err != nil {
			t.Errorf("plain git %q runs nothing, so this test shows nothing: %v", args, err)
		}
	}
}
