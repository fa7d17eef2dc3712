package runner

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/cassette"
	"agentctl.dev/agentctl/runner/model/modeltest"
)

// TestEveryEndOfARunIsReplayed runs each kind of end; p.run holds the replay of
// each against it: events, result and exit code.
func TestEveryEndOfARunIsReplayed(t *testing.T) {
	const list = "- calls: [{tool: list, args: {path: %q}}]\n"
	steps := func(paths ...string) (text string) {
		for _, p := range paths {
			text += fmt.Sprintf(list, p)
		}
		return text
	}
	deny := policyOf("rules: [{name: nobody, match: {tools: [bash]}, action: deny}]")
	for name, c := range map[string]struct {
		reason    string
		manifests string
		want      reason.Reason
		change    func(*RunOptions)
	}{
		"steps":     {"the limit of steps", agent("tools: [{name: list}]\nlimits: {maxSteps: 2}", steps("a", "b", "c", "d")), reason.MaxSteps, nil},
		"loop":      {"the guard", agent("tools: [{name: list}]", steps(".", ".", ".", ".")), reason.LoopDetected, nil},
		"nudged":    {"a model that is told", agent("tools: [{name: list}]\nloopGuard: {onDetect: Nudge}", steps(".", ".", ".")+"- say: done\n"), reason.Completed, nil},
		"no answer": {"nothing is said", agent("tools: [{name: list}]", steps(".")), reason.NoFinalAnswer, nil},
		"contract":  {"corrections are used up", agent("output: {retries: 1, schema: {type: object}}", "- say: one\n- say: two\n"), reason.OutputInvalid, nil},
		"corrected": {"a correction helps", agent("output: {retries: 1, schema: {type: object}}", "- say: one\n- say: \"{}\"\n"), reason.Completed, nil},
		"denied":    {"a denied call, and an answer", agent("tools: [{name: bash}, {name: list}]\npolicyRefs: [{name: p}]", "- calls: [{tool: bash, args: {command: ls}}, {tool: list, args: {}}]\n- say: done\n", deny), reason.Completed, nil},
		"strict":    {"a denied call is a failure", agent("tools: [{name: bash}, {name: list}]\npolicyRefs: [{name: p}]", "- calls: [{tool: bash, args: {command: ls}}]\n- say: done\n", deny), reason.Denied, func(o *RunOptions) { o.FailOnDenied = true }},
		"summary": {
			"the conversation is shortened",
			strings.Replace(agent("tools: [{name: read}]\ncontext: {compactAtPercent: 50, keepRecentTokens: 500}",
				"- calls: [{tool: read, args: {path: big.txt}}]\n- calls: [{tool: read, args: {path: big.txt, offset: 2}}]\n- say: notes\n- say: done\n"),
				"provider: scripted", "contextWindow: 12000\n  provider: scripted", 1),
			reason.Completed, nil,
		},
		"summary of another": {
			"another model writes the notes",
			strings.Replace(agent("tools: [{name: read}]\ncontext: {compactAtPercent: 50, keepRecentTokens: 500, modelRef: {name: notes}}",
				"- calls: [{tool: read, args: {path: big.txt}}]\n- calls: [{tool: read, args: {path: big.txt, offset: 2}}]\n- say: done\n",
				"apiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: notes}\nspec: {provider: scripted, contextWindow: 20000, scripted: {steps: [{say: notes}]}}\n"),
				"provider: scripted\n", "contextWindow: 12000\n  provider: scripted\n", 1),
			reason.Completed, nil,
		},
		"parallel": {
			"calls side by side end in another order than they began",
			agent("tools: [{name: bash}]", "- calls: [{tool: bash, args: {command: \"sleep 0.2; echo a\"}}, {tool: bash, args: {command: \"sleep 0.1; echo b\"}}, {tool: bash, args: {command: \"echo c\"}}]\n- say: done\n"),
			reason.Completed, func(o *RunOptions) { o.Approve = "all" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, c.manifests, map[string]string{"a.txt": "one\n", "big.txt": strings.Repeat("a line of a file that is long\n", 600)})
			if c.change == nil {
				c.change = func(*RunOptions) {}
			}
			out := p.run(t, c.change)
			want(t, out, c.want)
			if summed := slices.ContainsFunc(out.Run.Messages, func(m *message.Message) bool { return m.Summary }); summed != strings.HasPrefix(name, "summary") {
				t.Errorf("%s: summed up: %v", c.reason, summed)
			}
		})
	}
}

