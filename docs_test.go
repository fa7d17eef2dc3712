package agentctl_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentctl.dev/agentctl/runner"
)

// TestYAMLInDocsIsAdmitted sends what readers will copy through the admission
// that will judge it.
func TestYAMLInDocsIsAdmitted(t *testing.T) {
	for _, b := range yamlBlocks(t) {
		if complaint := complaint(t, b.text); complaint != "" {
			t.Errorf("%s: not admitted; fence a fragment as \"yaml fragment\":\n%s", b, complaint)
		}
	}
}

// TestAdmissionOfDocsBites: a check that lets everything pass finds nothing.
func TestAdmissionOfDocsBites(t *testing.T) {
	const good = "apiVersion: agentctl.dev/v1alpha1\nkind: Tool\nmetadata: {name: sh}\nspec: {source: {builtin: {name: bash}}}\n"
	if c := complaint(t, good); c != "" {
		t.Errorf("a good manifest is refused:\n%s", c)
	}
	if c := complaint(t, strings.Replace(good, "builtin", "bultin", 1)); !strings.Contains(c, "bultin") {
		t.Errorf("a misspelled field is admitted: %q", c)
	}
}

// complaint is what validate prints about a text that has errors.
func complaint(t *testing.T, text string) string {
	t.Helper()
	report, err := runner.Validate(t.Context(), runner.ValidateOptions{Paths: []string{"-"}, Stdin: strings.NewReader(text)})
	if err != nil {
		return err.Error()
	}
	if !report.HasErrors() {
		return ""
	}
	var b strings.Builder
	if err := report.Write(&b, 10); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// yamlBlock is one fenced block of a document.
type yamlBlock struct {
	file string
	line int
	text string
}

func (b yamlBlock) String() string { return fmt.Sprintf("%s:%d", b.file, b.line) }

// yamlBlocks returns the blocks of README.md and docs/ fenced as yaml that are
// whole manifests. A block that shows a fragment is fenced as "yaml fragment".
func yamlBlocks(t *testing.T) []yamlBlock {
	t.Helper()
	docs, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []yamlBlock
	for _, file := range append([]string{"README.md", "CONTRIBUTING.md"}, docs...) {
		text, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		blocks = append(blocks, fenced(file, string(text))...)
	}
	return blocks
}

// fenced finds the blocks of one document; the line is that of the first line
// of the block.
func fenced(file, text string) []yamlBlock {
	var blocks []yamlBlock
	var block []string
	start, indent := 0, ""
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimLeft(line, " ")
		switch {
		case start == 0 && strings.TrimRight(trimmed, " \r") == "```yaml":
			start, indent, block = i+2, line[:len(line)-len(trimmed)], nil
		case start > 0 && strings.HasPrefix(trimmed, "```"):
			blocks = append(blocks, yamlBlock{file, start, strings.Join(block, "\n") + "\n"})
			start = 0
		case start > 0:
			block = append(block, strings.TrimPrefix(line, indent))
		}
	}
	return blocks
}

func TestFencedFindsWholeManifestsOnly(t *testing.T) {
	text := "a\n```yaml\nkind: Agent\n```\n```yaml fragment\nlimits: {}\n```\n```sh\nls\n```\n- x\n  ```yaml\n  kind: Tool\n    deep: 1\n  ```\n```yaml\nopen"
	want := []yamlBlock{{"f", 3, "kind: Agent\n"}, {"f", 13, "kind: Tool\n  deep: 1\n"}}
	if got := fenced("f", text); !slices.Equal(got, want) {
		t.Errorf("fenced = %q, want %q", got, want)
	}
}
