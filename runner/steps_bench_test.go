package runner

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// BenchmarkPlanSteps compares a plan of 50 steps, each of which reads the result of the one
// before it, with a scripted model that makes the same calls.
func BenchmarkPlanSteps(b *testing.B) {
	const steps = 50
	var plan, script strings.Builder
	for i := range steps {
		when := "true"
		if i > 0 {
			when = fmt.Sprintf("steps.s%d.output != ''", i-1)
		}
		fmt.Fprintf(&plan, "    - {name: s%d, tool: read, when: %q, args: {path: \"${'f'}\"}}\n", i, when)
		script.WriteString("- calls: [{tool: read, args: {path: \"${'f'}\"}}]\n")
	}
	dir := b.TempDir()
	write(b, filepath.Join(dir, "m", "all.yaml"), agent("tools: [{name: read}]\nloopGuard: {identicalCalls: 0, cycles: 0, stalledSteps: 0}\nlimits: {maxSteps: 100}", script.String()+"- say: done\n",
		"apiVersion: agentctl.dev/v1alpha1\nkind: Skill\nmetadata: {name: s}\nspec:\n  plan:\n    steps:\n"+plan.String()))
	write(b, filepath.Join(dir, "w", "f"), "x\n")
	var took [2]time.Duration
	for b.Loop() {
		for i, o := range []RunOptions{{Skill: "s"}, {Prompt: "go"}} {
			o.Paths, o.Workspace, o.State = []string{filepath.Join(dir, "m")}, filepath.Join(dir, "w"), filepath.Join(dir, "state")
			o.Approve, o.AllowUnsandboxed, o.Version = "all", true, "bench"
			start := time.Now()
			out, err := Run(b.Context(), o)
			if err != nil || out.ExitCode() != 0 || len(out.Result().ToolCalls) != steps {
				b.Fatalf("%v %+v", err, out)
			}
			took[i] += time.Since(start)
		}
	}
	perStep := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 / steps / float64(b.N) }
	b.ReportMetric(perStep(took[0]), "ms/step-plan")
	b.ReportMetric(perStep(took[1]), "ms/step-scripted")
	b.ReportMetric(perStep(took[0]-took[1]), "ms/step-more")
}