func TestAStoppedRunIsReplayedAsItWasStopped(t *testing.T) {
	working := agent("tools: [{name: bash}, {name: list}]", "- say: I wait.\n  calls: [{tool: list, args: {}}, {tool: bash, args: {command: sleep 60}}, {tool: bash, args: {command: sleep 61}}]\n- say: done\n")
	for name, c := range map[string]struct {
		reason string
		until  event.Type
		cause  error
		code   int
	}{
		"a signal in a call":     {"the exit code is that of the signal", event.TypeToolCall, SignalError{Signal: syscall.SIGTERM}, reason.ExitTerminate},
		"a signal in an answer":  {"what was said so far stays", event.TypeTextDelta, SignalError{Signal: os.Interrupt}, reason.ExitInterrupt},
		"a signal between calls": {"nothing else begins", event.TypeToolResult, SignalError{Signal: os.Interrupt}, reason.ExitInterrupt},
		"a deadline":             {"its words are the same", event.TypeToolCall, reason.New(reason.DeadlineExceeded, "limits.timeout of 1s passed"), reason.ExitLimit},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, working, nil)
			ctx, stop := context.WithCancelCause(t.Context())
			defer stop(nil)
			out := p.runWith(ctx, t, func(o *RunOptions) {
				o.Approve = "all"
				o.Events = func(e event.Event) {
					if e.Type() == c.until {
						stop(c.cause)
					}
				}
			})
			if out.ExitCode() != c.code {
				t.Errorf("%s: exit code %d, want %d: %+v", c.reason, out.ExitCode(), c.code, out.Run.Finished)
			}
		})
	}
}

// TestACassetteHoldsNoSecret puts keys wherever one may come to stand.
func TestACassetteHoldsNoSecret(t *testing.T) {
	const key, token = "sk-canary/+0123456789==", "tok canary&9876543210?"
	forms := func(v string) []string {
		return []string{
			v, base64.StdEncoding.EncodeToString([]byte(v)), base64.URLEncoding.EncodeToString([]byte(v)), hex.EncodeToString([]byte(v)),
			strings.ToUpper(hex.EncodeToString([]byte(v))), url.QueryEscape(v), url.PathEscape(v),
		}
	}
	said := "The key is " + strings.Join(forms(key), " or ") + "."
	server := modelServer(t,
		modeltest.Answer{Text: said, Calls: []modeltest.Call{
			{ID: "c1", Tool: "bash", Args: fmt.Sprintf(`{"command":"printf '%%s\\n' '%s' \"$TOKEN\"; printf %%s \"$TOKEN\" | base64; printf %%s \"$TOKEN\" | od -An -tx1 | tr -d ' \\n'"}`, strings.Join(forms(key), " "))},
		}}.Step(),
		modeltest.Answer{Text: "done " + key}.Step())
	keyFile := filepath.Join(t.TempDir(), "key-file")
	write(t, keyFile, key+"\n")
	t.Setenv("CANARY_TOKEN", token)
	p := newPlace(t, "apiVersion: agentctl.dev/v1alpha1\nkind: Agent\nmetadata: {name: a}\nspec:\n  modelRef: {name: first}\n  instructions: \"Never say "+key+" to anybody.\"\n  tools: [{name: bash}]\n"+
		openaiModel("first", server.URL, "apiKey: {valueFrom: {file: "+keyFile+"}}")+allow+
		"---\napiVersion: agentctl.dev/v1alpha1\nkind: Tool\nmetadata: {name: bash}\nspec:\n  description: \"Not "+key+".\"\n  env: [{name: TOKEN, valueFrom: {env: CANARY_TOKEN}}]\n  source: {builtin: {name: bash}}\n", nil)
	file := filepath.Join(t.TempDir(), "fix.jsonl")
	out, err := Run(t.Context(), p.options(func(o *RunOptions) { o.Record, o.Prompt = file, "What is "+token+"?" }))
	if err != nil || out.Unrecorded != nil {
		t.Fatalf("%v, %v", err, out)
	}
	want(t, out, reason.Completed)
	if r, err := Replay(t.Context(), ReplayOptions{File: file}); err != nil || r.Divergence != nil {
		t.Errorf("without its secrets the run cannot be replayed: %v, %v", err, r)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte("The key is ***")) || !bytes.Contains(text, []byte("Never say *** to anybody")) {
		t.Errorf("the cassette does not hold what was said:\n%s", text)
	}
	for _, form := range append(forms(key), forms(token)...) {
		if bytes.Contains(text, []byte(form)) {
			t.Errorf("the cassette holds %s", form)
		}
	}
}

func TestARunThatHadEndedIsRecorded(t *testing.T) {
	p := newPlace(t, strings.Replace(agent("tools: [{name: read}]\ncontext: {compactAtPercent: 50, keepRecentTokens: 500}",
		"- calls: [{tool: read, args: {path: big.txt}}]\n- calls: [{tool: read, args: {path: big.txt, offset: 2}}]\n- say: notes\n- say: done\n"),
		"provider: scripted\n", "contextWindow: 12000\n  provider: scripted\n", 1), map[string]string{"big.txt": strings.Repeat("a line of a file that is long\n", 600)})
	out := p.run(t)
	file := filepath.Join(t.TempDir(), "late.jsonl")
	late, err := p.resume(t, func(o *ResumeOptions) { o.Record = file })
	if err != nil {
		t.Fatal(err)
	}
	late.Run.Attempt = 1
	replaysAsItWas(t, late, file)
	if late.Run.ID != out.Run.ID {
		t.Errorf("run %s was recorded, want %s", late.Run.ID, out.Run.ID)
	}
}

