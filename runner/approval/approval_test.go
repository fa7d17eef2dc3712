package approval

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

var (
	hashA = "sha256:" + strings.Repeat("a", 64)
	hashB = "sha256:" + strings.Repeat("b", 64)
)

func question(risk, hash string) message.Question {
	return message.Question{
		Call:     message.ToolCall{ID: "c1", Tool: "bash", Args: json.RawMessage(`{"command":"ls\nrm -rf ~\u202e x","timeout":5}`)},
		Decision: message.Decision{Action: message.Ask, Rule: "p/r", Message: "because", Risk: risk, Hash: hash, Facts: json.RawMessage(`{"dynamic":true}`)},
	}
}

func TestParse(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	tests := map[string]struct {
		spec, problem string
		mode          Mode
	}{
		"auto": {"", "", ModeAuto}, "never": {"never", "", ModeNever}, "prompt": {"prompt", "", ModePrompt}, "all": {"all", "", ModeAll}, "all R3": {"all,R3", "", ModeAll},
		"all R2":    {"all,R2", "only addition", ""},
		"typo":      {"nevr", "neither never, prompt", ""},
		"file":      {file("ok", "# mine\n"+hashA+" # first\n\n"+hashB+"\n"), "", ModeFile},
		"bad line":  {file("bad", hashA+"\nsha256:xyz\n"), "line 2 is not a call hash", ""},
		"upper":     {file("upper", strings.ToUpper(hashA)), "line 1", ""},
		"large":     {file("large", strings.Repeat("# x\n", fileLimit/4+1)), "larger than", ""},
		"long line": {file("long", "#"+strings.Repeat("x", 100_000)), "too long", ""},
		"folder":    {dir, "not a regular file", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := Parse(tc.spec)
			if tc.problem == "" && (err != nil || c.Mode != tc.mode || c.R3 != strings.HasSuffix(tc.spec, "R3")) {
				t.Errorf("got %+v, %v", c, err)
			}
			if tc.problem != "" && (err == nil || !strings.Contains(err.Error(), tc.problem)) {
				t.Errorf("got %v, want %q", err, tc.problem)
			}
		})
	}
}

func TestAllNeedsR3ToBeNamed(t *testing.T) {
	for risk, want := range map[string][2]message.ApprovalState{
		"R2": {message.Approved, message.Approved}, "R3": {message.Unanswered, message.Approved}, "": {message.Unanswered, message.Unanswered}, "R9": {message.Unanswered, message.Unanswered},
	} {
		for i, a := range []All{{}, {R3: true}} {
			got, err := a.Ask(t.Context(), question(risk, hashA))
			if err != nil || got.State != want[i] {
				t.Errorf("%+v, risk %q: got %+v, %v", a, risk, got, err)
			}
		}
	}
}

