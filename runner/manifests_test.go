package runner

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/agenttest"
)

// TestEveryManifestFolderRuns runs what stands in manifests/ to its end, each
// on a small git repository that looks like this one.
func TestEveryManifestFolderRuns(t *testing.T) {
	folders, err := os.ReadDir("../manifests")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, f := range folders {
		if !f.IsDir() || playedByTests(f.Name()) {
			continue
		}
		ran++
		t.Run(f.Name(), func(t *testing.T) {
			p := newPlace(t, "", map[string]string{
				"README.md": "# agentctl\n\nA small copy.\n", "LICENSE": "Apache License\n", "AGENTS.md": "Be brief.\n",
				"cmd/x/main.go": "package main\n\nfunc main() {}\n",
			})
			for _, args := range [][]string{
				{"init", "-q", "-b", "main"},
				{"add", "-A"},
				{"-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "-q", "-m", "begin"},
			} {
				cmd := exec.CommandContext(t.Context(), "git", args...)
				cmd.Dir = p.workspace
				cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("git %v: %v\n%s", args, err, out)
				}
			}
			if f.Name() == "web-research" {
				researchWeb(t, p)
				return
			}
			if f.Name() == "release-checklist" {
				checkRelease(t, p)
				return
			}
			if f.Name() == "bug-fix" {
				fixBug(t, p)
				return
			}
			p.manifests = withServer(t, filepath.Join("..", "manifests", f.Name()))
			out := p.run(t)
			if f.Name() == "demo-lied" || f.Name() == "demo-fork" {
				want(t, out, reason.EvidenceMissing)
				return
			}
			want(t, out, reason.Completed)
			switch f.Name() {
			case "hello":
				hello(t, out)
			case "mcp-files":
				mcpFiles(t, out)
			case "skills":
				skills(t, out)
			case "fixer":
				if files := out.Result().ChangedFiles; len(files) != 1 || files[0].Path != "README.md" {
					t.Errorf("changed %v", files)
				}
			}
			if f.Name() == "team" {
				team(t, out)
			}
		})
	}
	if ran == 0 {
		t.Error("manifests/ holds no folder")
	}
}

// playedByTests says that the agent of a folder has a model with a key, and files to work
// on that only its Tests lay out.
func playedByTests(folder string) bool {
	_, err := os.Stat(filepath.Join("..", "manifests", folder, "testdata"))
	return err == nil && folder != "pr-reviewer"
}

// withServer returns a copy of a folder whose program in server/ is built; the folder
// itself where there is none.
func withServer(t *testing.T, folder string) string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(folder, "server")); err != nil {
		return folder
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "server", "server"), "./server")
	build.Dir = folder
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// mcpFiles is the story of that folder: a server's functions are judged by their
// arguments, and the run ends with the note.
func mcpFiles(t *testing.T, out *Outcome) {
	t.Helper()
	decided := map[string][]string{}
	for _, c := range out.Result().ToolCalls {
		decided[c.Tool] = append(decided[c.Tool], *c.Decision)
	}
	if w := decided["files_write_file"]; len(w) != 2 || w[0] != "deny" || w[1] != "allow" || len(decided["files_read_file"]) != 1 {
		t.Errorf("the calls were decided %v", decided)
	}
	if files := out.Result().ChangedFiles; len(files) != 1 || files[0].Path != "notes/summary.md" {
		t.Errorf("changed are %+v", files)
	}
}

// hello is the story that README and demo tell: one call is denied by a rule,
// one question is not answered, and the run still ends with its answer.
func hello(t *testing.T, out *Outcome) {
	t.Helper()
	tools, denied, unanswered := map[string]bool{}, 0, 0
	for _, c := range out.Result().ToolCalls {
		tools[c.Tool] = tools[c.Tool] || c.Error == nil
		if *c.Decision == "deny" && *c.Rule == "hello/keep-licence" {
			denied++
		}
		if c.Approval != nil && *c.Approval == "unanswered" && *c.Rule == "hello/ask-before-publishing" {
			unanswered++
		}
	}
	for _, name := range []string{"read", "grep", "bash", "edit", "count"} {
		if !tools[name] {
			t.Errorf("no call of %s succeeded", name)
		}
	}
	if denied != 1 || unanswered != 1 {
		t.Errorf("%d calls denied, %d questions unanswered, want one each", denied, unanswered)
	}
	if files := out.Result().ChangedFiles; len(files) != 1 || files[0].Path != "README.md" {
		t.Errorf("changed %v, want the README", files)
	}
}

// skills loads a text and a file beside it, and runs the script of another skill, which
// fails until the link is right.
func skills(t *testing.T, out *Outcome) {
	t.Helper()
	var calls []string
	for _, c := range out.Result().ToolCalls {
		call := c.Tool
		if c.Error != nil {
			call += "!"
		}
		calls = append(calls, call)
	}
	if got := strings.Join(calls, " "); got != "skill skill write check-links! write check-links" {
		t.Errorf("calls: %s", got)
	}
	if files := out.Result().ChangedFiles; len(files) != 1 || files[0].Path != "CHANGES.md" {
		t.Errorf("changed %v", files)
	}
}