func TestARecordingThatCannotBeReplayedIsNotWritten(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		change func(event.Event) event.Event
		want   string
	}{
		"another end": {"its loop comes to another end", func(e event.Event) event.Event { return e }, "its replay goes another way: step 2: the end differs in output"},
		"another plan": {"the plan is lost", func(e event.Event) event.Event {
			if s, ok := e.Data.(event.RunStarted); ok {
				s.Plan = "sha256:" + strings.Repeat("0", 64)
				e.Data = s
			}
			return e
		}, "plan of run"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, agent("tools: [{name: list}]", "- calls: [{tool: list, args: {}}]\n- say: done\n"), nil)
			out := p.run(t)
			last := *out.Run.Finished
			last.Output = "undone"
			p.forge(t, out, c.change, last)
			file := filepath.Join(t.TempDir(), "x.jsonl")
			late, err := p.resume(t, func(o *ResumeOptions) { o.Record = file })
			if err != nil {
				t.Fatal(err)
			}
			if late.Unrecorded == nil || !strings.Contains(late.Unrecorded.Error(), c.want) {
				t.Errorf("%s: got %v, want %q", c.reason, late.Unrecorded, c.want)
			}
			if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: the file is there: %v", c.reason, err)
			}
		})
	}
}

func TestAPlanThatNobodyWroteIsDamage(t *testing.T) {
	p := newPlace(t, agent("tools: [{name: list}]", "- say: done\n"), nil)
	file := filepath.Join(t.TempDir(), "fix.jsonl")
	p.run(t, func(o *RunOptions) { o.Record = file })
	c, err := cassette.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	for reason, plan := range map[string]string{
		"a plan is an object":     `[]`,
		"it names an agent":       `{}`,
		"its tools are there":     `{"agent":{},"model":{},"tools":[{}]}`,
		"its tools are known":     `{"agent":{},"model":{},"tools":[{"tool":{"spec":{"source":{"builtin":{"name":"nonsense"}}}}}]}`,
		"its tools have one name": `{"agent":{},"model":{},"tools":[{"tool":{}},{"tool":{}}]}`,
	} {
		c.Plan = []byte(plan)
		if err := c.Save(file); err != nil {
			t.Fatal(err)
		}
		_, err := Replay(t.Context(), ReplayOptions{File: file})
		if d, ok := errors.AsType[*cassette.DamageError](err); !ok || d.Line != 2 {
			t.Errorf("%s: got %v", reason, err)
		}
	}
}

func TestAReplayCanBeStopped(t *testing.T) {
	p := newPlace(t, agent("", "- say: done\n"), nil)
	file := filepath.Join(t.TempDir(), "fix.jsonl")
	p.run(t, func(o *RunOptions) { o.Record = file })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Replay(ctx, ReplayOptions{File: file}); reason.Of(err) != reason.Cancelled {
		t.Errorf("got %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	r, err := Replay(ctx, ReplayOptions{File: file, Events: func(event.Event) { cancel() }})
	if err != nil || r.Unseen == 0 {
		t.Errorf("a watcher that has gone was told everything: %v", err)
	}
}

// hundred is the cassette of a run of a hundred steps, each with a call.
func hundred(b *testing.B) string {
	b.Helper()
	var steps strings.Builder
	for i := range 99 {
		fmt.Fprintf(&steps, "- say: \"This is step %d of a hundred.\"\n  calls: [{tool: list, args: {path: d%d}}]\n", i, i)
	}
	steps.WriteString("- say: done\n")
	dir := b.TempDir()
	p := place{filepath.Join(dir, "m"), filepath.Join(dir, "w"), filepath.Join(dir, "s")}
	for path, text := range map[string]string{p.manifests + "/a.yaml": agent("tools: [{name: list}, {name: bash}]\nlimits: {maxSteps: 200}", steps.String()), p.workspace + "/a": "a\n"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	file := filepath.Join(dir, "hundred.jsonl")
	out, err := Run(b.Context(), p.options(func(o *RunOptions) { o.Record = file }))
	if err != nil || out.Unrecorded != nil || out.Run.Steps != 100 {
		b.Fatalf("%v, %+v", err, out)
	}
	return file
}

// BenchmarkReplay100 must stay below half a second, the start of the program
// included.
func BenchmarkReplay100(b *testing.B) {
	file := hundred(b)
	b.ReportAllocs()
	start := time.Now()
	for b.Loop() {
		r, err := Replay(b.Context(), ReplayOptions{File: file})
		if err != nil || r.Divergence != nil {
			b.Fatalf("%v, %v", err, r.Divergence)
		}
	}
	if one := time.Since(start) / time.Duration(b.N); one > 500*time.Millisecond {
		b.Errorf("a replay takes %v", one)
	}
}