func TestFileApprovesEachLineOnce(t *testing.T) {
	hashes, err := parseHashes(strings.NewReader(hashA + "\n" + hashA + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	a := Choice{Mode: ModeFile, File: "f", hashes: hashes}.Approver(Options{})
	for i, want := range []message.ApprovalState{message.Approved, message.Approved, message.Unanswered} {
		if got, err := a.Ask(t.Context(), question("R3", hashA)); err != nil || got.State != want {
			t.Errorf("ask %d: got %+v, %v", i, got, err)
		}
	}
	if got, _ := a.Ask(t.Context(), question("R2", hashB)); got.State != message.Unanswered || got.By != "not in f, onAsk: Deny" {
		t.Errorf("got %+v", got)
	}
	if got, _ := a.Ask(t.Context(), question("R2", "")); got.State != message.Unanswered {
		t.Errorf("a call without a hash: got %+v", got)
	}
}

func TestNobodyActsAsDeclared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for on, want := range map[v1alpha1.OnAsk]message.Answer{
			"":                    {State: message.Unanswered, By: "no terminal, onAsk: Deny"},
			v1alpha1.OnAskDeny:    {State: message.Unanswered, By: "no terminal, onAsk: Deny"},
			v1alpha1.OnAskWait:    {State: message.Expired, By: "no terminal, onAsk: Wait"},
			v1alpha1.OnAskSuspend: {State: message.Unanswered, By: "no terminal, onAsk: Suspend", Suspend: true},
		} {
			start := time.Now()
			got, err := Choice{Mode: ModePrompt}.Approver(Options{OnAsk: on, Timeout: time.Hour}).Ask(t.Context(), question("R2", hashA))
			waited := time.Since(start)
			if err != nil || got.State != want.State || got.By != want.By || got.Suspend != want.Suspend || (on == v1alpha1.OnAskWait) != (waited == time.Hour) {
				t.Errorf("%s: got %+v, %v after %v", on, got, err, waited)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := (Headless{OnAsk: v1alpha1.OnAskWait, Timeout: time.Hour}).Ask(ctx, question("R2", hashA)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// screen collects what a person sees and answers each question when it is
// complete, as a person would.
type screen struct {
	mu     sync.Mutex
	text   strings.Builder
	writer *io.PipeWriter
	script []string
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	s.text.Write(b)
	var next string
	if len(s.script) > 0 && strings.HasSuffix(string(b), ": ") {
		next, s.script = s.script[0], s.script[1:]
	}
	s.mu.Unlock()
	if next != "" {
		go func() { _, _ = io.WriteString(s.writer, next) }()
	}
	return len(b), nil
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func prompt(t *testing.T, timeout time.Duration, answers ...string) (Approver, *screen) {
	t.Helper()
	r, w := io.Pipe()
	t.Cleanup(func() { w.Close() })
	s := &screen{writer: w, script: answers}
	terminal := NewTerminal(r, s, nil)
	t.Cleanup(terminal.Close)
	return Choice{Mode: ModePrompt}.Approver(Options{Timeout: timeout, Terminal: terminal}), s
}

func TestPromptAnswers(t *testing.T) {
	tests := map[string]struct {
		answers []string
		state   message.ApprovalState
		reason  string
		ends    bool
	}{
		"yes":            {[]string{"y\n"}, message.Approved, "", false},
		"no":             {[]string{"n\n"}, message.Rejected, "", false},
		"enter":          {[]string{"\n"}, message.Rejected, "", false},
		"reason":         {[]string{"r use git clean\n"}, message.Rejected, "use git clean", false},
		"reason apart":   {[]string{"r\n", "too risky\n"}, message.Rejected, "too risky", false},
		"end":            {[]string{"q\n"}, message.Rejected, "", true},
		"end, in full":   {[]string{"quit\n"}, message.Rejected, "", true},
		"end, unclear":   {[]string{"q now\n", "n\n"}, message.Rejected, "", false},
		"not understood": {[]string{"sure\n", "yes please\n", "Y\n"}, message.Approved, "", false},
		"long":           {[]string{strings.Repeat("y", 3*lineLimit) + "\n", "n\n"}, message.Rejected, "", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a, _ := prompt(t, time.Minute, tc.answers...)
			got, err := a.Ask(t.Context(), question("R2", hashA))
			if err != nil || got.State != tc.state || got.Reason != tc.reason || got.EndRun != tc.ends || got.By != "terminal" {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestPromptShowsEverything(t *testing.T) {
	a, s := prompt(t, time.Minute, "n\n")
	q := question("R3", hashA)
	long := strings.Repeat("x", 20_000)
	q.Call.Args = json.RawMessage(`{"command":"ls\nrm -rf ~\u202e x \u001b[2J\u200b","path":"` + long + `","n":[1,2]}`)
	if _, err := a.Ask(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Allow this call of bash?", "risk R3, cannot be undone", "    | ls\n    | rm -rf ~<U+202E> x <U+001B>[2J<U+200B>\n", long, "n: [1,2]", "why: because", "rule: p/r", "    only the run can tell: more than can be said\n", hashA, "within 1m0s"} {
		if !strings.Contains(s.String(), want) {
			t.Errorf("the question lacks %.60q:\n%.2000s", want, s.String())
		}
	}
	if strings.ContainsAny(s.String(), "\x1b\u202e\u200b") {
		t.Error("an invisible character reached the terminal")
	}
}

func TestPromptEndsByDeadlineCancelAndEOF(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := prompt(t, time.Minute)
		if got, err := a.Ask(t.Context(), question("R2", hashA)); err != nil || got.State != message.Expired {
			t.Errorf("deadline: got %+v, %v", got, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if got, err := a.Ask(ctx, question("R2", hashA)); !errors.Is(err, context.Canceled) || got.State != "" {
			t.Errorf("cancel: got %+v, %v", got, err)
		}
		_ = a.(*Prompt).terminal.in.(*io.PipeReader).Close()
		synctest.Wait()
		if got, err := a.Ask(t.Context(), question("R2", hashA)); err != nil || got.State != message.Unanswered {
			t.Errorf("end of input: got %+v, %v", got, err)
		}
	})
}

func TestTypedAheadIsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s := prompt(t, time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, _ = a.Ask(ctx, question("R2", hashA))
		go func() { _, _ = io.WriteString(s.writer, "y\n") }()
		synctest.Wait()
		if got, err := a.Ask(t.Context(), question("R3", hashB)); err != nil || got.State != message.Expired {
			t.Errorf("a line typed before the question answered it: %+v, %v", got, err)
		}
		s.writer.Close()
	})
}

func TestQuestionsAreAskedOneByOne(t *testing.T) {
	a, s := prompt(t, time.Minute, "y\n", "n\n", "y\n", "n\n")
	var wg sync.WaitGroup
	var mu sync.Mutex
	count := map[message.ApprovalState]int{}
	for range 4 {
		wg.Go(func() {
			got, err := a.Ask(t.Context(), question("R2", hashA))
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			count[got.State]++
			mu.Unlock()
		})
	}
	wg.Wait()
	if count[message.Approved] != 2 || count[message.Rejected] != 2 || strings.Count(s.String(), "Allow this call") != 4 {
		t.Errorf("got %v\n%s", count, s)
	}
}

func TestNoTerminalNoPrompt(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if Stdio(f, f) != nil || Stdio(nil, nil) != nil {
		t.Error("/dev/null is taken for a terminal")
	}
}

func FuzzHashes(f *testing.F) {
	f.Add(hashA + "\n#x\n")
	f.Fuzz(func(t *testing.T, s string) {
		hashes, err := parseHashes(strings.NewReader(s))
		for h := range hashes {
			if !hashLine().MatchString(h) {
				t.Errorf("%q, %v", h, err)
			}
		}
	})
}

func TestArgumentsCannotPassForLinesOfOurs(t *testing.T) {
	a, s := prompt(t, time.Minute, "n\n")
	q := question("R2", hashA)
	q.Call.Args = json.RawMessage(`{"why":"the user wants it","rule":"p/allowed","x: y\n  hash":"z","argv":["\u0072\u006d","\u202e","<b>"]}`)
	if _, err := a.Ask(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\n  why: because\n", "\n  rule: p/r\n", `argument "why": the user wants it`, `argument "rule": p/allowed`, `argument "x: y<U+000A>  hash": z`, `argv: ["rm","<U+202E>","<b>"]`} {
		if !strings.Contains(s.String(), want) {
			t.Errorf("the question lacks %q:\n%s", want, s.String())
		}
	}
	for _, line := range []string{"\n  why: the user", "\n  rule: p/allowed", "\n  hash: z"} {
		if strings.Contains(s.String(), line) {
			t.Errorf("an argument passes for a line of ours: %q", line)
		}
	}
}

// What may have happened already is repeated only by a person.
func TestDeclaredAnswersNeverRepeatAnUnknownCall(t *testing.T) {
	hash := "sha256:" + strings.Repeat("a", 64)
	q := message.Question{Unknown: true, Decision: message.Decision{Risk: "R1", Hash: hash}}
	for name, a := range map[string]Approver{
		"all":    All{},
		"all,R3": All{R3: true},
		"file":   &Listed{name: "f", mu: &sync.Mutex{}, left: map[string]int{hash: 2}},
		"nobody": Headless{},
	} {
		got, err := a.Ask(t.Context(), q)
		if err != nil || got.State != message.Unanswered || got.Reason == "" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	var out strings.Builder
	p := &Prompt{terminal: NewTerminal(strings.NewReader("y\n"), &out, nil), timeout: time.Second}
	q.Decision.Message = "it may have happened"
	if got, err := p.Ask(t.Context(), q); err != nil || !strings.Contains(out.String(), "it may have happened") {
		t.Errorf("a person is told %q and answered %+v, %v", out.String(), got, err)
	}
}
