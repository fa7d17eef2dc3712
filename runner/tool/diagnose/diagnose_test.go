package diagnose

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// program is a Process that is a function of the test.
type program struct {
	done   chan struct{}
	cancel context.CancelFunc
	code   int
}

func (p *program) Done() <-chan struct{} { return p.done }
func (p *program) Kill(time.Duration)    { p.cancel() }
func (p *program) End() (int, string)    { <-p.done; return p.code, "" }
func starting(main func(ctx context.Context, p Program) int) func(context.Context, string, Program) (Process, error) {
	return func(_ context.Context, _ string, p Program) (Process, error) {
		ctx, cancel := context.WithCancel(context.Background())
		run := &program{done: make(chan struct{}), cancel: cancel}
		go func() {
			defer close(run.done)
			defer cancel()
			run.code = main(ctx, p)
		}()
		return run, nil
	}
}

func allow(context.Context, message.ToolCall, []string) (message.Decision, error) {
	return message.Decision{Action: message.Allow}, nil
}

func newChecker(t *testing.T, root string, o Options) *Checker {
	t.Helper()
	o.Root = func(context.Context) (string, error) { return root, nil }
	if o.Judge == nil {
		o.Judge = allow
	}
	if o.Clean == nil {
		o.Clean = func(s string) string { return strings.ReplaceAll(s, "hunter2", "[redacted]") }
	}
	o.Now = time.Now
	c := New(t.Context(), o)
	t.Cleanup(c.Close)
	return c
}

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func timeout(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }

func TestLinesOfCompilersAreFindings(t *testing.T) {
	root := folder(t, map[string]string{"main.go": "", "src/a b.ts": "", "10": ""})
	in, err := os.OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	for _, c := range []struct {
		line, reason string
		want         *message.Finding
	}{
		{"main.go:3:5: undefined: x", "file, line, column", &message.Finding{File: "main.go", Line: 3, Column: 5, Message: "undefined: x"}},
		{"./main.go:3: warning: unused", "no column", &message.Finding{File: "main.go", Line: 3, Severity: "warning", Message: "warning: unused"}},
		{"vet: ./main.go:3:5: bad", "behind the name of the program", &message.Finding{File: "main.go", Line: 3, Column: 5, Message: "bad"}},
		{"src/a b.ts(3,5): error TS2322: no", "with brackets", &message.Finding{File: "src/a b.ts", Line: 3, Column: 5, Severity: "error", Message: "error TS2322: no"}},
		{root + "/main.go:1:1: x", "absolute in the workspace", &message.Finding{File: "main.go", Line: 1, Column: 1, Message: "x"}},
		{"2026/11/23 10:20:30: started", "a time is no place", nil},
		{"/etc/passwd:1:1: root", "outside the workspace", nil},
		{"../x:1:1: y", "outside the workspace", nil},
		{"gone.go:1:1: x", "there is no such file", nil},
		{"main.go:0:1: x", "lines count from 1", nil},
		{"main.go:99999999999999999999:1: x", "no number", nil},
		{"main.go:3:5:", "nothing is said", nil},
		{"# example.com/pkg", "a heading", nil},
		{strings.Repeat("x:1:", 10_000) + " y", "long", nil},
	} {
		got, ok := readLine(c.line, in)
		if ok != (c.want != nil) || ok && got != *c.want {
			t.Errorf("%s: %.60q is %+v %v, want %+v", c.reason, c.line, got, ok, c.want)
		}
	}
}

