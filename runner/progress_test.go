package runner

import (
	"fmt"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/reason"
)

// TestTheWorkspaceSaysWhetherARunGetsAnywhere has the real tools change files, and a
// command that says the same each time.
func TestTheWorkspaceSaysWhetherARunGetsAnywhere(t *testing.T) {
	const broken = "all:\n\t@grep -q done main.txt || { echo 'main.txt is not done'; exit 2; }\n"
	build := "- calls: [{tool: bash, args: {command: make}}]\n"
	repeat := func(n int, step func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(step(i))
		}
		return b.String()
	}
	edit := func(i int) string {
		return fmt.Sprintf("- calls: [{tool: edit, args: {path: main.txt, oldString: try%d., newString: try%d.}}]\n", i, i+1)
	}
	for name, c := range map[string]struct {
		reason string
		steps  string
		want   reason.Reason
	}{
		"edit and make": {"each edit is progress although make says the same", repeat(6, func(i int) string { return edit(i) + build }), reason.Completed},
		"edits of a shell": {
			"whatever changes a file counts", repeat(6, func(i int) string {
				return fmt.Sprintf("- calls: [{tool: bash, args: {command: 'echo %d >> main.txt'}}]\n", i) + build
			}), reason.Completed,
		},
		"one command that edits": {
			"a call that changes files may be repeated", repeat(8, func(int) string {
				return "- calls: [{tool: bash, args: {command: 'echo x >> main.txt; make'}}]\n"
			}), reason.Completed,
		},
		"the same failing command": {"nothing changes", repeat(10, func(int) string { return build }), reason.LoopDetected},
		"the same failing command between looks": {
			"looking changes nothing", repeat(10, func(int) string {
				return build + "- calls: [{tool: read, args: {path: main.txt}}]\n"
			}), reason.LoopDetected,
		},
		"an edit and its undo": {
			"a state that was there before is not progress", repeat(10, func(int) string {
				return "- calls: [{tool: bash, args: {command: 'echo a > other.txt'}}]\n" + build + "- calls: [{tool: bash, args: {command: 'rm other.txt'}}]\n" + build
			}), reason.LoopDetected,
		},
		"a file that is only touched": {
			"its contents count, not its time", repeat(10, func(int) string {
				return "- calls: [{tool: bash, args: {command: 'touch main.txt'}}]\n" + build
			}), reason.LoopDetected,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, agent("tools: [{name: bash}, {name: edit}, {name: read}]\nlimits: {maxSteps: 100}",
				"- calls: [{tool: read, args: {path: main.txt}}]\n"+c.steps+"- say: that is all\n", strings.TrimPrefix(allow, "---\n")),
				map[string]string{"main.txt": "try0.\n", "Makefile": broken})
			out := p.run(t, func(o *RunOptions) { o.Approve = "all" })
			if out.Run.Finished.Reason != string(c.want) {
				t.Errorf("%s: got %s: %s", c.reason, out.Run.Finished.Reason, out.Run.Finished.Message)
			}
			if c := out.Run.Call("call_3_1"); c == nil || c.Result == nil || c.Tool == "bash" && !strings.Contains(c.Result.Text, "is not done") {
				t.Errorf("make did not run: %+v", c)
			}
		})
	}
}
