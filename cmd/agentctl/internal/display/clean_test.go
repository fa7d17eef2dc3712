package display

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
)

func TestLineIsOneLine(t *testing.T) {
	if got, want := Line(" a\r\n\tb c\x1b[2J "), "a b c<U+001B>[2J"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// hostile steers a terminal in every way there is and hides the word EVIL in
// each control string.
const hostile = "\x1b]0;EVIL-OSC\a \x1bPEVIL-DCS\x1b\\ \x1b[2J\x1b[8mEVIL-CSI\x1b[0m \x1b_EVIL-APC\x1b\\ \x1b^EVIL-PM\x1b\\ \u009dEVIL-C1\u009c \u202eEVIL-BIDI\u2069 E\u200bV\u2060IL\rCR\b\b"

// harmful reports what of the text a terminal would obey or not show. What this
// package itself writes, a colour or the taking back of a line, is not meant.
func harmful(text string) (bad []string) {
	for _, ours := range []string{"\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m", "\r\x1b[K"} {
		text = strings.ReplaceAll(text, ours, "")
	}
	for _, r := range text {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Cf)) && !slices.Contains(bad, string(r)) {
			bad = append(bad, string(r))
		}
	}
	return bad
}

// TestUntrustedTextIsSeenEverywhere writes hostile text in every place a person
// reads: nothing steers the terminal, and nothing is left out.
func TestUntrustedTextIsSeenEverywhere(t *testing.T) {
	args := []byte(`{"command":"true \u001b]0;EVIL-OSC\u0007 \u202e x"}`)
	call := &message.ToolPart{
		CallID: "c1", Tool: "bash" + hostile, Input: args, State: message.StateError,
		Decision: &message.Decision{Action: message.Deny, Rule: hostile, Message: hostile, Risk: "R2"},
		Result:   &message.ToolResult{Code: message.CodeDenied, Text: hostile},
	}
	everyEvent := func(s *Screen) {
		for _, d := range []event.Payload{
			event.RunStarted{Agent: hostile, Prompt: hostile, Model: message.ModelRef{Name: hostile, Provider: hostile, Model: hostile}},
			event.RunFinished{Phase: hostile, Reason: hostile, Message: hostile},
			event.UserMessage{Text: hostile},
			event.MessageReceived{Incoming: message.Incoming{By: hostile, Text: hostile}},
			event.TextEnd{Text: hostile},
			event.ReasoningEnd{Text: hostile},
			event.Warning{Message: hostile},
			event.EgressConnection{Host: hostile, Rule: hostile, Error: hostile},
			event.ModelRetry{Retry: message.Retry{Error: hostile, Class: hostile, Fallback: hostile}},
			event.ToolInputEnd{Tool: hostile, Input: args},
			event.PolicyDecision{Decision: message.Decision{Rule: hostile, Message: hostile}},
			event.ApprovalRequested{Tool: hostile, Rule: hostile, Message: hostile},
			event.ToolCall{Tool: hostile, Args: args},
			event.ToolResult{ToolResult: message.ToolResult{Title: hostile, Output: hostile}},
			event.ToolError{ToolResult: message.ToolResult{Text: hostile}},
		} {
			_ = EventLine(s, event.Event{Seq: 1, Call: hostile, Data: d})
		}
	}
	aRun := func(s *Screen) {
		r := NewRun(FormatText, s, s, RunOptions{})
		for i, d := range []event.Payload{
			event.RunStarted{Agent: hostile, Model: message.ModelRef{Name: hostile}, Workspace: event.Workspace{Source: hostile}},
			event.Warning{Message: hostile},
			event.TextDelta{Text: hostile},
			event.TextEnd{Text: hostile},
		} {
			r.Event(event.Event{Seq: int64(i + 1), Run: "r", Message: "m", Part: "p", Data: d})
		}
		_ = r.Finish(&view.Run{
			ID: "r", Finished: &event.RunFinished{Phase: view.Failed, Reason: hostile, Message: hostile, Hint: hostile, Output: hostile, ExitCode: 1},
			Changes: event.WorkspacePatch{Files: []event.FileChange{{Path: hostile}}},
		}, "journal")
	}
	for name, show := range map[string]func(*Screen){
		"diff": func(s *Screen) { _ = Change{Diff: []byte("+" + hostile + "\n")}.WriteDiff(s) },
		"stat": func(s *Screen) { _ = Change{Files: []event.FileChange{{Path: hostile}}}.WriteStat(s) },
		"applied": func(s *Screen) {
			_ = Applied{Run: hostile, Source: hostile, Files: []event.FileChange{{Path: hostile}}}.WriteText(s)
		},
		"manifests": func(s *Screen) { _ = WriteDiff(s, "+"+hostile+"\n") },
		"events":    everyEvent,
		"run":       aRun,
		"logs":      func(s *Screen) { _ = Foreign(s, hostile) },
		"call":      func(s *Screen) { s.print(callLine(s, call, message.Answer{By: hostile, Reason: hostile}, "")) },
		"describe": func(s *Screen) {
			_ = (&Description{
				Kind: "Run", Name: hostile, Labels: map[string]string{hostile: hostile}, Spec: map[string]any{hostile: hostile, "list": []any{hostile}},
				Status: map[string]any{"a": hostile + "\n" + hostile}, Conditions: []DescribedCondition{{Type: hostile, Message: hostile}},
				Events: []DescribedEvent{{Reason: hostile, Message: hostile}},
			}).Write(s)
		},
		"explain": func(s *Screen) {
			_ = Explanation{
				Call: hostile, Ref: hostile, Rule: hostile, Place: hostile, Reason: hostile, Decision: "deny", Again: message.Action(hostile),
				Candidates: []Candidate{{Rule: hostile, Action: hostile, Truth: hostile, Mode: hostile, When: hostile, Error: hostile, Values: [][2]string{{hostile, hostile}}}},
			}.Write(s)
		},
		"error":    func(s *Screen) { Error(s, errors.New(hostile), Advice{Hint: hostile, Meant: hostile, See: hostile}) },
		"mistakes": func(s *Screen) { _, _ = Mistakes(s).Write([]byte("error: " + hostile + "\n")) },
		"notice":   func(s *Screen) { Notice(s, hostile) },
	} {
		for _, color := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				var b bytes.Buffer
				show(&Screen{w: &b, TTY: true, Live: true, Color: color})
				if bad := harmful(b.String()); len(bad) > 0 {
					t.Errorf("the terminal is sent %q:\n%q", bad, b.String())
				}
				if !strings.Contains(b.String(), "EVIL-OSC") || !strings.Contains(b.String(), "<U+202E>") {
					t.Errorf("something is left out:\n%s", b.String())
				}
			})
		}
	}
}