// checkRelease carries a plan out, of an agent whose model has no key: it waits for the
// approval of its last step, and continues there.
func checkRelease(t *testing.T, p place) {
	t.Helper()
	t.Setenv("OPENAI_API_KEY", "")
	p.manifests = filepath.Join("..", "manifests", "release-checklist")
	release := func(o *RunOptions) {
		o.Prompt, o.Skill, o.Inputs = "", "release", map[string]string{"version": "v1.2.0"}
	}
	waiting := p.run(t, release)
	if waiting.Run.Phase != view.Suspended || waiting.Run.Finished.Reason != string(reason.ApprovalRequired) {
		t.Fatalf("the run has not waited: %+v", waiting.Run.Finished)
	}
	out, err := Resume(t.Context(), ResumeOptions{Ref: waiting.Run.ID, State: p.state, Approve: "all"})
	if err != nil {
		t.Fatal(err)
	}
	want(t, out, reason.Completed)
	var calls []string
	for _, c := range out.Result().ToolCalls {
		calls = append(calls, c.Tool)
	}
	if got := strings.Join(calls, " "); got != "bash read read bash write write" {
		t.Errorf("calls: %s", got)
	}
	var changed []string
	for _, f := range out.Result().ChangedFiles {
		changed = append(changed, f.Path)
	}
	if got := strings.Join(changed, " "); got != "RELEASE.md VERSION" {
		t.Errorf("changed %s", got)
	}
}

// fixBug carries out a plan whose first step has an agent work on a copy: a person is shown
// which change of it is taken over, and nothing is changed before.
func fixBug(t *testing.T, p place) {
	t.Helper()
	p.manifests = filepath.Join("..", "manifests", "bug-fix")
	waiting := p.run(t, func(o *RunOptions) {
		o.Prompt, o.Skill, o.Inputs = "", "fix-bug", map[string]string{"bug": "The README calls this a copy."}
	})
	if waiting.Run.Phase != view.Suspended || len(waiting.Result().ChangedFiles) != 0 {
		t.Fatalf("it has not waited: %+v, changed %v", waiting.Run.Finished, waiting.Result().ChangedFiles)
	}
	question := ""
	for _, m := range waiting.Run.Messages {
		for _, c := range m.Calls() {
			if c.Tool == "task_apply" {
				question = c.Decision.Message + " " + string(c.Input)
			}
		}
	}
	if !strings.Contains(question, "agentctl diff run/fixer-") || !strings.Contains(question, `"files":["README.md"]`) {
		t.Errorf("the question is %s", question)
	}
	out, err := Resume(t.Context(), ResumeOptions{Ref: waiting.Run.ID, State: p.state, Approve: "all"})
	if err != nil {
		t.Fatal(err)
	}
	want(t, out, reason.Completed)
	var calls []string
	for _, c := range out.Result().ToolCalls {
		calls = append(calls, c.Tool)
	}
	if got := strings.Join(calls, " "); got != "task task_apply bash" {
		t.Errorf("calls: %s", got)
	}
	if files := out.Result().ChangedFiles; len(files) != 1 || files[0].Path != "README.md" {
		t.Errorf("changed %v", files)
	}
	if !strings.HasPrefix(out.Run.Finished.Output, "README.md called the example a copy.") {
		t.Errorf("the answer is %q", out.Run.Finished.Output)
	}
}

// team delegates: three calls have started a run each, and the writer has changed what
// the planner must not.
func team(t *testing.T, out *Outcome) {
	t.Helper()
	started := map[string]bool{}
	for _, m := range out.Run.Messages {
		for _, c := range m.Calls() {
			if c.Result != nil && c.Result.Child != nil {
				started[c.Result.Child.Agent] = c.Result.Child.Phase == "Succeeded"
			}
		}
	}
	if len(started) != 3 || !started["writer"] || !started["reviewer-wording"] || !started["reviewer-facts"] {
		t.Errorf("runs of subagents: %v", started)
	}
	if files := out.Result().ChangedFiles; len(files) != 1 || files[0].Path != "CONTACT.md" {
		t.Errorf("changed %v", files)
	}
}

// TestManifestsPassTheirTests carries out the Tests of the examples: hello has a table of
// cases, team an agent that starts others, and the others have recordings.
func TestManifestsPassTheirTests(t *testing.T) {
	folders, err := filepath.Glob("../manifests/*/test.yaml")
	if err != nil || len(folders) < 2 {
		t.Fatalf("tests in %v: %v", folders, err)
	}
	for _, file := range folders {
		if filepath.Base(filepath.Dir(file)) == "research" {
			continue // its webfetch has no network without a sandbox: a story of cmd/agentctl runs it
		}
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			m, err := ReadManifests(t.Context(), ManifestOptions{Paths: []string{filepath.Dir(file)}})
			if err != nil {
				t.Fatal(err)
			}
			engine, err := Tests(RunOptions{Manifests: m, Version: "test", AllowUnsandboxed: true})
			if err != nil {
				t.Fatal(err)
			}
			report, err := agenttest.Run(t.Context(), agenttest.Options{Engine: engine, Coverage: true})
			if err != nil {
				t.Fatal(err)
			}
			for i := range report.Results {
				if c := &report.Results[i]; !c.Pass {
					t.Errorf("%s: %s %+v", c.Name(), c.Problem, c.Expectations)
				}
			}
			if len(m.Warnings) > 0 || report.Passed == 0 || report.Coverage.Covered == 0 {
				t.Errorf("%d passed, warnings %v", report.Passed, m.Warnings)
			}
		})
	}
}
