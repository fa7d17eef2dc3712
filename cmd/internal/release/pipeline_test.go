package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// action is what the tests know of a composite action, as GitHub's runner reads it.
type action struct {
	Inputs map[string]struct {
		Default  string `json:"default"`
		Required bool   `json:"required"`
	} `json:"inputs"`
	Runs struct {
		Steps []struct {
			ID, If, Uses, Shell, Run string
			Env, With                map[string]string
		} `json:"steps"`
	} `json:"runs"`
}

const (
	actionFolder = "../../../.github/actions/agentctl"
	template     = "../../../.gitlab/agentctl.yml"
)

// stand is what agentctl is replaced with: it prints its arguments and its standard input.
const stand = "#!/bin/sh\nfor a; do printf '<%s>' \"$a\"; done\ncat\nexit ${STAND_EXIT:-0}\n"

// standing makes a mirror whose archive for this machine holds stand, and returns the
// archive's checksum.
func standing(t *testing.T) (m *mirror, sum string) {
	t.Helper()
	m = newMirror(t)
	program := filepath.Join(t.TempDir(), "agentctl")
	if err := os.WriteFile(program, []byte(stand), 0o755); err != nil {
		t.Fatal(err)
	}
	built := []binary{{Program: Program{Name: "agentctl"}, File: program}}
	file := filepath.Join(m.dir, m.archive())
	if err := archive(file, &source{Dir: "../../..", Time: time.Unix(0, 0)}, strings.TrimSuffix(m.archive(), ".tar.gz"), built); err != nil {
		t.Fatal(err)
	}
	sum, err := digest(file)
	if err != nil {
		t.Fatal(err)
	}
	checksums := string(read(t, filepath.Join(m.dir, checksumsName))) + sum + "  " + m.archive() + "\n"
	checksums = regexp.MustCompile(`(?m)^\S+  `+regexp.QuoteMeta(m.archive())+`\n`).ReplaceAllString(checksums, "") + sum + "  " + m.archive() + "\n"
	if err := os.WriteFile(filepath.Join(m.dir, checksumsName), []byte(checksums), 0o600); err != nil {
		t.Fatal(err)
	}
	return m, sum
}

var expression = regexp.MustCompile(`\$\{\{ *(.*?) *\}\}`)

// act carries out the steps of the action that run something, as a runner does: in bash, with
// the files of GITHUB_PATH and GITHUB_OUTPUT, and expressions only where they are values.
func act(t *testing.T, home string, m *mirror, inputs map[string]string, env ...string) (outputs map[string]string, printed string, err error) {
	t.Helper()
	var a action
	if err := yaml.Unmarshal(read(t, filepath.Join(actionFolder, "action.yml")), &a); err != nil {
		t.Fatal(err)
	}
	folder, e := filepath.Abs(actionFolder)
	if e != nil {
		t.Fatal(e)
	}
	temp := t.TempDir()
	values := map[string]string{"github.action_path": folder, "runner.temp": temp}
	for name, in := range a.Inputs {
		values["inputs."+name] = in.Default
		if value, ok := inputs[name]; ok {
			values["inputs."+name] = value
		} else if in.Required {
			t.Fatalf("input %s is required", name)
		}
	}
	path := os.Getenv("PATH")
	outputs = map[string]string{}
	for _, step := range a.Runs.Steps {
		if strings.Contains(step.Run, "${{") {
			t.Errorf("step %s has an expression in its script: an input becomes a command", step.ID)
		}
		if step.If != "" && values["inputs.files"] == "" || step.Run == "" {
			continue
		}
		script, to, out := filepath.Join(temp, "step.sh"), filepath.Join(temp, "path"), filepath.Join(temp, "output")
		for file, text := range map[string]string{script: step.Run, to: "", out: ""} {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc", "-e", "-o", "pipefail", script)
		cmd.Dir = temp
		cmd.Env = append([]string{"PATH=" + path, "HOME=" + home, "CURL_CA_BUNDLE=" + m.authority, "no_proxy=127.0.0.1", "GITHUB_PATH=" + to, "GITHUB_OUTPUT=" + out}, env...)
		for name, value := range step.Env {
			cmd.Env = append(cmd.Env, name+"="+expression.ReplaceAllStringFunc(value, func(text string) string {
				v, known := values[expression.FindStringSubmatch(text)[1]]
				if !known {
					t.Errorf("step %s: %s is not known to this runner", step.ID, text)
				}
				return v
			}))
		}
		text, err := cmd.CombinedOutput()
		printed += string(text)
		for line := range strings.Lines(string(read(t, out))) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			outputs[name] = value
		}
		if err != nil {
			return outputs, printed, err
		}
		for line := range strings.Lines(string(read(t, to))) {
			path = strings.TrimSpace(line) + ":" + path
		}
	}
	return outputs, printed, nil
}

// hostile is a title of a pull request.
const hostile = "@/etc/passwd \"; touch pwned; $(touch pwned) `touch pwned` ${{ x }} '\\"