// A link tells nobody which files this host has.
func TestAPlaceBehindALinkOutOfTheWorkspaceIsNone(t *testing.T) {
	root, host := folder(t, map[string]string{"main.go": "", "sub/x.go": ""}), folder(t, map[string]string{"secret": ""})
	up, err := filepath.Rel(root, host)
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"top": "/", "host": host, "up": up, "in": "main.go", "loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]bool{
		"top" + host + "/secret": false, "host/secret": false, "up/secret": false, "up/none": false, "sub/../up/secret": false, "loop/x": false,
		"main.go": true, "sub/x.go": true, "in": true, ".": true,
	} {
		if got := len(existing(root, []string{name})) == 1; got != want {
			t.Errorf("%s is told to a command: %t", name, got)
		}
		if found := readLines(name+":1: x\n"+root+"/"+name+":1: x\n", root); len(found) > 0 != (want && name != ".") {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

func FuzzReadLines(f *testing.F) {
	f.Add("main.go:3:5: undefined: x\nvet: a(3,5): error")
	f.Fuzz(func(t *testing.T, output string) {
		for _, found := range readLines(output, "/nonexistent") {
			t.Errorf("a file that does not exist: %+v", found)
		}
	})
}

func TestOnlyMatchingFilesAreChecked(t *testing.T) {
	root := folder(t, map[string]string{"a.go": "", "sub/-b.go": ""})
	var argv [][]string
	c := newChecker(t, root, Options{
		Checks: []v1alpha1.Diagnostic{
			{Name: "go", Files: []string{"**/*.go"}, Command: []string{"vet", "{files}", "{folders}", "{files}x"}},
			{Name: "py", Files: []string{"**/*.py"}, Command: []string{"no"}},
		},
		Judge: func(_ context.Context, _ message.ToolCall, words []string) (message.Decision, error) {
			argv = append(argv, words)
			return message.Decision{Action: message.Ask, Rule: "p/r"}, nil
		},
	})
	got := c.Check(t.Context(), message.ToolCall{}, []string{"sub/-b.go", "a.go", "gone.go", "x.md"})
	if want := [][]string{{"vet", "./a.go", "./sub/-b.go", "./.", "./sub", "{files}x"}}; !cmp.Equal(argv, want) {
		t.Error(cmp.Diff(want, argv))
	}
	if len(got) != 1 || got[0].State != message.CheckRefused || got[0].Rule != "p/r" {
		t.Errorf("a check that a policy asks about ran: %+v", got)
	}
	if got := c.Check(t.Context(), message.ToolCall{}, []string{"gone/gone.go"}); len(got) != 0 {
		t.Errorf("nothing is left to look at, and a check says %+v", got)
	}
}

func TestWhatACommandWritesIsBounded(t *testing.T) {
	root := folder(t, map[string]string{"a": "", "b": ""})
	said := "hunter2\n" + strings.Repeat("b:1:1: other\n", 2) + "a:2:1: " + strings.Repeat("long ", 500) + "\n"
	for n := range 100 {
		said += fmt.Sprintf("b:%d:1: hunter2\n", n+2)
	}
	c := newChecker(t, root, Options{
		Checks: []v1alpha1.Diagnostic{{Name: "c", Files: []string{"a"}, Command: []string{"x"}, MaxFindings: 3}},
		Start: starting(func(_ context.Context, p Program) int {
			_, _ = io.WriteString(p.Stdout, said)
			_, _ = p.Stdout.Write(make([]byte, 4<<20))
			return 1
		}),
	})
	got := c.Check(t.Context(), message.ToolCall{}, []string{"a"})
	if len(got) != 1 || got[0].State != message.CheckFound || len(got[0].Findings) != 3 || got[0].More != 99 {
		t.Fatalf("got %+v", got)
	}
	if f := got[0].Findings[0]; f.File != "a" || len(f.Message) > maxMessage+4 {
		t.Errorf("the changed file is not first, or its message not cut: %+v", f)
	}
	if text := Text(got); strings.Contains(text, "hunter2") || len(text) > maxText || !strings.Contains(text, "102 findings, the first 3") {
		t.Errorf("got %s", text)
	}
}

func TestACommandThatDoesNotEndIsKilled(t *testing.T) {
	ended := make(chan struct{})
	c := newChecker(t, folder(t, map[string]string{"a": ""}), Options{
		Checks: []v1alpha1.Diagnostic{{Name: "c", Files: []string{"a"}, Command: []string{"x"}, Timeout: timeout(time.Millisecond)}},
		Start:  starting(func(ctx context.Context, _ Program) int { <-ctx.Done(); close(ended); return 0 }),
	})
	got := c.Check(t.Context(), message.ToolCall{}, []string{"a"})
	if len(got) != 1 || got[0].State != message.CheckTimeout {
		t.Errorf("got %+v", got)
	}
	<-ended
}

// lsp is a language server: each line with TODO is a finding.
type lsp struct {
	mu     sync.Mutex
	w      io.Writer
	pulls  bool
	mute   bool
	asked  []string
	opened map[string]string
	// before are the findings of further files, which it says before those of a changed
	// one.
	before func(say func(uri string, found []any))
}

func (l *lsp) send(v map[string]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v["jsonrpc"] = "2.0"
	_ = framed{}.WriteObject(l.w, v)
}

func findingsIn(text string) []any {
	all := []any{}
	for n, line := range strings.Split(text, "\n") {
		if at := strings.Index(line, "TODO"); at >= 0 {
			place := map[string]any{"line": n, "character": at}
			all = append(all, map[string]any{"range": map[string]any{"start": place, "end": place}, "severity": 2, "source": "todo", "message": line})
		}
	}
	return all
}

func (l *lsp) main(ctx context.Context, p Program) int {
	stop := context.AfterFunc(ctx, func() { _ = p.Stdin.(io.Closer).Close() })
	defer stop()
	l.w, l.opened = p.Stdout, map[string]string{}
	in := bufio.NewReader(p.Stdin)
	for {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				TextDocument   struct{ URI, Text, LanguageID string }
				ContentChanges []struct{ Text string }
			}
		}
		if err := (framed{}).ReadObject(in, &m); err != nil {
			return 0
		}
		l.asked = append(l.asked, m.Method)
		doc := m.Params.TextDocument
		switch m.Method {
		case "initialize":
			caps := map[string]any{}
			if l.pulls {
				caps["diagnosticProvider"] = map[string]any{}
			}
			l.send(map[string]any{"id": "cfg", "method": "workspace/configuration", "params": map[string]any{"items": []any{1, 2}}})
			l.send(map[string]any{"id": 7, "method": "workspace/applyEdit", "params": map[string]any{}})
			l.send(map[string]any{"id": m.ID, "result": map[string]any{"capabilities": caps}})
		case "textDocument/didOpen", "textDocument/didChange":
			if l.opened[doc.URI] = doc.Text; len(m.Params.ContentChanges) > 0 {
				l.opened[doc.URI] = m.Params.ContentChanges[0].Text
			}
			if l.before != nil {
				l.before(func(uri string, found []any) {
					l.send(map[string]any{"method": "textDocument/publishDiagnostics", "params": map[string]any{"uri": uri, "diagnostics": found}})
				})
			}
			if !l.pulls && !l.mute {
				l.send(map[string]any{"method": "textDocument/publishDiagnostics", "params": map[string]any{"uri": doc.URI, "diagnostics": findingsIn(l.opened[doc.URI])}})
				l.send(map[string]any{"method": "textDocument/publishDiagnostics", "params": map[string]any{"uri": "file:///etc/passwd", "diagnostics": findingsIn("TODO")}})
			}
		case "textDocument/diagnostic":
			l.send(map[string]any{"id": m.ID, "result": map[string]any{"kind": "full", "items": findingsIn(l.opened[doc.URI])}})
		case "shutdown":
			l.send(map[string]any{"id": m.ID, "result": nil})
		case "exit":
			return 0
		}
	}
}

