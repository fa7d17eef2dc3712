package runner

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/reason"
)

// shellAttack is a command that tries to change files, in @OUT@, a folder beside the
// workspace, or create the file @M@. Setup runs in the workspace before the run.
type shellAttack struct {
	ID, Command, Setup string
}

// ownAttacks are a few for each way to change a file.
var ownAttacks = []shellAttack{
	{"redirect", "echo x >notes.txt; echo x >>new.txt; >notes.txt", ""},
	{"substitution", "echo $(echo x >made) `touch made2` <(touch made3)", ""},
	{"remove", "rm -rf victim notes.txt .git; find . -delete; git clean -fdx", "mkdir victim; touch victim/f"},
	{"rename and link", "mv notes.txt b; ln notes.txt c; ln -s /etc/passwd d; cp notes.txt e", ""},
	{"attributes", "chmod 777 notes.txt; touch -d 2001-01-01 notes.txt; chown 0 notes.txt; setfattr -n user.x -v y notes.txt", ""},
	{"descriptors", "exec 3<>notes.txt; echo x >&3; exec 4<notes.txt; echo x >/proc/self/fd/4; echo x >/dev/fd/4", ""},
	{"git", "git config user.name x; git commit -qam x; git checkout -b x; git stash; git gc; git worktree add ../out/w", ""},
	{"mounts", "mount -o remount,rw .; mount --bind /tmp .; unshare -Urm sh -c 'mount -o remount,rw . ; touch unshared'; touch made", ""},
	{"other names", `for p in /proc/[0-9]*; do touch $p/cwd/proc $p/root"$PWD"/root; done 2>/dev/null; touch /proc/self/cwd/x`, ""},
	{"programs", "perl -e 'open F,q(>),q(p); unlink q(notes.txt)'; awk 'BEGIN{print 1 >\"awk\"}'; sed -i s/a/b/ notes.txt; tee t </dev/null; dd if=/dev/zero of=dd count=1; truncate -s 9 notes.txt", ""},
	{"background", "(setsid sh -c 'for i in 1 2 3 4 5; do touch late; touch @M@; done' &) ; touch later & wait", ""},
	{"outside", "touch @M@; echo x >@OUT@/private.txt; rm -rf @OUT@; cd ..; touch above; echo x >../out/y", "ln -s ../out link"},
	{"through a link", "touch link/x; rm link; echo x >link/private.txt; rm -rf link/", "ln -s ../out link"},
}

// snapshot is everything of a folder that a program could change, except times of access.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		text := fmt.Sprint(info.Mode())
		if !e.IsDir() { // what is in a folder counts: agentctl itself touches .git
			text += fmt.Sprint(" ", info.ModTime().UnixNano())
		}
		switch {
		case info.Mode().IsRegular():
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" %x", sha256.Sum256(content))
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			text += " " + to
		}
		rel, err := filepath.Rel(dir, path)
		all[rel] = text
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// attacked runs commands with the shell of a preset on the files themselves, and returns
// what changed: in them and beside them if the policies of the preset hold, else in them,
// because a policy that allows every call allows to write elsewhere.
func attacked(t *testing.T, preset string, held bool, attacks []shellAttack) (changed string) {
	t.Helper()
	spec := "preset: " + preset + "\nmodelRef: {name: script}\nlimits: {maxSteps: 500}"
	if !held {
		spec += "\npolicyRefs: [{name: all}]"
	}
	top := t.TempDir()
	ws, out := filepath.Join(top, "project"), filepath.Join(top, "out")
	write(t, filepath.Join(ws, "notes.txt"), "a\n")
	write(t, filepath.Join(ws, "protected/f"), "p\n")
	write(t, filepath.Join(ws, "README.md"), "a project\n")
	write(t, filepath.Join(ws, "LICENSE"), "free\n")
	write(t, filepath.Join(out, "private.txt"), "CANARY\n")
	sh(t, ws, "git init -q && git add -A && git -c user.name=a -c user.email=a@b.example commit -qm first")
	names := strings.NewReplacer("@OUT@", out, "@M@", filepath.Join(out, "marker"))
	steps := ""
	for _, a := range attacks {
		if a.Setup != "" {
			sh(t, ws, names.Replace(a.Setup))
		}
		command := strings.ReplaceAll(names.Replace(a.Command), "${", "$${") // not an expression of the scripted model
		args, err := json.Marshal(map[string]any{"command": command, "timeout": 10_000})
		if err != nil {
			t.Fatal(err)
		}
		steps += "- calls: [{tool: bash, args: " + string(args) + "}]\n"
	}
	p := newPlace(t, "apiVersion: agentctl.dev/v1alpha1\nkind: Agent\nmetadata: {name: worker}\nspec:\n"+indent(spec)+
		"---\napiVersion: agentctl.dev/v1alpha1\nkind: Policy\nmetadata: {name: all}\nspec: {default: allow, permissions: [{permission: \"*\", action: allow}]}\n"+
		"---\napiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: script}\nspec:\n  provider: scripted\n  scripted:\n    steps:\n"+indent(indent(steps+"- say: done\n")), nil)
	p.workspace = ws
	if !held {
		top = ws
	}
	before := snapshot(t, top)
	ended := p.run(t, func(o *RunOptions) { o.AllowUnsandboxed, o.InPlace, o.Approve = false, true, "all" })
	if ended.Run.Finished.Reason == string(reason.IsolationUnavailable) {
		t.Skipf("this host gives no sandbox: %s", ended.Run.Finished.Message)
	}
	if n := len(ended.Result().ToolCalls); n != len(attacks) {
		t.Errorf("%s: %d calls were made, want %d: %s %s", attacks[0].ID, n, len(attacks), ended.Run.Finished.Reason, ended.Run.Finished.Message)
	}
	return cmp.Diff(before, snapshot(t, top))
}

func sh(t *testing.T, dir, command string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", command)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// TestReadOnlyPresetsChangeNothing: neither what the policies of a preset hold off, nor the
// mount alone where every call is allowed, changes a file. The same commands change files
// with the shell of the preset build.
func TestReadOnlyPresetsChangeNothing(t *testing.T) {
	buildSandboxAndTools(t)
	for _, preset := range []string{"plan", "explore"} {
		for _, held := range []bool{true, false} {
			if changed := attacked(t, preset, held, ownAttacks); changed != "" {
				t.Errorf("preset %s, with its policies %t (-before +after):\n%s", preset, held, changed)
			}
		}
	}
	if attacked(t, "build", false, ownAttacks[:1]) == "" {
		t.Error("the attacks change nothing where they may")
	}
}
