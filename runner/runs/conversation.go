package runs

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"agentctl.dev/agentctl/api/message"
)

// Said is one thing that was said or done in a run.
type Said struct {
	// Kind is Prompt, Answer, Call or Result.
	Kind    string `json:"kind"`
	Message string `json:"message"`
	// Call, Tool and Step of a call or a result.
	Call string `json:"call,omitempty"`
	Tool string `json:"tool,omitempty"`
	Step int    `json:"step,omitempty"`
	// Text is what was said, the arguments or the output; a long one is cut around the first
	// difference.
	Text string `json:"text"`

	call *message.ToolPart
}

// Kinds of what was said.
const (
	SaidPrompt = "Prompt"
	SaidAnswer = "Answer"
	SaidCall   = "Call"
	SaidResult = "Result"
)

// Divergence is the first thing that two runs have not in common.
type Divergence struct {
	// Same is how many things before are the same.
	Same int `json:"same"`
	// A and B are what each has there; nil where it has nothing more.
	A *Said `json:"a"`
	B *Said `json:"b"`
}

// conversation lists what was said and done until the place, without what was taken back.
func (s *side) conversation() (all []Said) {
	v := s.at.Before
	for _, m := range v.Messages {
		if m.Error != "" {
			continue
		}
		kind := SaidAnswer
		if m.Role == message.RoleUser {
			kind = SaidPrompt
		}
		if text := m.Text(); text != "" || kind == SaidPrompt {
			all = append(all, Said{Kind: kind, Message: m.ID, Text: s.plain(text)})
		}
		calls := m.Calls()
		for _, c := range calls {
			args := string(c.Input)
			if args == "" {
				args = c.Raw
			}
			all = append(all, Said{Kind: SaidCall, Message: m.ID, Call: c.CallID, Tool: c.Tool, Step: v.Step(c.CallID), Text: s.plain(ordered(args)), call: c})
		}
		for _, c := range calls {
			if c.Result == nil {
				continue
			}
			all = append(all, Said{Kind: SaidResult, Message: m.ID, Call: c.CallID, Tool: c.Tool, Step: v.Step(c.CallID), Text: s.plain(resultOf(c.Result))})
		}
	}
	return all
}

// resultOf is what a call brought back, without how long it took.
func resultOf(r *message.ToolResult) string {
	text := r.Output
	if text == "" && r.Code != "" {
		text = r.Text
	}
	if r.ExitCode != nil && *r.ExitCode != 0 {
		text = fmt.Sprintf("[exit code %d] ", *r.ExitCode) + text
	}
	return text
}

// workspaceName stands for the folder of a run in what is compared: it has the run's id in it.
const workspaceName = "${workspace}"

func (s *side) plain(text string) string {
	if dir := s.at.Begin.Workspace.Dir; dir != "" {
		return strings.ReplaceAll(text, dir, workspaceName)
	}
	return text
}

// ordered is JSON with its members in order, any other text as it is.
func ordered(args string) string {
	d := json.NewDecoder(strings.NewReader(args))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return args
	}
	b := &strings.Builder{}
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return args
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// diverge finds the first difference; nil for none.
func diverge(a, b []Said) *Divergence {
	same := 0
	for same < len(a) && same < len(b) && a[same].Kind == b[same].Kind && a[same].Tool == b[same].Tool && a[same].Text == b[same].Text {
		same++
	}
	if same == len(a) && same == len(b) {
		return nil
	}
	d := &Divergence{Same: same}
	x, y := "", ""
	if same < len(a) {
		one := a[same]
		d.A, x = &one, one.Text
	}
	if same < len(b) {
		one := b[same]
		d.B, y = &one, one.Text
	}
	at := 0
	for at < len(x) && at < len(y) && x[at] == y[at] {
		at++
	}
	if d.A != nil {
		d.A.Text = around(x, at)
	}
	if d.B != nil {
		d.B.Text = around(y, at)
	}
	return d
}

// Limits of a text that is shown: how much before the first difference, and in all.
const (
	mostBefore = 200
	mostShown  = 4 << 10
)

// around is the part of a text around a place in it.
func around(text string, at int) string {
	if len(text) <= mostShown {
		return text
	}
	from := max(0, min(at, len(text))-mostBefore)
	for from > 0 && from < len(text) && !utf8.RuneStart(text[from]) {
		from--
	}
	to := min(from+mostShown, len(text))
	for to < len(text) && to > from && !utf8.RuneStart(text[to]) {
		to--
	}
	out := text[from:to]
	if from > 0 {
		out = "…" + out
	}
	if to < len(text) {
		out += "…"
	}
	return out
}

// DecisionPair is two decisions about the same call.
type DecisionPair struct {
	Tool string `json:"tool"`
	// Args are those that both calls have, as text.
	Args string  `json:"args"`
	A    Decided `json:"a"`
	B    Decided `json:"b"`
}

// Decided is a decision, and the answer of a person.
type Decided struct {
	Call     string                `json:"call"`
	Step     int                   `json:"step"`
	Decision message.Action        `json:"decision"`
	Rule     string                `json:"rule"`
	Answer   message.ApprovalState `json:"answer,omitempty"`
}

// decisionPairs lists the calls that both have made, in order, and about which was decided
// differently. The first of several equal calls is compared with the first, and so on.
func decisionPairs(a, b []Said) (all []DecisionPair) {
	key := func(s *Said) string { return s.Tool + "\x00" + s.Text }
	others := map[string][]*Said{}
	for i := range b {
		if s := &b[i]; s.call != nil && s.call.Decision != nil {
			others[key(s)] = append(others[key(s)], s)
		}
	}
	for i := range a {
		s := &a[i]
		if s.call == nil || s.call.Decision == nil || len(others[key(s)]) == 0 {
			continue
		}
		o := others[key(s)][0]
		others[key(s)] = others[key(s)][1:]
		x, y := decided(s), decided(o)
		if x.Decision != y.Decision || x.Answer != y.Answer {
			all = append(all, DecisionPair{Tool: s.Tool, Args: around(s.Text, 0), A: x, B: y})
		}
	}
	return all
}

func decided(s *Said) Decided {
	d := s.call.Decision
	return Decided{Call: s.Call, Step: s.Step, Decision: d.Action, Rule: d.Rule, Answer: s.call.Approval}
}