func TestALanguageServerIsAskedAboutChangedFiles(t *testing.T) {
	for _, pulls := range []bool{true, false} {
		t.Run(fmt.Sprintf("pulls=%v", pulls), func(t *testing.T) {
			root := folder(t, map[string]string{"a.ts": "x\n  TODO y\n"})
			l, starts := &lsp{pulls: pulls}, 0
			run := starting(l.main)
			c := New(t.Context(), Options{
				Checks: []v1alpha1.Diagnostic{{Name: "ts", Files: []string{"*.ts"}, Server: []string{"s"}, Timeout: timeout(time.Minute)}},
				Root:   func(context.Context) (string, error) { return root, nil }, Judge: allow, Clean: func(s string) string { return s }, Now: time.Now,
				Start: func(ctx context.Context, n string, p Program) (Process, error) { starts++; return run(ctx, n, p) },
			})
			got := c.Check(t.Context(), message.ToolCall{}, []string{"a.ts"})
			if want := "[diagnostics ts: 1 finding]\na.ts:2:3: warning:   TODO y (todo)"; Text(got) != want {
				t.Errorf("got %q", Text(got))
			}
			if err := os.WriteFile(filepath.Join(root, "a.ts"), []byte("fine"), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := c.Check(t.Context(), message.ToolCall{}, []string{"a.ts"}); len(got) != 1 || got[0].State != message.CheckClean {
				t.Errorf("after the repair: %+v", got)
			}
			if err := os.Remove(filepath.Join(root, "a.ts")); err != nil {
				t.Fatal(err)
			}
			if got := c.Check(t.Context(), message.ToolCall{}, []string{"a.ts"}); len(got) != 1 || got[0].State != message.CheckClean {
				t.Errorf("after the file is gone: %+v", got)
			}
			c.Close()
			if said := strings.Join(l.asked, " "); starts != 1 || !strings.Contains(said, "didOpen") || !strings.Contains(said, "didChange ") || !strings.Contains(said, "didClose") || !strings.HasSuffix(said, "shutdown exit") {
				t.Errorf("%d starts; it was asked %s", starts, said)
			}
		})
	}
}

// foundBy is a finding as the protocol has it.
func foundBy(source, message string) any { return map[string]any{"source": source, "message": message} }

func TestWhatAServerSaysIsShortened(t *testing.T) {
	root := folder(t, map[string]string{"a": "TODO"})
	uri := func(name string) string { return "file://" + root + "/" + name }
	long := strings.Repeat("m", maxMessage-3) + "hunter2" + strings.Repeat("m", 1<<20)
	l := &lsp{before: func(say func(string, []any)) {
		for n := range 8 {
			say(uri(fmt.Sprint("f", n)), []any{foundBy(long, long)})
		}
		say("file:///etc/passwd", []any{foundBy("", "x")})
		say("untitled:x", []any{foundBy("", "x")})
		say(uri(strings.Repeat("u", maxURI)), []any{foundBy("", "x")})
		say(uri("many"), slices.Repeat([]any{foundBy("", "x")}, 2*mostOfOne))
	}}
	c := newChecker(t, root, Options{
		Checks: []v1alpha1.Diagnostic{{Name: "s", Files: []string{"a"}, Server: []string{"s"}, Timeout: timeout(time.Minute)}},
		Start:  starting(l.main),
	})
	got := c.Check(t.Context(), message.ToolCall{}, []string{"a"})
	if len(got) != 1 || got[0].State != message.CheckFound || strings.Contains(Text(got), "hun") {
		t.Fatalf("got %+v", got)
	}
	s := c.checks[0].server
	s.mu.Lock()
	defer s.mu.Unlock()
	kept, files := 0, 0
	for uri, found := range s.said {
		files++
		for _, d := range found {
			kept += len(d.Message) + len(d.Source)
		}
		if len(found) > mostOfOne || cap(found) > 2*mostOfOne || !strings.HasPrefix(uri, "file://"+root) {
			t.Errorf("%d findings, %d places of %s", len(found), cap(found), uri)
		}
	}
	if files != 10 || kept > 8*2*(maxMessage+4)+2*mostOfOne {
		t.Errorf("%d bytes of %d files are kept", kept, files)
	}
}

func TestAServerThatSaysTooMuchIsStopped(t *testing.T) {
	for _, pulls := range []bool{true, false} {
		t.Run(fmt.Sprintf("pulls=%v", pulls), func(t *testing.T) {
			root, ended := folder(t, map[string]string{"a": ""}), make(chan struct{})
			much := slices.Repeat([]any{foundBy("source", strings.Repeat("m", maxMessage))}, mostOfOne)
			l := &lsp{pulls: pulls, before: func(say func(string, []any)) {
				for n := range 40 {
					say(fmt.Sprintf("file://%s/f%d", root, n), much)
				}
			}}
			c := newChecker(t, root, Options{
				Checks: []v1alpha1.Diagnostic{{Name: "s", Files: []string{"a"}, Server: []string{"s"}, Timeout: timeout(time.Minute)}},
				Start:  starting(func(ctx context.Context, p Program) int { defer close(ended); return l.main(ctx, p) }),
			})
			got := c.Check(t.Context(), message.ToolCall{}, []string{"a"})
			if len(got) != 1 || got[0].State != message.CheckFailed || !strings.Contains(got[0].Message, "its server was stopped: it says more than 16 MiB") {
				t.Errorf("got %.300v", got)
			}
			c.Close() // ends the server; a checker that kept it would wait for its end
			<-ended
		})
	}
}

// A short text can hold very many findings.
func TestOnlyTheFirstFindingsOfAFileAreRead(t *testing.T) {
	var d diagnostics
	if err := json.Unmarshal([]byte("["+strings.Repeat("{},", maxFrame/3-1)+"{}]"), &d); err != nil || len(d) != mostOfOne || cap(d) > 2*mostOfOne {
		t.Errorf("%d findings in %d places, %v", len(d), cap(d), err)
	}
	for _, text := range []string{"{}", `"x"`, "1", "[1]", `[{"message":1}]`} {
		if err := json.Unmarshal([]byte(text), &d); err == nil {
			t.Errorf("%s is read", text)
		}
	}
	if err := json.Unmarshal([]byte("null"), &d); err != nil || d != nil {
		t.Errorf("null is read as %v, %v", d, err)
	}
}

func TestALinkInPlaceOfAChangedFileIsNotRead(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("TODO hunter3"), 0o600); err != nil {
		t.Fatal(err)
	}
	root := folder(t, map[string]string{"inside": "TODO hunter3"})
	for name, target := range map[string]string{"out.ts": secret, "in.ts": "inside"} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	c := newChecker(t, root, Options{
		Checks: []v1alpha1.Diagnostic{{Name: "ts", Files: []string{"*.ts"}, Server: []string{"s"}, Timeout: timeout(time.Minute)}},
		Start:  starting((&lsp{pulls: true}).main),
	})
	for _, name := range []string{"out.ts", "in.ts"} {
		if got := c.Check(t.Context(), message.ToolCall{}, []string{name}); len(got) != 1 || got[0].State != message.CheckFailed || strings.Contains(Text(got), "hunter3") {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestServersThatAreNoneCostOnlyTheirCheck(t *testing.T) {
	hostile := map[string]func(context.Context, Program) int{
		"ends": func(context.Context, Program) int { return 3 },
		"garbage": func(ctx context.Context, p Program) int {
			_, _ = io.WriteString(p.Stdout, "hello\n\n")
			<-ctx.Done()
			return 0
		},
		"huge frame": func(ctx context.Context, p Program) int {
			_, _ = io.WriteString(p.Stdout, "Content-Length: 999999999999\r\n\r\n")
			<-ctx.Done()
			return 0
		},
		"a long message": func(ctx context.Context, p Program) int {
			_, _ = fmt.Fprintf(p.Stdout, "Content-Length: %d\r\n\r\n", maxFrame+1)
			<-ctx.Done()
			return 0
		},
		"no header end": func(ctx context.Context, p Program) int {
			_, _ = p.Stdout.Write([]byte(strings.Repeat("A: b\r\n", 1<<20)))
			<-ctx.Done()
			return 0
		},
	}
	for name, main := range hostile {
		t.Run(name, func(t *testing.T) {
			starts := 0
			run := starting(main)
			c := newChecker(t, folder(t, map[string]string{"a": ""}), Options{
				Checks: []v1alpha1.Diagnostic{{Name: "s", Files: []string{"a"}, Server: []string{"s"}, Timeout: timeout(time.Minute)}},
				Start:  func(ctx context.Context, n string, p Program) (Process, error) { starts++; return run(ctx, n, p) },
			})
			for range maxStarts + 2 {
				if got := c.Check(t.Context(), message.ToolCall{}, []string{"a"}); len(got) != 1 || got[0].State != message.CheckFailed {
					t.Fatalf("got %+v", got)
				}
			}
			if starts != maxStarts {
				t.Errorf("it was started %d times", starts)
			}
		})
	}
}

func TestAServerThatSaysNothingEndsWithItsTime(t *testing.T) {
	c := newChecker(t, folder(t, map[string]string{"a": "TODO"}), Options{
		Checks: []v1alpha1.Diagnostic{
			{Name: "mute", Files: []string{"a"}, Server: []string{"s"}, Timeout: timeout(20 * time.Millisecond)},
			{Name: "deaf", Files: []string{"a"}, Server: []string{"s"}, Timeout: timeout(20 * time.Millisecond)},
		},
		Start: func(ctx context.Context, name string, p Program) (Process, error) {
			if name == "mute" {
				return starting((&lsp{mute: true}).main)(ctx, name, p)
			}
			return starting(func(ctx context.Context, _ Program) int { <-ctx.Done(); return 0 })(ctx, name, p)
		},
	})
	for range 2 {
		for _, got := range c.Check(t.Context(), message.ToolCall{}, []string{"a"}) {
			if got.State != message.CheckTimeout {
				t.Errorf("got %+v", got)
			}
		}
	}
}

func TestMessagesThatNobodyReadsAreBounded(t *testing.T) {
	o := newOutbox()
	var err error
	for range 100 {
		if _, err = o.Write(make([]byte, 1<<20)); err != nil {
			break
		}
	}
	if !errors.Is(err, io.ErrClosedPipe) || len(o.waiting) > maxWaiting {
		t.Errorf("%v, %d bytes wait", err, len(o.waiting))
	}
}

func FuzzReadObject(f *testing.F) {
	f.Add("Content-Length: 2\r\n\r\n{}")
	f.Fuzz(func(t *testing.T, text string) {
		var v json.RawMessage
		if err := (framed{}).ReadObject(bufio.NewReader(strings.NewReader(text)), &v); err == nil && !json.Valid(v) {
			t.Errorf("%q is read as %q", text, v)
		}
	})
}
