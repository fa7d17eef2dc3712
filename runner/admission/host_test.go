package admission

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/runner/model/provider"
	"agentctl.dev/agentctl/runner/tool/source/sources"
)

// TestValidateNamesMissingPrograms: a run finds out by starting them, after the
// author has paid for the first request.
func TestValidateNamesMissingPrograms(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"tool": 0o700, "text": 0o600} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for source, want := range map[string]string{
		"exec: {command: [./tool]}":        "",
		"exec: {command: [sh, -c, x]}":     "",
		"exec: {command: [./none]}":        "cannot be executed: no such file",
		"exec: {command: [./text]}":        "cannot be executed: permission denied",
		"exec: {command: [no-such-thing]}": "no-such-thing is not in PATH",
		"plugin: {command: [bin/mine]}":    "cannot be executed: no such file",
	} {
		path := filepath.Join(dir, "t.yaml")
		text := "apiVersion: agentctl.dev/v1alpha1\nkind: Tool\nmetadata: {name: t}\nspec: {parameters: {type: object}, source: {" + source + "}}\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, look := range []bool{true, false} {
			_, _, found := Read(t.Context(), []string{path}, nil, Options{Models: provider.All(), Tools: sources.All(), Programs: look})
			var b strings.Builder
			_ = found.Write(&b, 0)
			switch {
			case want == "" || !look:
				if len(found) > 0 {
					t.Errorf("%s (look %v): %s", source, look, b.String())
				}
			case !strings.Contains(b.String(), want) || found.HasErrors():
				t.Errorf("%s: got %s, want a warning with %q", source, b.String(), want)
			}
		}
	}
}

func TestAModelThatNothingIsKnownOfIsAWarning(t *testing.T) {
	for spec, want := range map[string]string{
		"provider: openai, model: gpt-5-mini":                                                       "",
		"provider: openai, model: gpt-5-mini-2025-08-07":                                            "",
		"provider: openai, model: gpt-5-minni":                                                      `did you mean "gpt-5-mini"?`,
		"provider: anthropic, model: of-my-own":                                                     "agentctl models lists them",
		"provider: openai, model: llama, baseURL: 'http://localhost:1/v1'":                          "",
		"provider: openai, model: gpt-9, pricing: {input: '1', output: '2'}, contextWindow: 100000": "",
		"provider: scripted, scripted: {steps: [{say: x}]}":                                         "",
	} {
		path := filepath.Join(t.TempDir(), "m.yaml")
		if err := os.WriteFile(path, []byte("apiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: m}\nspec: {"+spec+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, found := Read(t.Context(), []string{path}, nil, Options{Models: provider.All(), Tools: sources.All()})
		var b strings.Builder
		_ = found.Write(&b, 0)
		if found.HasErrors() || want == "" && len(found) > 0 || !strings.Contains(b.String(), want) {
			t.Errorf("%s: got %s, want %q", spec, b.String(), want)
		}
	}
}
