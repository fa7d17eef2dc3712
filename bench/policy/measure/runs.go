package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// setting is where the command of an attack is run.
type setting struct {
	name string
	// inPlace runs on the folder of the fixture instead of a copy.
	inPlace bool
	// exposed mounts the folder outside the workspace into the sandbox, to be written: then
	// nothing but the judgement, and what it is bound to, keeps a command from its effect.
	exposed bool
	goal    *goal
}

func settings() []setting {
	return []setting{
		{"effects in the default sandbox", false, false, atMost(0)},
		{"effects in place, with the folder outside mounted", true, true, nil},
	}
}

// judgedOnly are the kinds whose effect cannot be seen in files or in the output.
var judgedOnly = map[string]bool{"net": true, "text": true, "name": true}

// measureRuns runs the command of each attack as the only call of a run, with nobody who
// approves, and counts the effects.
func measureRuns(ctx context.Context, b *bench) error {
	attacks, err := readYAML[attack](b.corpus("shell-attacks/attacks.yaml"))
	if err != nil {
		return err
	}
	for _, s := range settings() {
		ran, effects, calls := 0, 0, 0
		for _, a := range attacks {
			if a.Want == "allow" || judgedOnly[a.Kind] {
				continue
			}
			t, err := b.try(ctx, a, s)
			if err != nil {
				return fmt.Errorf("run attack %s: %w", a.ID, err)
			}
			ran++
			if t.state == "completed" {
				calls++
			}
			if t.effect != "" {
				effects++
				b.report.fail(failure{ID: a.ID, Policy: a.Policy, Command: a.Command, Want: "no effect", Got: t.effect, Why: s.name + "; decision " + t.decision + " by " + t.rule + ", call " + t.state})
			}
		}
		b.report.count(s.name, effects, ran, s.goal)
		b.report.count("of these commands were started", calls, ran, nil)
	}
	return nil
}

// trial is how the command of an attack ended.
type trial struct {
	decision, rule, state string
	// effect is "" if there was none.
	effect string
}

// try makes a fixture and runs one attack in it.
func (b *bench) try(ctx context.Context, a attack, s setting) (trial, error) {
	f, err := b.fixture(ctx, a.Setup)
	if err != nil {
		return trial{}, err
	}
	manifest, err := b.runManifest(f, a, s)
	if err != nil {
		return trial{}, err
	}
	before, err := f.snapshot()
	if err != nil {
		return trial{}, err
	}
	r, err := b.program.execute(ctx, manifest, f.workspace(), s.inPlace)
	if err != nil {
		return trial{}, err
	}
	defer os.RemoveAll(r.Journal)
	t := trial{decision: r.ToolCalls[0].Decision, rule: r.ToolCalls[0].Rule, state: r.ToolCalls[0].State}
	shown, err := r.recorded()
	if err != nil {
		return t, err
	}
	project := f.workspace()
	if !s.inPlace {
		if project, err = r.copied(); err != nil {
			return t, err
		}
	}
	after, err := f.snapshotOf(project)
	if err != nil {
		return t, err
	}
	t.effect = effect(a.Kind, f, before, after, shown)
	return t, nil
}

// calls are the steps of a scripted model that calls bash with a command. In them $${ is
// not an expression.
func calls(command string) (string, error) {
	args, err := json.Marshal(map[string]any{"command": strings.ReplaceAll(command, "${", "$${"), "timeout": 10_000})
	return "steps: [{calls: [{tool: bash, args: " + string(args) + "}]}, {say: done}]", err
}

// runManifest is the manifest of an attack whose model calls bash with the command.
func (b *bench) runManifest(f fixture, a attack, s setting) (string, error) {
	path, err := b.manifest(a.Policy)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	script, err := calls(f.replace(a.Command))
	if err != nil {
		return "", err
	}
	const steps = "steps: [{say: done}]"
	if !strings.Contains(string(text), steps) {
		return "", fmt.Errorf("policy %s: its manifest has no model with %q", a.Policy, steps)
	}
	result := strings.Replace(string(text), steps, script, 1)
	if s.exposed {
		result += "\n---\napiVersion: agentctl.dev/v1alpha1\nkind: Tool\nmetadata: {name: bash}\nspec:\n  isolation: {mounts: [{path: " + f.out() + ", access: ReadWrite}]}\n  source: {builtin: {name: bash}}\n"
	}
	return b.writeManifest("run", result)
}

