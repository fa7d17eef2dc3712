package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"agentctl.dev/agentctl/api/event"
)

// compare holds what happened against what was recorded, and returns the
// divergence when they differ. The caller holds mu.
func (p *Player) compare(at *entry, now, recorded event.Event) *Divergence {
	if now.Type() != recorded.Type() {
		return p.diverge(p.at(at, "another course", describe(recorded), describe(now)))
	}
	a, errA := encode(p.timeless(recorded.Data))
	b, errB := encode(p.timeless(unadded(now.Data, recorded.Data)))
	if errA == nil && errB == nil && bytes.Equal(a, b) {
		return nil
	}
	path, was, is := firstDifference(a, b)
	was, is = Around(was, is)
	return p.diverge(p.at(at, what(now.Data, path), was, is))
}

// timeless leaves out of an event what may differ in a replay: times and how
// often a call was begun.
func (p *Player) timeless(of event.Payload) event.Payload {
	switch d := of.(type) {
	case event.ModelResponse:
		d.DurationMs, d.FirstByteMs = 0, 0
		return d
	case event.ContextCompaction:
		d.DurationMs = 0
		if p.Roughly {
			d.Before, d.After = 0, 0
		}
		return d
	case event.ContextPrune:
		if p.Roughly {
			d.Before, d.After = 0, 0
		}
		return d
	case event.ApprovalRequested:
		d.ExpiresAt = 0
		return d
	case event.ToolCall:
		d.Attempt = 0
		return d
	case event.RunFinished:
		d.DurationMs = 0
		return d
	}
	return of
}

// unadded leaves out of an event what the recording does not have: it was made by a
// version that did not write it down. An estimate is taken as it was recorded: the
// bytes it counted may have held secrets, or schemas with their white space.
func unadded(now, recorded event.Payload) event.Payload {
	switch d := now.(type) {
	case event.UserMessage:
		if was, ok := recorded.(event.UserMessage); ok && was.Origin == nil {
			d.Origin = nil
		}
		return d
	case event.MessageReceived:
		if was, ok := recorded.(event.MessageReceived); ok && was.Origin == nil {
			d.Origin = nil
		}
		return d
	case event.ToolError:
		if was, ok := recorded.(event.ToolError); ok && was.Origin == nil {
			d.Origin = nil
		}
		return d
	case event.ModelResponse:
		if was, ok := recorded.(event.ModelResponse); ok && (was.Estimate == nil || d.Estimate != nil) {
			d.Estimate = was.Estimate
			if d.Cost == nil {
				d.Cost = was.Cost
			}
		}
		return d
	case event.StepFinish:
		if was, ok := recorded.(event.StepFinish); ok && was.Calls == nil {
			d.Calls = nil
		}
		return d
	case event.RunFinished:
		if was, ok := recorded.(event.RunFinished); ok {
			d.Structured = d.Structured && was.Structured
			if was.Evidence == nil { // evidence that is missing is another reason, too
				d.Evidence = nil
			}
		}
		return d
	case event.ContextCompaction:
		if was, ok := recorded.(event.ContextCompaction); ok && (was.Estimate == nil || d.Estimate != nil) {
			d.Estimate = was.Estimate
			if d.Cost == nil {
				d.Cost = was.Cost
			}
		}
		return d
	}
	return now
}

func encode(p event.Payload) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(p)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}

// what names the differing member of an event for people.
func what(p event.Payload, path string) string {
	member, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch p.(type) {
	case event.ToolCall, event.ApprovalRequested:
		if member == "args" {
			return "arguments differ"
		}
	case event.ToolInputEnd:
		if member == "input" {
			return "checked arguments differ"
		}
	case event.RunFinished:
		return "the end differs in " + member
	case event.ModelRequest:
		switch member {
		case "noTools":
			return "the request differs in whether tools are forbidden"
		case "summary":
			return "the request differs in whether it asks for a summary"
		case "messages":
			return "the request differs in how many messages there are"
		}
		return "the request differs in " + member
	case event.ModelResponse:
		return "the answer differs in " + member
	case event.UserMessage, event.MessageReceived:
		return "what the model is told differs"
	case event.PolicyDecision:
		return "the decision differs in " + member
	case event.ToolResult, event.ToolError:
		return "the result differs in " + member
	case event.Warning:
		return "warnings differ"
	}
	if member == "" {
		return string(p.Type()) + " differs"
	}
	return string(p.Type()) + " differs in " + member
}

// firstDifference finds the first member in which two JSON values differ, as a
// JSON pointer, and both sides of it. Arguments are shown as a whole.
func firstDifference(a, b []byte) (path, was, is string) {
	x, errA := read(a)
	y, errB := read(b)
	if errA != nil || errB != nil {
		return "", string(a), string(b)
	}
	path, xv, yv := descend("", x, y)
	return path, show(xv), show(yv)
}

func read(b []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return v, d.Decode(&v)
}

// absent represents a missing member.
type absent struct{}

// missing represents a member that only the other side has.
func missing(other any) any {
	if _, ok := other.(bool); ok {
		return false
	}
	return absent{}
}

func descend(path string, a, b any) (string, any, any) {
	if path == "/args" || path == "/input" {
		return path, a, b
	}
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			return path, a, b
		}
		all := maps.Clone(x)
		maps.Copy(all, y)
		for _, k := range slices.Sorted(maps.Keys(all)) {
			xv, inX := x[k]
			yv, inY := y[k]
			switch {
			case !inX:
				return path + "/" + k, missing(yv), yv
			case !inY:
				return path + "/" + k, xv, missing(xv)
			case !equal(xv, yv):
				return descend(path+"/"+k, xv, yv)
			}
		}
	case []any:
		y, ok := b.([]any)
		if !ok {
			return path, a, b
		}
		for i := range min(len(x), len(y)) {
			if !equal(x[i], y[i]) {
				return descend(fmt.Sprintf("%s/%d", path, i), x[i], y[i])
			}
		}
	}
	return path, a, b
}

func equal(a, b any) bool { return show(a) == show(b) }

func show(v any) string {
	if _, ok := v.(absent); ok {
		return "nothing"
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSuffix(buf.String(), "\n")
}

// mostBefore and mostShown are how much of a long value is shown before the
// first difference, and in all.
const mostBefore, mostShown = 40, 160

// Around shortens two values to the text around their first difference.
func Around(a, b string) (string, string) {
	if len(a) <= mostShown && len(b) <= mostShown {
		return a, b
	}
	same := 0
	for same < len(a) && same < len(b) && a[same] == b[same] {
		same++
	}
	from := max(0, same-mostBefore)
	for from > 0 && from < len(a) && !utf8.RuneStart(a[from]) {
		from--
	}
	return window(a, from), window(b, from)
}

func window(s string, from int) string {
	from = min(from, len(s))
	to := min(from+mostShown, len(s))
	for to < len(s) && to > from && !utf8.RuneStart(s[to]) {
		to--
	}
	out := s[from:to]
	if from > 0 {
		out = "…" + out
	}
	if to < len(s) {
		out += "…"
	}
	return out
}
