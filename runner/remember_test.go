package runner

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/approval"
	"agentctl.dev/agentctl/runner/policy"
	"agentctl.dev/agentctl/runner/runs"
)

// asksAbout judges calls by a policy that asks about all of them.
func asksAbout(t *testing.T, text string, files ...string) *policy.Engine {
	t.Helper()
	root := t.TempDir()
	for _, name := range files {
		write(t, filepath.Join(root, name), "x")
	}
	if err := os.Symlink("docs", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	tools := []policy.Tool{
		{Name: "bash", Builtin: "bash", Source: "builtin", Risk: v1alpha1.RiskR2, Digest: "d1"},
		{Name: "edit", Builtin: "edit", Source: "builtin", Risk: v1alpha1.RiskR1, Category: v1alpha1.CategoryEdit, Digest: "d2"},
		{Name: "deploy", Source: "exec", Risk: v1alpha1.RiskR2, Digest: "d3"},
		{Name: "pay", Source: "exec", Risk: v1alpha1.RiskR3, Digest: "d4"},
	}
	var p v1alpha1.Policy
	if err := yaml.UnmarshalStrict([]byte(text), &p); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	c, problems := policy.Compile(&p, tools)
	for _, problem := range problems {
		if !problem.Warning {
			t.Fatalf("%v\n%s", problem, text)
		}
	}
	return policy.NewEngine([]*policy.Compiled{c}, policy.Context{Workspace: policy.Workspace{Root: root}, Tools: tools})
}

// calling writes a call as a test states it: a script, or a tool and its arguments.
func calling(t *testing.T, text string) message.ToolCall {
	t.Helper()
	if tool, args, ok := strings.Cut(text, " {"); ok && !strings.Contains(tool, " ") {
		return message.ToolCall{ID: "c", Tool: tool, Args: json.RawMessage("{" + args)}
	}
	args, err := json.Marshal(map[string]string{"command": text})
	if err != nil {
		t.Fatal(err)
	}
	return message.ToolCall{ID: "c", Tool: "bash", Args: args}
}

// What was approved for always covers what was looked at, and nothing else: by
// the judge that runs have, and the memory that they have.
func TestAlwaysCoversWhatWasLookedAt(t *testing.T) {
	files := []string{"a", "b", "list.txt", "src/a.go", "src/sub/b.go", "docs/a.md", "build/x", "build/y", "Makefile", "src/Makefile", "docs/Makefile"}
	tests := []struct {
		// approved are the calls that were approved for always, then is made later.
		approved, then string
		covered        bool
		// kept says that the policy that is shown allows it, too, where that differs.
		kept   bool
		reason string
	}{
		{"rm a", "rm a", true, true, "the same call"},
		{"rm a", "rm b", false, false, "another file of the workspace's own folder"},
		{"rm a", "rm -rf src", false, false, "a folder that nobody looked at"},
		{"rm a", "rm -f a", false, false, "an option that was not there"},
		{"rm a", "rm a -f", false, false, "wherever it stands"},
		{"rm a", "rm a src/a.go", false, false, "one file more"},
		{"rm a", "rm ./a", true, true, "the same file, written otherwise"},
		{"rm build/x", "rm build/y", true, true, "a file beside it"},
		{"rm build/x", "rm build/*", true, true, "all files beside it"},
		{"rm build/x", "rm src/a.go", false, false, "a file elsewhere"},
		{"rm build/x", "rm build/../src/a.go", false, false, "a way elsewhere"},
		{"rm build/x", "rm link/a.md", false, false, "a link elsewhere: it may be turned"},
		{"rm build/x", "rm build/x; rm src/a.go", false, false, "a second command"},
		{"rm build/x", "rm $(ls)", false, false, "what only the run can tell"},
		{"rm src/a.go", "rm -r src/sub", false, false, "files were looked at, no folders"},
		{"rm src/a.go", "rm --recursive src/sub", false, false, "however the option is written"},
		{"rm -r build", "rm build/x", true, false, "less than what was approved"},
		{"rm -r build", "rm -rf build", false, false, "the question that the option keeps away"},
		{"rm -r build", "rm -r src", false, false, "the folder beside it"},
		{"rm -r build", "rm -r .", false, false, "everything"},
		{"rm -r src/sub", "rm -r src", false, false, "the folder around it"},
		{"rm -rf src/sub", "rm -rf src/a.go", false, false, "the file beside the folder"},
		{"rm -rf build", "rm -f build/x", true, false, "fewer options and one file of it"},
		{"echo x | tee build/x", "echo x | tee build/y", true, true, "a file beside it"},
		{"echo x | tee build/x", "echo x | tee src/a.go", false, false, "tee elsewhere"},
		{"echo x | tee build/x", "echo x | tee Makefile", false, false, "tee into a program"},
		{"cp a build/x", "cp a src/a.go", false, false, "a copy elsewhere"},
		{"cp a build/x", "cp -r docs build/x", false, false, "a whole folder"},
		{"cp a build/x", "cp b build/y", true, true, "another copy there"},
		{"mv build/x build/z", "mv build/y build/z", true, true, "moving there"},
		{"mv build/x build/z", "mv src/a.go build/z", false, false, "what is moved away is gone"},
		{"mv build/x build/z", "mv build/x src/a.go", false, false, "what it lands on is gone"},
		{"sort list.txt", "sort -o src/a.go list.txt", false, true, "an option that writes"},
		{"sort list.txt", "sort list.txt > src/a.go", false, false, "a redirection that writes"},
		{"sort list.txt", "sort -r docs/a.md", true, true, "reading is not writing"},
		{"sort -o build/x list.txt", "sort -o src/a.go list.txt", false, false, "the option, elsewhere"},
		{"dd if=a of=build/x", "dd if=a of=build/y", true, true, "there"},
		{"dd if=a of=build/x", "dd if=a of=src/a.go", false, false, "elsewhere"},
		{"ls > build/x", "ls > build/y", true, true, "a redirection there"},
		{"ls > build/x", "ls > src/a.go", false, false, "a redirection elsewhere"},
		{"ls > build/x", "ls >> Makefile", false, false, "or behind a file"},
		{"ls > build/x", "ls", true, true, "less"},
		{"ls", "ls > build/x", false, false, "more"},
		{"shfmt -w src/a.go", "shfmt -w src/b.go", false, false, "nobody knows what the program does"},
		{"shfmt -w src/a.go", "shfmt -w docs/a.md", false, false, "an unknown program elsewhere"},
		{"shfmt -l", "shfmt -w src", false, true, "a word that is a folder"},
		{"shfmt -l", "shfmt -w *.txt", false, true, "a pattern"},
		{"chmod +x build/x", "chmod +x build/y", true, true, "the same mode there"},
		{"chmod +x build/x", "chmod 4777 build/x", false, false, "another mode"},
		{"chmod +x build/x", "chmod +x -R build", false, false, "a whole folder"},
		{"kill 17", "kill 1", false, false, "another process"},
		{"git branch", "git branch -D main", false, true, "an option that removes"},
		{"git commit -m x", "git commit -m y", true, true, "another message"},
		{"git commit -m x", "git commit --amend -m y", false, false, "another way"},
		{"git log -3", "git log --oneline", true, true, "what only shows"},
		{"gh pr list", "gh pr merge 7", false, false, "another word"},
		{"gh pr merge 7", "gh pr merge --admin 7", false, true, "an option, elsewhere"},
		{"make test", "make test", false, false, "nobody knows what a Makefile does"},
		{"make test", "make install", false, false, "another target"},
		{"make test", "make test -f docs/Makefile", false, true, "another Makefile"},
		{"make test", "cd docs && make test", false, false, "the Makefile of another folder"},
		{"cd src && make test", "cd src && make test", false, false, "nor there"},
		{"cd src && make test", "cd docs && make test", false, false, "another folder"},
		{"cd src && make test", "make test", false, true, "no folder"},
		{"cd src && make test", "make test; cd src", false, true, "the folder afterwards"},
		{"cd src && make test", "(cd src); make test", false, true, "the folder of a subshell"},
		{"make test", `bash {"command": "make test", "workdir": "docs"}`, false, true, "the folder as an argument"},
		{"cd src && make test", `bash {"command": "make test", "workdir": "src"}`, false, false, "nor by its folder as an argument"},
		{"cd src && rm a.go", "cd src && rm a.go", true, true, "the file is the folder's"},
		{"cd src && rm a.go", `bash {"command": "rm a.go", "workdir": "src"}`, true, true, "the same folder, written otherwise"},
		{"cd src && rm a.go", "cd docs && rm a.md", false, false, "the other folder's"},
		{"go test ./...", "go test ./...", false, false, "code of the project runs"},
		{"go test ./...", "go install ./...", false, false, "an install"},
		{"go test ./...", "go test -o src/a.go ./...", false, true, "an output"},
		{"npm run build", "npm run build", false, false, "a script of the project runs"},
		{"npm run build", "npm run deploy", false, false, "another script"},
		{"npm run build", "npm run build --prefix docs", false, false, "another project"},
		{"npm test", "npm install left-pad", false, false, "an install"},
		{"git push origin main", "git push origin main", true, true, "the same"},
		{"git push origin main", "git push --force origin main", false, false, "with force"},
		{"git push origin main", "git push origin +main", false, false, "with force, otherwise"},
		{"git push origin main", "git push other main", false, false, "elsewhere"},
		{"git status", "git -c core.pager=x status", false, false, "a setting"},
		{`edit {"path":"src/a.go"}`, `edit {"path":"src/b.go"}`, true, true, "a file beside it"},
		{`edit {"path":"src/a.go"}`, "rm src/a.go", false, false, "editing is not removing"},
		{"rm src/a.go", `edit {"path":"src/b.go"}`, false, true, "removing is not editing"},
		{`deploy {"file":"build/x"}`, `deploy {"file":"build/y"}`, true, true, "a file beside it"},
		{`deploy {"file":"build/x"}`, `deploy {"file":"src/a.go"}`, false, false, "a file elsewhere"},
		{`deploy {"file":"build/x"}`, `deploy {"file":"build/x","force":true}`, false, false, "an argument more"},
		{`deploy {"file":"build/x"}`, `deploy {"file":"build/../src/a.go"}`, false, false, "a way elsewhere"},
		{`pay {"amount":100}`, `pay {"amount":100}`, false, false, "what cannot be undone is asked about each time"},
		// Several approvals are not added to one another.
		{"rm -r build\x00rm docs/a.md", "rm -r docs/sub", false, false, "removing folders was approved elsewhere"},
		{"rm -r build\x00" + `edit {"path":"src/a.go"}`, "rm -r src/sub", false, true, "editing there is not removing there"},
		{"ls\x00cp a build/x", "ls > build/y", false, true, "the one writes, and it is another program"},
		{"make test\x00cd src && ls", "cd src && make test", false, false, "it was approved once"},
		{"rm build/x\x00rm src/a.go", "rm build/y src/b.go", true, true, "each by itself"},
	}
	if len(tests) < 30 {
		t.Fatalf("%d pairs", len(tests))
	}
	for _, tc := range tests {
		t.Run(tc.approved+" then "+tc.then, func(t *testing.T) {
			e := asksAbout(t, "metadata: {name: p}\nspec: {default: ask}", files...)
			var grants []message.Grant
			for text := range strings.SplitSeq(tc.approved, "\x00") {
				grants = append(grants, judgedCall(t, e, text).Always...)
			}
			later := judgedCall(t, e, tc.then)
			covered := approval.NewMemory(grants).Covers(message.Question{Decision: later})
			if covered != tc.covered {
				t.Errorf("%s: covered %v, want %v\nremembered: %s\nneeded: %s (%s)", tc.reason, covered, tc.covered, approval.Summary(grants), approval.Summary(later.Always), later.Once)
			}
			if len(grants) == 0 {
				return
			}
			// The policy that is shown with it is no wider than the table says.
			kept := judgedCall(t, asksAbout(t, strings.Replace(approval.Policy(grants), "spec:\n", "spec:\n  default: ask\n", 1), files...), tc.then)
			if allowed := kept.Action == message.Allow; allowed != tc.kept {
				t.Errorf("%s: as a policy it says %s, want allow %v\n%s", tc.reason, kept.Action, tc.kept, approval.Policy(grants))
			}
		})
	}
}

func judgedCall(t *testing.T, e *policy.Engine, text string) message.Decision {
	t.Helper()
	d, err := e.Decide(t.Context(), calling(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// The same from end to end: a model that was allowed one thing for always tries
// others.
func TestModelCannotStretchAnApprovalForAlways(t *testing.T) {
	p := asking(t, "Suspend", `
- calls: [{tool: bash, args: {command: rm build/x}}]
- calls: [{tool: bash, args: {command: rm build/y}}]
- calls: [{tool: bash, args: {command: rm -rf src}}]
- calls: [{tool: bash, args: {command: rm src/a.go}}]
- calls: [{tool: bash, args: {command: rm build/z > src/a.go}}]
- say: done
`, map[string]string{"build/x": "", "build/y": "", "build/z": "", "src/a.go": "package a"})
	p.run(t)
	p.answer(t, "@latest", func(o *runs.AnswerOptions) { o.Always = true })
	for _, stopped := range []string{"call_3_1", "call_4_1", "call_5_1"} {
		out := p.goOn(t)
		if out.Run.Phase != view.Suspended || len(out.Run.PendingApprovals) != 1 || out.Run.PendingApprovals[0] != stopped {
			t.Fatalf("got %s, waiting %v, want %s", out.Run.Phase, out.Run.PendingApprovals, stopped)
		}
		if c := out.Run.Call("call_2_1"); c.State != message.StateCompleted || !strings.HasPrefix(out.Run.Answer("call_2_1").By, "remembered: ") {
			t.Errorf("the second file there: %+v", c)
		}
		if _, err := os.Stat(filepath.Join(out.Run.Started.Workspace.Dir, "src/a.go")); err != nil {
			t.Fatalf("%s: %v", stopped, err)
		}
		p.answer(t, "@latest", func(o *runs.AnswerOptions) { o.Approve, o.Reason = false, "not there" })
	}
	if out := p.goOn(t); out.Run.Phase != view.Succeeded || len(out.Run.Remembered) != 1 {
		t.Errorf("got %s, remembered %v", out.Run.Phase, out.Run.Remembered)
	}
}
