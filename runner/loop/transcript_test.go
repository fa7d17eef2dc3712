package loop

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
)

var update = flag.Bool("update", false, "write the transcripts anew")

// Every transcript of testdata is a whole run: what the model says, what the
// policy and the person answer, and every event that comes of it, byte for byte.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, archive)
			if *update {
				archive.Files = append(archive.Files[:len(archive.Files)-1], txtar.File{Name: "events.jsonl", Data: got})
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(section(archive, "events.jsonl")), string(got)); diff != "" {
				t.Errorf("events (-want +got), go test -update writes them anew:\n%s", diff)
			}
		})
	}
}

func section(a *txtar.Archive, name string) []byte {
	for _, f := range a.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

// play runs a transcript and returns its events.
func play(t *testing.T, a *txtar.Archive) []byte {
	t.Helper()
	w := newWorld(t, parseAnswers(t, string(section(a, "model")))...)
	rules := words(string(section(a, "policy")))
	w.decide = func(c message.ToolCall) (message.Decision, error) {
		d := message.Decision{Action: message.Allow, Rule: "test/all", Risk: "R1"}
		if action, ok := rules[c.Tool]; ok {
			d.Action, d.Rule, d.Message, d.Hash = message.Action(action), "test/"+c.Tool, "a rule of the transcript", "sha256:0"
		}
		return d, nil
	}
	people := words(string(section(a, "person")))
	if answer, ok := people["answer"]; ok {
		w.ask = func(context.Context, message.Question) (message.Answer, error) {
			return message.Answer{State: message.ApprovalState(answer), By: "terminal", Reason: people["reason"], EndRun: people["endRun"] != ""}, nil
		}
	}
	limits := words(string(section(a, "limits")))
	var cfg Config
	end := w.start(t.Context(), func(c *Config) {
		c.Limits.MaxSteps = number(limits, "maxSteps", 50)
		c.Limits.MaxTokens = int64(number(limits, "maxTokens", 0))
		if want := limits["answer"]; want != "" {
			c.Answer = Answer{Retries: 1, Check: func(text string) string {
				if text == want {
					return ""
				}
				return "want " + want
			}}
		}
		if act := limits["onDetect"]; act != "" {
			c.Guard.Act = act
		}
		fixTime(c)
		cfg = *c
	})
	phase := view.Failed
	if end.Reason == "Completed" {
		phase = view.Succeeded
	}
	finished, err := journal{w}.Append(event.Event{Time: cfg.Now(), Data: event.RunFinished{
		Phase: phase, Reason: string(end.Reason), ExitCode: end.Reason.ExitCode(), Message: end.Message, Hint: end.Hint,
		Output: end.Output, Steps: cfg.View.Steps, Tokens: cfg.View.Tokens,
	}})
	if err == nil {
		err = cfg.View.Apply(finished)
	}
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, e := range w.events {
		line, err := e.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(line, '\n'))
	}
	return out.Bytes()
}

// fixTime lets each look at the clock take one millisecond.
func fixTime(c *Config) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c.Now = func() time.Time {
		now = now.Add(time.Millisecond)
		return now
	}
}

// parseAnswers reads what the model says: blocks of lines, one an answer.
//
//	say TEXT · think TEXT · call TOOL JSON · finish WORD · usage IN OUT · retry CLASS
func parseAnswers(t *testing.T, text string) []answer {
	t.Helper()
	var all []answer
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		a := answer{out: message.Output{Finish: message.FinishStop, Model: message.ModelRef{Name: "m", Provider: "scripted"}}}
		for line := range strings.SplitSeq(block, "\n") {
			word, rest, _ := strings.Cut(line, " ")
			switch word {
			case "say":
				a.out.Text = rest
				a.emit = append(a.emit, message.Delta{Kind: message.DeltaText, Text: rest})
			case "think":
				a.out.Reasoning = rest
				a.emit = append(a.emit, message.Delta{Kind: message.DeltaReasoning, Text: rest})
			case "call":
				tool, args, _ := strings.Cut(rest, " ")
				n := len(a.out.Calls)
				a.out.Finish = message.FinishToolCalls
				a.out.Calls = append(a.out.Calls, message.CallRequest{ID: tool + strconv.Itoa(10*len(all)+n+1), Tool: tool, Args: args})
				a.emit = append(a.emit, message.Delta{Kind: message.DeltaTool, Index: n, Tool: tool, Call: a.out.Calls[n].ID, Text: args})
			case "finish":
				a.out.Finish = message.Finish(rest)
			case "usage":
				in, out, _ := strings.Cut(rest, " ")
				a.out.Usage = message.Usage{Input: atoi(t, in), Output: atoi(t, out)}
			case "retry":
				a.emit = append(a.emit, message.Delta{Kind: message.DeltaRetry, Retry: &message.Retry{Attempt: 1, Attempts: 5, Class: rest, Error: "the server answered " + rest, WaitMillis: 1000}})
			default:
				t.Fatalf("model: %q", line)
			}
		}
		all = append(all, a)
	}
	return all
}

func words(text string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		m[key] = value
	}
	return m
}

func number(m map[string]string, key string, otherwise int) int {
	if n, err := strconv.Atoi(m[key]); err == nil {
		return n
	}
	return otherwise
}

func atoi(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