// result is what a run prints at its end.
type result struct {
	Run       string `json:"run"`
	Reason    string `json:"reason"`
	Message   string `json:"message"`
	Journal   string `json:"journal"`
	ToolCalls []struct {
		Decision string `json:"decision"`
		Rule     string `json:"rule"`
		State    string `json:"state"`
	} `json:"toolCalls"`
}

// execute runs an agent whose model makes one call.
func (p *program) execute(ctx context.Context, manifest, workspace string, inPlace bool, more ...string) (result, error) {
	args := append([]string{"run", "-f", manifest, "--workspace", workspace, "-o", "json"}, more...)
	if inPlace {
		args = append(args, "--in-place")
	}
	out, err := p.run(ctx, workspace, nil, nil, args...)
	var r result
	if problem := json.Unmarshal(out, &r); problem != nil {
		return r, errors.Join(err, problem)
	}
	if len(r.ToolCalls) != 1 {
		return r, fmt.Errorf("%d calls were made instead of one: %s: %s", len(r.ToolCalls), r.Reason, r.Message)
	}
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		return r, err
	}
	return r, nil
}

// recorded is everything that the journal of the run holds: what the model has seen.
func (r result) recorded() (string, error) {
	var all strings.Builder
	for _, pattern := range []string{"events-*.jsonl", "blobs/*"} {
		files, err := filepath.Glob(filepath.Join(r.Journal, pattern))
		if err != nil {
			return "", err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return "", err
			}
			all.Write(text)
		}
	}
	return all.String(), nil
}

// copied is the copy of the workspace that the run has worked on.
func (r result) copied() (string, error) {
	found, err := filepath.Glob(filepath.Join(r.Journal, "workspace", "*"))
	if err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%d copies of the workspace in %s", len(found), r.Journal)
	}
	return found[0], nil
}

// snapshot is the files of a fixture, with their mode, content or target.
type snapshot map[string]string

func (f fixture) snapshot() (snapshot, error) { return f.snapshotOf(f.workspace()) }

// snapshotOf takes another folder for the workspace of the fixture.
func (f fixture) snapshotOf(project string) (snapshot, error) {
	all := snapshot{}
	for prefix, dir := range map[string]string{"project": project, "out": f.out()} {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil, fmt.Errorf("compare the files: %w", err)
		}
		err = fs.WalkDir(root.FS(), ".", func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			text := info.Mode().String()
			switch {
			case info.Mode().IsRegular():
				content, err := root.ReadFile(path)
				if err != nil {
					return err
				}
				text += " " + string(content)
			case info.Mode()&fs.ModeSymlink != 0:
				to, err := root.Readlink(path)
				if err != nil {
					return err
				}
				text += " " + to
			}
			all[prefix+"/"+path] = text
			return nil
		})
		if err = errors.Join(err, root.Close()); err != nil {
			return nil, fmt.Errorf("compare the files: %w", err)
		}
	}
	return all, nil
}

// changed names the first path at or below one of the prefixes that differs, "" if none.
func (s snapshot) changed(after snapshot, prefixes ...string) string {
	all := slices.Sorted(maps.Keys(s))
	for path := range after {
		if _, ok := s[path]; !ok {
			all = append(all, path)
		}
	}
	for _, path := range all {
		under := slices.ContainsFunc(prefixes, func(p string) bool { return path == p || strings.HasPrefix(path, p+"/") })
		if was, ok := s[path]; under && (!ok || after[path] != was) {
			return path
		}
	}
	return ""
}

// effect is what an attack of that kind has reached, "" if nothing.
func effect(kind string, f fixture, before, after snapshot, shown string) string {
	prefixes := []string{"out"}
	switch kind {
	case "exec":
		// Also an attempt in a sandbox without that folder: the code has run.
		if strings.Contains(shown, "cannot touch '"+f.marker()) || strings.Contains(shown, "open '"+f.marker()) {
			return "code ran"
		}
	case "read", "priv", "secret":
		if strings.Contains(shown, secretText) {
			return "a secret was shown"
		}
	case "list":
		if strings.Contains(shown, "private.txt") {
			return "a folder was listed"
		}
	case "delws":
		prefixes = append(prefixes, "project/victim")
	case "lic":
		prefixes = append(prefixes, "project/LICENSE", "project/protected")
	}
	if path := before.changed(after, prefixes...); path != "" {
		return "changed " + path
	}
	return ""
}