func TestActionInstallsAndRuns(t *testing.T) {
	m, sum := standing(t)
	home := t.TempDir()
	inputs := map[string]string{"version": version, "sha256": sum, "base-url": m.url, "files": "my agents", "agent": "a b", "prompt": hostile}
	want := "<run><-f><my agents><-o><json><--ci><github><--agent=a b><-p><->" + hostile
	for _, from := range []string{"the server", "the cache"} {
		outputs, printed, err := act(t, home, m, inputs)
		if err != nil || outputs["exit-code"] != "0" {
			t.Fatalf("from %s: %v, %v: %s", from, err, outputs, printed)
		}
		if got := string(read(t, outputs["result"])); got != want {
			t.Errorf("from %s: agentctl was given %q, want %q", from, got, want)
		}
		if found, _ := filepath.Glob(filepath.Join(filepath.Dir(outputs["result"]), "pwned")); len(found) > 0 {
			t.Error("an input became a command")
		}
		if err := os.Remove(filepath.Join(m.dir, m.archive())); err != nil && from == "the server" {
			t.Fatal(err)
		}
	}
	t.Run("a changed cache", func(t *testing.T) {
		kept := filepath.Join(home, ".agentctl", "cache", m.archive())
		if err := os.WriteFile(kept, append(read(t, kept), 0), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, printed, err := act(t, home, m, inputs); err == nil || !strings.Contains(printed, "could not download") {
			t.Errorf("%v: %s", err, printed)
		}
	})
}

func TestActionFailsAsTheRunDoes(t *testing.T) {
	m, sum := standing(t)
	inputs := map[string]string{"version": version, "sha256": sum, "base-url": m.url, "files": "agents"}
	outputs, printed, err := act(t, t.TempDir(), m, inputs, "STAND_EXIT=3")
	if err == nil || outputs["exit-code"] != "3" {
		t.Errorf("%v, %v: %s", err, outputs, printed)
	}
	for name, want := range map[string]string{"": "input sha256 is missing", strings.Repeat("0", 64): "nothing was installed"} {
		inputs["sha256"] = name
		if _, printed, err := act(t, t.TempDir(), m, inputs); err == nil || !strings.Contains(printed, want) {
			t.Errorf("sha256 %q: %v: %s", name, err, printed)
		}
	}
}

// The script of the template is run with the variables that GitLab makes of its inputs.
func TestTemplateInstallsAndRuns(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the template installs the archive for amd64")
	}
	m, sum := standing(t)
	_, job, found := bytes.Cut(read(t, template), []byte("\n---\n"))
	if !found {
		t.Fatal("it has no header")
	}
	var jobs map[string]struct{ Script []string }
	if err := yaml.Unmarshal(job, &jobs); err != nil {
		t.Fatal(err)
	}
	script := strings.Join(jobs["$[[ inputs.job-name ]]"].Script, "\n")
	if script == "" || strings.Contains(script, "$[[") {
		t.Fatalf("the script is empty, or has an input in it:\n%s", script)
	}
	dir := t.TempDir()
	run := func(sum string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
		cmd.Dir = dir
		cmd.Env = []string{
			"PATH=" + os.Getenv("PATH"), "CURL_CA_BUNDLE=" + m.authority, "no_proxy=127.0.0.1", "TMPDIR=" + t.TempDir(), "AGENTCTL_VERSION=" + version,
			"AGENTCTL_SHA256=" + sum, "AGENTCTL_BASE_URL=" + m.url, "AGENTCTL_FILES=my agents", "AGENTCTL_AGENT=", "AGENTCTL_PROMPT=" + hostile,
		}
		text, err := cmd.CombinedOutput()
		return string(text), err
	}
	if text, err := run(strings.Repeat("0", 64)); err == nil || !strings.Contains(text, "does not have the checksum") {
		t.Errorf("another checksum: %v: %s", err, text)
	}
	for _, from := range []string{"the server", "the cache"} {
		if text, err := run(sum); err != nil {
			t.Fatalf("from %s: %v: %s", from, err, text)
		}
		if got, want := string(read(t, filepath.Join(dir, "agentctl-result.json"))), "<run><-f><my agents><-o><json><--ci><gitlab><-p><->"+hostile; got != want {
			t.Errorf("from %s: agentctl was given %q, want %q", from, got, want)
		}
		_ = os.Remove(filepath.Join(m.dir, m.archive()))
	}
	if _, err := os.Stat(filepath.Join(dir, "pwned")); err == nil {
		t.Error("an input became a command")
	}
}

// What the docs show of the action names inputs that it has.
func TestDocsUseInputsThatExist(t *testing.T) {
	var a action
	if err := yaml.Unmarshal(read(t, filepath.Join(actionFolder, "action.yml")), &a); err != nil {
		t.Fatal(err)
	}
	_, shown, found := strings.Cut(string(read(t, "../../../docs/ci.md")), "/.github/actions/agentctl@")
	if !found {
		t.Fatal("docs/ci.md does not show the action")
	}
	shown, _, _ = strings.Cut(shown, "```")
	names := regexp.MustCompile(`(?m)^ {8}([a-z0-9-]+):`).FindAllStringSubmatch(shown, -1)
	for _, name := range names {
		if _, ok := a.Inputs[name[1]]; !ok && !strings.HasPrefix(name[1], "OPENAI") {
			t.Errorf("docs/ci.md sets the input %s, which the action does not have", name[1])
		}
	}
	if len(names) < 3 {
		t.Errorf("%d inputs found", len(names))
	}
}
