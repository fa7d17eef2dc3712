package agentctl_test

import (
	"encoding/json"
	"fmt"
	"go/format"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/crds"
	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner"
)

// TestDocsTellEveryReason holds the tables of docs/troubleshooting.md against the
// closed list.
func TestDocsTellEveryReason(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| (\\d+|–) \\| `([A-Za-z]+)` \\| [^|]+ \\|")
	told := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(string(read(t, "docs/troubleshooting.md")), -1) {
		if m[1] != "130" && m[1] != "143" { // of a signal, whatever the reason
			told[m[2]] = m[1]
		}
	}
	want := map[string]string{}
	for _, info := range reason.All() {
		want[string(info.Reason)] = "–"
		if info.ExitCode >= 0 {
			want[string(info.Reason)] = fmt.Sprint(info.ExitCode)
		}
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("docs/troubleshooting.md tells other codes than api/reason (-want +got):\n%s", diff)
	}
}

// TestResultInDocsIsOne: the object that readers see has the keys of the one that
// is printed.
func TestResultInDocsIsOne(t *testing.T) {
	_, block, found := strings.Cut(string(read(t, "docs/output.md")), "```json\n")
	block, _, _ = strings.Cut(block, "```")
	var shown map[string]any
	if err := json.Unmarshal([]byte(block), &shown); !found || err != nil {
		t.Fatalf("docs/output.md shows no object: %v", err)
	}
	text, err := json.Marshal(view.Result{ToolCalls: []view.CallResult{{}}})
	if err != nil {
		t.Fatal(err)
	}
	var printed map[string]any
	if err := json.Unmarshal(text, &printed); err != nil {
		t.Fatal(err)
	}
	call := func(o map[string]any) map[string]any { return o["toolCalls"].([]any)[0].(map[string]any) } //nolint:forcetypeassert // it panics, and names the line
	for what, pair := range map[string][2]map[string]any{"result": {printed, shown}, "call": {call(printed), call(shown)}} {
		want, got := slices.Sorted(maps.Keys(pair[0])), slices.Sorted(maps.Keys(pair[1]))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the keys of the %s differ (-want +got):\n%s", what, diff)
		}
	}
}

// TestEveryVariableStandsInTheDocs: what a user may set is told, and what is told
// is read.
func TestEveryVariableStandsInTheDocs(t *testing.T) {
	name := regexp.MustCompile(`\bAGENTCTL_[A-Z_]+\b`)
	public := map[string]bool{}
	for _, file := range append(goFiles(t), "cmd/internal/release/install.sh") {
		if strings.HasSuffix(file, "_test.go") || strings.Contains(file, "testdata") || strings.Contains(file, "test/") {
			continue
		}
		for _, n := range name.FindAllString(string(read(t, file)), -1) {
			public[n] = !strings.HasPrefix(n, "AGENTCTL_TEST_")
		}
	}
	told := map[string]bool{}
	for _, d := range documents(t) {
		for _, n := range name.FindAllString(d.text, -1) {
			told[n] = true
		}
	}
	for n, is := range public {
		if is && !told[n] {
			t.Errorf("no document tells of the variable %s", n)
		}
	}
	for n := range told {
		if _, known := public[n]; !known {
			t.Errorf("the docs tell of %s, which no program reads", n)
		}
	}
	if len(told) < 8 {
		t.Errorf("%d variables found", len(told))
	}
}

// TestPoliciesInDocsPassTheirTests: cases beside a rule are there to be copied.
func TestPoliciesInDocsPassTheirTests(t *testing.T) {
	tested := 0
	for _, b := range yamlBlocks(t) {
		if !strings.Contains(b.text, "\n  tests:") {
			continue
		}
		tested++
		report, err := runner.TestPolicies(t.Context(), runner.PolicyTestOptions{Paths: []string{"-"}, Stdin: strings.NewReader(b.text)})
		if err != nil || report.Failed > 0 {
			t.Errorf("%s: %+v, %v", b, report, err)
		}
	}
	if tested < 2 {
		t.Errorf("%d policies with cases found", tested)
	}
}

func TestDocsTellEveryKind(t *testing.T) {
	text := string(read(t, "docs/manifests.md"))
	for _, kind := range crds.Kinds() {
		if !strings.Contains(text, "`"+kind+"`") {
			t.Errorf("docs/manifests.md does not tell of the kind %s", kind)
		}
	}
}

