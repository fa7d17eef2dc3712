package runner

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
)

// outsideFolder is a folder that is not in the workspace.
func outsideFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	return dir
}

const fileTools = "tools: [{name: read}, {name: list}, {name: glob}, {name: grep}, {name: edit}, {name: write}, {name: bash}]\npolicyRefs: [{name: p}]"

// opening is a policy that allows everything in the workspace, and by name a folder
// outside with what is in it.
func opening(dir string, more ...string) string {
	return policyOf("permissions:\n- {permission: '*', action: allow}\n" +
		fmt.Sprintf("- {permission: external_directory, pattern: '%s', action: allow}\n- {permission: external_directory, pattern: '%s/*', action: allow}\n", dir, dir) + strings.Join(more, ""))
}

// atEachLevel runs a test with the shipped tools in a sandbox, and without one.
func atEachLevel(t *testing.T, test func(atLevel)) {
	t.Helper()
	t.Run("none", func(t *testing.T) { test(atLevel{t, func(*RunOptions) {}}) })
	t.Run("sandbox", func(t *testing.T) {
		buildSandboxAndTools(t)
		test(atLevel{t, func(o *RunOptions) { o.AllowUnsandboxed = false }})
	})
}

// buildSandboxAndTools builds the shipped tools and what contains them, for this test.
func buildSandboxAndTools(t *testing.T) {
	t.Helper()
	libexec := t.TempDir()
	t.Setenv("AGENTCTL_LIBEXEC", libexec)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", libexec, "../cmd/agentctl-sandbox", "../cmd/agentctl-tools")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// atLevel is a test at one level.
type atLevel struct {
	t     *testing.T
	level func(*RunOptions)
}

// outsideRun runs calls of the file tools and bash.
func outsideRun(t *testing.T, policy, steps string, change ...func(*RunOptions)) (place, *Outcome) {
	t.Helper()
	p := newPlace(t, agent(fileTools, steps+"- say: done\n", policy), map[string]string{"f": "inside\n"})
	out := p.run(t, change...)
	if out.Run.Finished.Reason == string(reason.IsolationUnavailable) {
		t.Skipf("this host gives no sandbox: %s", out.Run.Finished.Message)
	}
	return p, out
}

func TestAPathOutsideThatAPolicyAllowsByNameWorks(t *testing.T) {
	atEachLevel(t, func(h atLevel) {
		t, level := h.t, h.level
		dir := outsideFolder(t, map[string]string{"a.txt": "alpha\n", "sub/b.txt": "beta\n", "new/keep": ""})
		if os.Geteuid() == 0 { // a folder of somebody else, in which everybody may create files
			if err := errors.Join(os.Chown(dir+"/new", 65534, 65534), os.Chmod(dir+"/new", 0o777)); err != nil {
				t.Fatal(err)
			}
		}
		steps := strings.ReplaceAll(`
- calls: [{tool: read, args: {path: DIR/a.txt}}]
- calls: [{tool: list, args: {path: DIR}}]
- calls: [{tool: glob, args: {pattern: 'DIR/**/*.txt'}}]
- calls: [{tool: grep, args: {pattern: beta, path: DIR}}]
- calls: [{tool: edit, args: {path: DIR/a.txt, oldString: alpha, newString: gamma}}]
- calls: [{tool: write, args: {path: DIR/new/c.txt, content: made}}]
- calls: [{tool: write, args: {path: DIR/new/c.txt, content: again}}]
- calls: [{tool: bash, args: {command: 'pwd; cat sub/b.txt', workdir: DIR}}]
- calls: [{tool: read, args: {path: DIR/sub}}]
`, "DIR", dir)
		_, out := outsideRun(t, opening(dir), steps, level)
		want(t, out, reason.Completed)
		for i, says := range []string{"1: alpha", "a.txt 6", dir + "/sub/b.txt", dir + "/sub/b.txt:1:beta", "edited " + dir + "/a.txt", "created " + dir + "/new/c.txt", "wrote " + dir + "/new/c.txt", dir + "\nbeta", "b.txt"} {
			if c := call(t, out, i); c.State != "completed" || !strings.Contains(text(t, out, i), says) {
				t.Errorf("call %d of %s is %s: %s", i, c.Tool, c.State, text(t, out, i))
			}
		}
		for name, content := range map[string]string{"a.txt": "gamma\n", "new/c.txt": "again"} {
			if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != content {
				t.Errorf("%s holds %q, %v", name, b, err)
			}
		}
	})
}

// A default, or a rule about a tool that says nothing about paths, was written for
// the files of the workspace: it opens nothing.
func TestAPathOutsideThatNobodyNamedStaysOutside(t *testing.T) {
	policies := map[string]string{
		"byRisk":                "default: byRisk",
		"default allow":         "default: allow",
		"a rule without a path": "default: deny\nrules: [{name: all, action: allow}]",
		"another path":          "default: allow\nrules: [{name: other, action: allow, when: \"paths.exists(p, p.clean == '/somewhere/else')\"}]",
	}
	for name, policy := range policies {
		t.Run(name, func(t *testing.T) {
			atEachLevel(t, func(h atLevel) {
				t, level := h.t, h.level
				dir := outsideFolder(t, map[string]string{"a.txt": "alpha\n"})
				_, out := outsideRun(t, policyOf(policy), strings.ReplaceAll(`
- calls: [{tool: read, args: {path: DIR/a.txt}}]
- calls: [{tool: grep, args: {pattern: alpha, path: DIR}}]
- calls: [{tool: list, args: {path: DIR}}]
`, "DIR", dir), level)
				for i := range 3 {
					if c := call(t, out, i); c.State != "error" || strings.Contains(text(t, out, i), "alpha\n") || !strings.Contains(text(t, out, i), "outside the workspace") {
						t.Errorf("call %d of %s is %s: %s", i, c.Tool, c.State, text(t, out, i))
					}
				}
			})
		})
	}
}

// What a person approves is opened for that call, and for no other one.
func TestAPathOutsideThatAPersonApprovesWorksOnce(t *testing.T) {
	atEachLevel(t, func(h atLevel) {
		t, level := h.t, h.level
		dir := outsideFolder(t, map[string]string{"a.txt": "alpha\n", "b.txt": "beta\n"})
		policy := policyOf("permissions:\n- {permission: '*', action: allow}\n- {permission: external_directory, pattern: '*', action: ask}\n")
		steps := strings.ReplaceAll(`
- calls: [{tool: read, args: {path: DIR/a.txt}}]
- calls: [{tool: bash, args: {command: 'cat a.txt', workdir: DIR}}]
`, "DIR", dir)
		_, out := outsideRun(t, policy, steps, level, func(o *RunOptions) { o.Approve = "all" })
		for i := range 2 {
			if c := call(t, out, i); c.State != "completed" || !strings.Contains(text(t, out, i), "alpha") {
				t.Errorf("call %d of %s is %s: %s", i, c.Tool, c.State, text(t, out, i))
			}
		}
		_, out = outsideRun(t, policy, steps, level, func(o *RunOptions) { o.Approve = "never" })
		for i := range 2 {
			if c := call(t, out, i); c.State != "error" || strings.Contains(text(t, out, i), "alpha") {
				t.Errorf("refused: call %d of %s is %s: %s", i, c.Tool, c.State, text(t, out, i))
			}
		}
	})
}

// In a sandbox a call sees exactly the paths that were allowed for it, with the
// access that was judged, and the next call sees none of them.
func TestACallSeesExactlyThePathsOfItsDecision(t *testing.T) {
	atEachLevel(t, func(h atLevel) {
		t, level := h.t, h.level
		if strings.HasSuffix(t.Name(), "none") {
			t.Skip("without a sandbox, commands see the whole file system")
		}
		dir := outsideFolder(t, map[string]string{"d/a.txt": "alpha\n", "d/.env": "KEY=1\n", "sibling.txt": "sibling\n", "one.txt": "one\n"})
		if err := os.Link(filepath.Join(dir, "sibling.txt"), filepath.Join(dir, "d/linked.txt")); err != nil {
			t.Fatal(err)
		}
		deny := "- {permission: read, pattern: '*/.env', action: deny}\n"
		policy := opening(dir+"/d", deny, "- {permission: external_directory, pattern: '"+dir+"/one.txt', action: allow}\n")
		_, out := outsideRun(t, policy, strings.ReplaceAll(`
- calls: [{tool: bash, args: {command: 'echo changed > a.txt; touch new; true', workdir: DIR/d}}]
- calls: [{tool: bash, args: {command: 'ls -a $(printf ..)', workdir: DIR/d}}]
- calls: [{tool: bash, args: {command: 'F=.en; x=$(printf %sv $F); cat ./$x; cat linke*', workdir: DIR/d}}]
- calls: [{tool: read, args: {path: DIR/one.txt}}]
- calls: [{tool: bash, args: {command: 'cd /; find . -name "*.txt" -path "*DIR*" 2>/dev/null; true'}}]
- calls: [{tool: grep, args: {pattern: 'KEY|sibling', path: DIR/d}}]
`, "DIR", dir), level, func(o *RunOptions) { o.Approve = "all" })
		if _, err := os.Stat(filepath.Join(dir, "d/new")); !os.IsNotExist(err) {
			t.Errorf("the folder that was only to be read has a new file: %v", err)
		}
		if b, err := os.ReadFile(filepath.Join(dir, "d/a.txt")); err != nil || string(b) != "changed\n" {
			t.Errorf("the file that the script was allowed to write holds %q, %v", b, err)
		}
		if s := text(t, out, 1); strings.Contains(s, "sibling.txt") || strings.Contains(s, "one.txt") {
			t.Errorf("the command sees what is beside its folder: %s", s)
		}
		if s := text(t, out, 2); strings.Contains(s, "KEY=1") || strings.Contains(s, "sibling\n") {
			t.Errorf("the command reads what the policy denies, or a file by another name: %s", s)
		}
		if s := text(t, out, 3); !strings.Contains(s, "1: one") {
			t.Errorf("read: %s", s)
		}
		if s := text(t, out, 4); strings.Contains(s, "one.txt") {
			t.Errorf("the next call still sees the path: %s", s)
		}
		if s := text(t, out, 5); strings.Contains(s, "KEY=") || strings.Contains(s, "sibling") {
			t.Errorf("grep shows what the policy denies, or a file by another name: %s", s)
		}
	})
}

// Some places stay closed whatever a policy or a person says.
func TestNoDecisionOpensWhatNoToolMaySee(t *testing.T) {
	atEachLevel(t, func(h atLevel) {
		t, level := h.t, h.level
		dir := outsideFolder(t, map[string]string{"secret": "alpha\n", "repo/.git/hooks/pre-commit": "old\n"})
		if err := os.Link(filepath.Join(dir, "secret"), filepath.Join(dir, "other-name")); err != nil {
			t.Fatal(err)
		}
		pipe := filepath.Join(dir, "pipe")
		if out, err := exec.CommandContext(t.Context(), "mkfifo", pipe).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		policy := policyOf("default: allow\nrules: [{name: all, action: allow, when: \"paths.exists(p, !p.inWorkspace)\"}]\n")
		p := newPlace(t, agent(fileTools, "", policy), nil)
		write(t, filepath.Join(p.state, "credentials/KEY"), "alpha\n")
		paths := []string{
			filepath.Join(p.state, "credentials/KEY"), p.state, filepath.Dir(p.state), "/proc/self/environ", "/dev/null", "/dev", "/", "/run", pipe,
			filepath.Join(dir, "other-name"), filepath.Join(dir, "missing"), "/proc/1/root/etc/hostname",
		}
		var steps strings.Builder
		for _, path := range paths {
			fmt.Fprintf(&steps, "- calls: [{tool: read, args: {path: '%s'}}]\n", path)
		}
		fmt.Fprintf(&steps, "- calls: [{tool: write, args: {path: '%s/repo/.git/hooks/post-commit', content: x}}]\n", dir)
		fmt.Fprintf(&steps, "- calls: [{tool: bash, args: {command: ls, workdir: '%s'}}]\n", p.state)
		write(t, filepath.Join(p.manifests, "all.yaml"), agent(fileTools, steps.String()+"- say: done\n", policy))
		out := p.run(t, level, func(o *RunOptions) { o.Approve = "all" })
		if out.Run.Finished.Reason == string(reason.IsolationUnavailable) {
			t.Skipf("this host gives no sandbox: %s", out.Run.Finished.Message)
		}
		for i := range len(paths) + 2 {
			if c := call(t, out, i); c.State != "error" || strings.Contains(text(t, out, i), "alpha") {
				t.Errorf("call %d of %s is %s: %s", i, c.Args, c.State, text(t, out, i))
			}
		}
		if _, err := os.Stat(filepath.Join(dir, "repo/.git/hooks/post-commit")); !os.IsNotExist(err) {
			t.Errorf("git's hook was written: %v", err)
		}
	})
}

// A link is put in the place of what was judged, after the decision and before the
// call begins. The folder that it leads to is not allowed.
func TestALinkSwappedAfterTheDecisionLeadsNowhere(t *testing.T) {
	atEachLevel(t, func(h atLevel) {
		t, level := h.t, h.level
		for _, step := range []string{
			"{tool: read, args: {path: DIR/d/a.txt}}",
			"{tool: grep, args: {pattern: evil, path: DIR/d}}",
			"{tool: write, args: {path: DIR/d/a.txt, content: overwritten}}",
			"{tool: write, args: {path: DIR/d/new.txt, content: overwritten}}",
			"{tool: bash, args: {command: cat a.txt, workdir: DIR/d}}",
		} {
			for _, swapped := range []string{"d", "d/a.txt", "d/new.txt"} {
				if swapped != "d" && strings.Contains(step, "bash") && strings.HasSuffix(t.Name(), "none") {
					continue // nothing holds the command itself
				}
				dir := outsideFolder(t, map[string]string{"d/a.txt": "alpha\n", "evil/a.txt": "evil\n"})
				at, began := filepath.Join(dir, swapped), false
				_, out := outsideRun(t, opening(dir+"/d"), "- calls: ["+strings.ReplaceAll(step, "DIR", dir)+"]\n", level, func(o *RunOptions) {
					o.Events = func(e event.Event) {
						if _, begins := e.Data.(event.ToolCall); !begins {
							return
						}
						began = true
						if err := os.Rename(at, filepath.Join(dir, "moved")); err != nil && !os.IsNotExist(err) {
							t.Error(err)
						}
						if err := os.Symlink(filepath.Join(dir, "evil", strings.TrimPrefix(swapped, "d")), at); err != nil {
							t.Error(err)
						}
					}
				})
				if !began {
					t.Fatalf("%s: the call was not made: %s", step, text(t, out, 0))
				}
				if s := text(t, out, 0); strings.Contains(strings.ReplaceAll(s, dir+"/evil", ""), "evil\n") || strings.Contains(s, ": evil") || strings.Contains(s, ":evil") {
					t.Errorf("%s with %s swapped: the tool followed the link: %s", step, swapped, s)
				}
				b, err := os.ReadFile(filepath.Join(dir, "evil/a.txt"))
				if names, e := os.ReadDir(filepath.Join(dir, "evil")); e != nil || err != nil || string(b) != "evil\n" || len(names) != 1 {
					t.Errorf("%s with %s swapped: %q, %v, %v", step, swapped, b, names, err)
				}
			}
		}
	})
}

// Only reading is allowed by name: a write is judged by itself.
func TestAPathThatMayBeReadIsNotWritten(t *testing.T) {
	atEachLevel(t, func(h atLevel) {
		t, level := h.t, h.level
		dir := outsideFolder(t, map[string]string{"a.txt": "alpha\n"})
		policy := policyOf(fmt.Sprintf("default: allow\npermissions:\n- {permission: external_directory, pattern: '%s/*', action: allow}\n", dir))
		_, out := outsideRun(t, policy, strings.ReplaceAll(`
- calls: [{tool: read, args: {path: DIR/a.txt}}]
- calls: [{tool: write, args: {path: DIR/a.txt, content: changed}}]
- calls: [{tool: write, args: {path: DIR/b.txt, content: changed}}]
`, "DIR", dir), level)
		if c := call(t, out, 0); c.State != "completed" {
			t.Errorf("read is %s: %s", c.State, text(t, out, 0))
		}
		for i := 1; i < 3; i++ {
			if c := call(t, out, i); c.State != "error" {
				t.Errorf("write is %s: %s", c.State, text(t, out, i))
			}
		}
		names, err := os.ReadDir(dir)
		if b, _ := os.ReadFile(filepath.Join(dir, "a.txt")); string(b) != "alpha\n" || err != nil || len(names) != 1 {
			t.Errorf("the folder now holds %v, the file %q", names, b)
		}
	})
}
