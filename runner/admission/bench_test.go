package admission

import (
	"os"
	"path/filepath"
	"testing"

	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/model/provider"
	"agentctl.dev/agentctl/runner/tool/source/sources"
)

// small is a folder as a user has it: six manifests without a mistake.
func small(tb testing.TB) string {
	tb.Helper()
	dir := tb.TempDir()
	head := func(kind, name string) string {
		return "apiVersion: agentctl.dev/v1alpha1\nkind: " + kind + "\nmetadata:\n  name: " + name + "\nspec:\n"
	}
	for name, text := range map[string]string{
		"agent": head("Agent", "a") + "  description: Reviews.\n  modelRef: {name: m}\n  instructions: |\n    Be brief.\n  tools:\n  - {name: read}\n  - {name: grep}\n  - {name: shell}\n  - {name: count}\n  policyRefs: [{name: p}]\n  limits: {maxSteps: 10, timeout: 5m}\n",
		"model": head("Model", "m") + "  provider: openai\n  model: gpt-5-mini\n  baseURL: http://127.0.0.1:1/v1\n  apiKey: {valueFrom: {env: KEY}}\n  parameters: {temperature: 0}\n  pricing: {input: \"0.25\", output: \"2.00\"}\n",
		"shell": head("Tool", "shell") + "  callName: sh\n  limits: {timeout: 10s}\n  source: {builtin: {name: bash}}\n",
		"count": head("Tool", "count") + "  risk: R0\n  effects: [Read]\n  parameters: {type: object, properties: {path: {type: string}}, required: [path]}\n  source: {exec: {command: [./count.sh]}}\n",
		"poli":  head("Policy", "p") + "  default: byRisk\n  permissions:\n  - {permission: bash, pattern: \"git *\", action: allow}\n",
		"run":   head("Run", "r") + "  agentRef: {name: a}\n  prompt: go\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

// BenchmarkSmallFolder is the share of a start that manifests take; the budget
// is 3 ms, the first time included.
func BenchmarkSmallFolder(b *testing.B) {
	dir := small(b)
	b.ReportAllocs()
	for b.Loop() {
		_, c, found := Read(b.Context(), []string{dir}, nil, Options{Models: provider.All(), Tools: sources.All()})
		if len(found) > 0 {
			b.Fatal(found)
		}
		if _, err := c.Resolve(ResolveOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	dir := small(b)
	b.ReportAllocs()
	for b.Loop() {
		if set, found := manifest.Load(b.Context(), []string{dir}, nil); len(found) > 0 || len(set.Documents) != 6 {
			b.Fatal(found)
		}
	}
}