// TestFieldsInDocsExist: a path that readers copy is one of some kind.
func TestFieldsInDocsExist(t *testing.T) {
	field := regexp.MustCompile("`((?:spec|status|approvals|limits|loopGuard|context|output|network|isolation|retry)(?:[.][a-zA-Z]+)+)")
	var events []string
	for _, p := range event.Payloads() {
		events = append(events, string(p.Type()))
	}
	found := 0
	for _, d := range documents(t) {
		for _, m := range field.FindAllStringSubmatch(strings.Join(d.prose(), "\n"), -1) {
			path := m[1]
			if slices.Contains(events, path) {
				continue
			}
			found++
			if !strings.HasPrefix(path, "spec.") && !strings.HasPrefix(path, "status.") {
				path = "spec." + path
			}
			if !slices.ContainsFunc(crds.Kinds(), func(kind string) bool { _, err := crds.Explain(kind+"."+path, false); return err == nil }) {
				t.Errorf("%s tells of %s, which is a field of no kind", d.file, m[1])
			}
		}
	}
	if found < 40 {
		t.Errorf("%d fields found: the search misses some", found)
	}
}

// TestDefaultsInDocsAreThose of the schema: %s in the text is the default.
func TestDefaultsInDocsAreThose(t *testing.T) {
	for _, c := range []struct{ file, text, field string }{
		{"docs/manifests.md", "`maxSteps` (%s)", "agent.spec.limits.maxSteps"},
		{"docs/manifests.md", "`timeout` (%s)", "agent.spec.limits.timeout"},
		{"docs/manifests.md", "compactAtPercent: %s ", "agent.spec.context.compactAtPercent"},
		{"docs/manifests.md", "default %s\n", "agent.spec.context.keepRecentTokens"},
		{"docs/manifests.md", "loopGuard.identicalCalls: %s`", "agent.spec.loopGuard.identicalCalls"},
		{"docs/manifests.md", "loopGuard.cycles: %s`", "agent.spec.loopGuard.cycles"},
		{"docs/manifests.md", "`onDetect: %s`, the default", "agent.spec.loopGuard.onDetect"},
		{"docs/manifests.md", "`sizeLimit` (%s)", "run.spec.workspace.sizeLimit"},
		{"docs/manifests.md", "`growthLimit` (%s)", "run.spec.workspace.growthLimit"},
		{"docs/isolation.md", "`spec.workspace.growthLimit` of the Run (%s)", "run.spec.workspace.growthLimit"},
		{"docs/troubleshooting.md", "`spec.workspace.sizeLimit` of the Run (%s)", "run.spec.workspace.sizeLimit"},
		{"docs/models.md", "`retry.attempts` (%s)", "model.spec.retry.attempts"},
		{"docs/models.md", "`retry.maxDelay` (%s)", "model.spec.retry.maxDelay"},
		{"docs/tools.md", "| the time of one call | %s |", "tool.spec.limits.timeout"},
		{"docs/tools.md", "| %s, 51200 |", "tool.spec.limits.outputLines"},
		{"docs/tools.md", "| 2000, %s |", "tool.spec.limits.outputBytes"},
		{"docs/tools.md", "| %s, None |", "tool.spec.isolation.minimum"},
		{"docs/tools.md", "| Sandbox, %s |", "tool.spec.network.mode"},
		{"docs/isolation.md", "| `%s` (default) |", "tool.spec.isolation.minimum"},
	} {
		e, err := crds.Explain(c.field, false)
		if err != nil || e.Field.Default == "" {
			t.Errorf("%s has no default: %v", c.field, err)
			continue
		}
		if want := fmt.Sprintf(c.text, strings.Trim(e.Field.Default, `"`)); !strings.Contains(string(read(t, c.file)), want) {
			t.Errorf("%s does not say %q of %s", c.file, want, c.field)
		}
	}
}

// TestGoInDocsCompiles: a whole program is there to be copied.
func TestGoInDocsCompiles(t *testing.T) {
	program := regexp.MustCompile("(?s)```go\n(package .*?)```")
	found := 0
	for _, d := range documents(t) {
		for _, m := range program.FindAllStringSubmatch(d.text, -1) {
			found++
			file := filepath.Join(t.TempDir(), "main.go")
			if err := os.WriteFile(file, []byte(m[1]), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.CommandContext(t.Context(), "go", "vet", file).CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", d.file, err, out)
			}
			if formatted, err := format.Source([]byte(m[1])); err != nil || string(formatted) != m[1] {
				t.Errorf("%s: the program is not formatted: %v", d.file, err)
			}
		}
	}
	if found == 0 {
		t.Error("no program found")
	}
}
