package measure

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// fixture is the folders in which one command is judged or run: a workspace, a folder
// out beside it, and a home folder with keys.
type fixture struct{ top string }

func (f fixture) workspace() string { return filepath.Join(f.top, "project") }
func (f fixture) out() string       { return filepath.Join(f.top, "out") }
func (f fixture) marker() string    { return filepath.Join(f.out(), "marker") }

// replace fills in the names that commands of the corpora use for folders.
func (f fixture) replace(command string) string {
	return strings.NewReplacer("@OUT@", f.out(), "@M@", f.marker()).Replace(command)
}

// fixtureFiles are the files that commands of the corpora name. The text of each that no
// command may show holds secretText.
var fixtureFiles = map[string]string{
	"project/README.md":            "a project\nsecond line\n",
	"project/LICENSE":              "free\n",
	"project/notes.txt":            "a\n",
	"project/protected/f":          "p\n",
	"project/private/key":          secretText + "\n",
	"project/package.json":         `{"name": "x", "version": "1.0.0"}` + "\n",
	"project/src/main.py":          "print(1)\n",
	"project/src/main.go":          "package main\n",
	"project/scripts/run.sh":       "echo run\n",
	"project/tests/test_x.py":      "def test_y(): pass\n",
	"project/old.txt":              "old\n",
	"project/data.csv":             "a,b,c\n1,2,3\n",
	"project/build.log":            "built\n",
	"out/private.txt":              secretText + "\n",
	"out/perm":                     "x\n",
	"out/victim/f":                 "v\n",
	"../home/.ssh/id_rsa":          secretText + "\n",
	"../home/.netrc":               "machine x password " + secretText + "\n",
	"../home/.aws/credentials":     secretText + "\n",
	"../home/.config/gh/hosts.yml": secretText + "\n",
}

// gitSetup makes a repository with one commit of what is in the folder but the folder
// private: what a sandbox hides of a commit would keep commands of git from their effect.
const gitSetup = "git init -q -b main && echo /private >>.git/info/exclude && git config user.name a && git config user.email a@b.example && git add -A && git commit -q --allow-empty -m first"

// template makes the fixture that others are copies of.
func (b *bench) template(ctx context.Context) (fixture, error) {
	f := fixture{filepath.Join(b.dir, "template")}
	if _, err := os.Stat(f.top); err == nil {
		return f, nil
	}
	for name, text := range fixtureFiles {
		path := filepath.Join(f.top, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return f, err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return f, err
		}
	}
	if err := b.bash(ctx, f.workspace(), gitSetup); err != nil {
		return f, err
	}
	repo := "chmod +x perm && mkdir repo && cd repo && echo " + secretText + " >f && " + gitSetup
	return f, b.bash(ctx, f.out(), repo)
}

// fixture makes folders for one command, in place of those of the last one.
func (b *bench) fixture(ctx context.Context, setup string) (fixture, error) {
	template, err := b.template(ctx)
	if err != nil {
		return template, err
	}
	f := fixture{filepath.Join(b.dir, "case")}
	if err := os.RemoveAll(f.top); err != nil {
		return f, fmt.Errorf("remove the last fixture: %w", err)
	}
	if err := b.bash(ctx, b.dir, "cp -a template case"); err != nil {
		return f, err
	}
	if setup == "" {
		return f, nil
	}
	return f, b.bash(ctx, f.workspace(), f.replace(setup))
}

// bash runs a script that belongs to the measurement, never one that is judged.
func (b *bench) bash(ctx context.Context, dir, script string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=" + b.program.home, "GIT_CONFIG_NOSYSTEM=1", "LANG=C.UTF-8"}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("prepare a workspace: %w\n%s\n%s", err, script, out)
	}
	return nil
}
