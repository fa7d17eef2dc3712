package prompt

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestSystemTellsOnlyTheDay(t *testing.T) {
	s := System{Instructions: "Be brief.\n", Workspace: "/w", Git: true, Platform: "linux/amd64", Date: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	want := "Be brief.\n\n<environment>\nworkspace: /w\nplatform: linux/amd64\ngit repository: yes\ndate: 2026-03-04\n</environment>\n"
	if got := s.Text(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNearestContextFileWinsAndIsMarkedUntrusted(t *testing.T) {
	root := t.TempDir()
	inner := filepath.Join(root, "repo", "pkg")
	write(t, filepath.Join(root, "AGENTS.md"), "outside")
	write(t, filepath.Join(root, "repo", "AGENTS.md"), "repository")
	write(t, filepath.Join(root, "repo", ".git", "HEAD"), "ref")
	loose := filepath.Join(root, "loose")
	write(t, filepath.Join(loose, "x"), "")
	if text := (System{Source: loose, ContextFiles: []string{"AGENTS.md"}}).Text(); strings.Contains(text, "outside") {
		t.Errorf("without a repository, a file from above was read:\n%s", text)
	}
	write(t, filepath.Join(inner, "x.go"), "package x")

	text := System{Source: inner, ContextFiles: []string{"AGENTS.md"}}.Text()
	if !strings.Contains(text, "\nrepository\n") || !strings.Contains(text, "untrusted") {
		t.Errorf("the nearest file is missing or unmarked:\n%s", text)
	}
	write(t, filepath.Join(inner, "AGENTS.md"), "package")
	if text := (System{Source: inner, ContextFiles: []string{"AGENTS.md"}}).Text(); !strings.Contains(text, "\npackage\n") {
		t.Errorf("a nearer file does not win:\n%s", text)
	}
}

func TestContextStopsAtTheRepository(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "AGENTS.md"), "outside")
	write(t, filepath.Join(root, "repo", ".git", "HEAD"), "ref")
	if text := (System{Source: filepath.Join(root, "repo"), ContextFiles: []string{"AGENTS.md", "../AGENTS.md"}}).Text(); strings.Contains(text, "outside") {
		t.Errorf("a file from above the repository was read:\n%s", text)
	}
}

func TestContextFileIsCutAndBinaryIsLeftOut(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "BIG.md"), strings.Repeat("ü", maxContextFile))
	write(t, filepath.Join(root, "BIN.md"), "a\x00b")
	text := System{Source: root, ContextFiles: []string{"BIG.md", "BIN.md", "NONE.md"}}.Text()
	if len(text) > maxContextFile+1024 || !strings.Contains(text, "[cut at 32 KiB]") {
		t.Errorf("the file is not cut: %d bytes", len(text))
	}
	if strings.Contains(text, "BIN.md") {
		t.Error("a binary file was added")
	}
}

func TestAContextFileIsAdmittedFirst(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, ".git", "HEAD"), "ref")
	write(t, filepath.Join(root, "A.md"), "secret above")
	write(t, filepath.Join(root, "part", "A.md"), "secret")
	write(t, filepath.Join(root, "part", "B.md"), "a key")
	text := System{Source: filepath.Join(root, "part"), ContextFiles: []string{"A.md", "B.md", "NONE.md"}, Admit: func(file, text string) (string, bool) {
		return strings.ReplaceAll(text, "key", "[redacted]"), filepath.Base(file) == "B.md"
	}}.Text()
	if strings.Contains(text, "secret") || !strings.Contains(text, "a [redacted]") {
		t.Errorf("got %s", text)
	}
}

func TestFill(t *testing.T) {
	inputs := map[string]json.RawMessage{"name": json.RawMessage(`"${inputs.other} $x"`), "list": json.RawMessage(`[1,2]`)}
	for name, c := range map[string]struct{ reason, text, want, err string }{
		"none":    {"text without references is kept", "a ${b} $c", "a ${b} $c", ""},
		"value":   {"a string comes without quotes and is not read again", "<${inputs.name}>", "<${inputs.other} $x>", ""},
		"json":    {"anything else comes as JSON", "${inputs.list}!", "[1,2]!", ""},
		"literal": {"$${ is a literal ${", "$${inputs.name}", "${inputs.name}", ""},
		"unknown": {"an input that is not given is an error that names the others", "${inputs.nam}", "", "list, name"},
		"open":    {"a reference must end", "${inputs.name", "", "closing brace"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Fill(c.text, inputs)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("%s: got error %v, want one with %q", c.reason, err, c.err)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("%s: got %q, %v; want %q", c.reason, got, err, c.want)
			}
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTheModelIsToldWhatProgramsSee(t *testing.T) {
	s := System{Workspace: "/w", Platform: "linux/amd64"}
	if strings.Contains(s.Text(), "programs:") {
		t.Error("a model is told of programs that nothing holds")
	}
	s.Programs = "in a sandbox without a network"
	if !strings.Contains(s.Text(), "\nprograms: in a sandbox without a network\ndate: ") {
		t.Errorf("the prompt is\n%s", s.Text())
	}
}
