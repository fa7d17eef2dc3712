package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/cmd/agentctl/internal/lineedit"
	"agentctl.dev/agentctl/runner/storytest"
)

func TestWhatIsACommandOfAChat(t *testing.T) {
	for text, want := range map[string]string{
		"/help": "/help ", "/note a  b": "/note a  b", "/usr/bin is full": "", "/": "/ ", "a /help": "", "/a\nb": "",
	} {
		word, rest, ok := slash(lineedit.Line{Text: text})
		if got := word + " " + rest; ok != (want != "") || ok && got != want {
			t.Errorf("%q gives %q, %v", text, got, ok)
		}
	}
	for from, want := range []bool{false, false, false, false, false, true, true} {
		if _, _, ok := slash(lineedit.Line{Text: "/diff x", Pasted: []lineedit.Span{{From: from, To: 7}}}); ok != want {
			t.Errorf("pasted from byte %d it is a command: %v", from, ok)
		}
	}
}

func TestTheHistoryOfChats(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	h, err := openHistory(state)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"one", "one", "two\nlines", strings.Repeat("x", maxKept)} {
		h.add(lineedit.Line{Text: line})
	}
	pasted := lineedit.Line{Text: "two\nlines", Pasted: []lineedit.Span{{From: 4, To: 9}}}
	h.add(pasted)
	h.close()
	info, err := os.Stat(historyFile(state))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info, err)
	}
	h, err = openHistory(state)
	if err != nil || len(h.lines) != 3 || !h.lines[1].Same(lineedit.Line{Text: "two\nlines"}) || !h.lines[2].Same(pasted) {
		t.Errorf("kept are %+v, %v", h.lines, err)
	}
	for i := range 2 * maxHistory {
		h.add(lineedit.Line{Text: fmt.Sprint(i)})
	}
	h.close()
	if err := os.Chmod(historyFile(state), 0o644); err != nil {
		t.Fatal(err)
	}
	h, err = openHistory(state)
	if err != nil || len(h.lines) != maxHistory/2 || h.lines[len(h.lines)-1].Text != "1999" {
		t.Errorf("kept are %d lines, %v", len(h.lines), err)
	}
	h.close()
	if info, err := os.Stat(historyFile(state)); err != nil || info.Mode().Perm() != 0o600 || info.Size() > 10_000 {
		t.Errorf("the file is %v, %v", info, err)
	}
	if err := os.Remove(historyFile(state)); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(`"x"`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, historyFile(state)); err != nil {
		t.Fatal(err)
	}
	if h, err := openHistory(state); err == nil || len(h.lines) > 0 {
		t.Errorf("a link was followed: %v, %v", h.lines, err)
	}
}

// What lies outside the workspace, or is hidden, is not offered.
func TestFilesOfAChatAreThoseOfTheWorkspace(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"src/main.go", "src/made.go", ".env", "readme", "two words", "src/bad\x1b[2J"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := &chat{runOptions: &runOptions{workspace: dir}}
	for typed, want := range map[string]string{"": "readme src/", "s": "src/", "src/": "src/made.go src/main.go", "src/ma": "src/made.go src/main.go", "../": "", "/": "", ".e": ".env", "src/x": "", "none/": ""} {
		got := strings.Join(c.completeFiles(typed), " ")
		if got != want {
			t.Errorf("%q gives %q, want %q", typed, got, want)
		}
	}
}

// BenchmarkReopenedChat measures the time from the start of the command to the prompt behind
// a conversation of 300 turns.
func BenchmarkReopenedChat(b *testing.B) {
	dir := b.TempDir()
	b.Setenv("AGENTCTL_STATE", filepath.Join(dir, "state"))
	b.Chdir(b.TempDir())
	var steps strings.Builder
	for i := range 300 {
		fmt.Fprintf(&steps, "    - say: \"Answer %d has **some** words, as answers do, and `code`.\\n\\nAnd another paragraph of a line or two, so that there is something to show.\"\n", i+1)
	}
	manifest := filepath.Join(dir, "agent.yaml")
	text := "apiVersion: agentctl.dev/v1alpha1\nkind: Agent\nmetadata: {name: a}\nspec: {modelRef: {name: m}}\n---\napiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: m}\nspec:\n  provider: scripted\n  scripted:\n    steps:\n" + steps.String()
	if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	for i := range 300 {
		args := []string{"run", "-f", manifest, "-p", "Say something."}
		if i > 0 {
			args = []string{"run", "--continue", "@latest", "-p", "Say something more."}
		}
		var errs bytes.Buffer
		if code := Main(args, Streams{In: strings.NewReader(""), Out: io.Discard, Err: &errs}); code != 0 {
			b.Fatalf("turn %d exits with %d: %s", i+1, code, errs.String())
		}
	}
	var longest time.Duration
	for b.Loop() {
		master, slave, err := storytest.NewTerminal(80)
		if err != nil {
			b.Fatal(err)
		}
		begun := time.Now()
		code := make(chan int, 1)
		go func() { code <- Main([]string{"chat", "@latest"}, Streams{In: slave, Out: slave, Err: slave}) }()
		var shown bytes.Buffer
		buf := make([]byte, 64<<10)
		for !bytes.Contains(shown.Bytes(), []byte("Answer 300 has")) || !bytes.HasSuffix(shown.Bytes(), []byte("> \r\x1b[2C")) {
			n, err := master.Read(buf)
			if err != nil {
				b.Fatal(err)
			}
			shown.Write(buf[:n])
		}
		longest = max(longest, time.Since(begun))
		b.StopTimer()
		_, _ = master.WriteString("\x04")
		if got := <-code; got != 0 {
			b.Fatalf("it exits with %d", got)
		}
		_ = slave.Close() // nobody reads it any more
		_ = master.Close()
		b.StartTimer()
	}
	b.ReportMetric(float64(longest.Microseconds())/1000, "ms-max")
}
