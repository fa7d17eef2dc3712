package loop

import (
	"fmt"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

// Answer is what the final answer must be.
type Answer struct {
	// Check returns what is wrong with an answer, which must be JSON that satisfies a
	// schema, "" when nothing is; nil accepts every answer.
	Check func(text string) string
	// Value returns what of an accepted answer is the output of the run; nil: all
	// of it.
	Value func(text string) string
	// Retries is how often the model may correct an invalid answer.
	Retries int
	// FailOnDenied ends a completed run as Denied when a call was refused.
	FailOnDenied bool
}

func sentence(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// answered is the exit test of an answer without calls. A nil End asks the
// model again.
func (l *loop) answered(out *message.Output) (*End, error) {
	if end := l.brokenOff(out); end != nil {
		return end, nil
	}
	switch {
	case out.Finish == message.FinishLength && l.guard.cutShort(out.Text):
		return &End{
			Reason: reason.LoopDetected, Message: "the model repeated itself until its answer was cut at the model's output limit",
			Hint: repeatedHint,
		}, nil
	case out.Finish == message.FinishLength:
		return &End{
			Reason: reason.OutputTruncated, Message: "the answer was cut at the model's output limit",
			Hint: "raise spec.parameters.maxOutputTokens of the Model",
		}, nil
	case strings.TrimSpace(out.Text) == "":
		return l.noAnswer(), nil
	}
	l.emptyBefore = false
	if l.Answer.Check != nil {
		if wrong := l.Answer.Check(out.Text); wrong != "" {
			return l.correct(wrong)
		}
	}
	output, structured := out.Text, l.Answer.Check != nil
	if l.Answer.Value != nil {
		output = l.Answer.Value(output)
	}
	if l.Answer.FailOnDenied && (l.refused || l.unanswered) {
		end := l.refusedEnd("a call was refused and --fail-on-denied is set")
		end.Output, end.Structured = output, structured
		return end, nil
	}
	if l.nothingAllowed() {
		return &End{
			Reason: reason.Denied, Message: "every call that was judged was refused or not answered, and none ran",
			Hint: "see the rules that refused the calls; add an allow rule for what the agent needs, or answer with --approve", Output: output, Structured: structured,
		}, nil
	}
	return &End{Reason: reason.Completed, Output: output, Structured: structured}, nil
}

// nothingAllowed reports whether calls were judged and none of them was
// executed: whatever the model answers then, it could not do its work. A call
// that ran and failed was not refused.
func (l *loop) nothingAllowed() bool {
	judged := false
	for _, m := range l.View.Said() {
		if m.Role != message.RoleAssistant { // what the prompt asks for is not the agent's work
			continue
		}
		for _, c := range m.Calls() {
			switch {
			case c.Start != 0:
				return false
			case c.Refused():
				judged = true
			case c.Decision != nil:
				return false
			}
		}
	}
	return judged
}

// noAnswer ends the run after the second empty answer in a row; the first may
// be a hiccup of the endpoint.
func (l *loop) noAnswer() *End {
	if !l.emptyBefore && (l.Limits.MaxSteps == 0 || l.View.TurnSteps() < l.Limits.MaxSteps) {
		l.emptyBefore = true
		return nil
	}
	if l.refused || l.unanswered {
		return l.refusedEnd("the model gave no final answer after a call was refused")
	}
	return &End{
		Reason: reason.NoFinalAnswer, Message: "the model stopped without a final answer",
		Hint: "tell the agent in spec.instructions to end with an answer",
	}
}

func (l *loop) refusedEnd(message string) *End {
	if l.unanswered {
		return &End{
			Reason: reason.ApprovalRequired, Message: message,
			Hint: "add an allow rule for the call, or answer with --approve",
		}
	}
	return &End{Reason: reason.Denied, Message: message, Hint: "see the rule that refused the call"}
}

// correct sends the model the errors in its answer, or gives up.
func (l *loop) correct(wrong string) (*End, error) {
	if l.corrections >= l.Answer.Retries {
		return &End{
			Reason: reason.OutputInvalid, Message: "the final answer does not satisfy output.schema: " + wrong,
			Hint: "raise spec.output.retries of the agent, or ask for less in spec.output.schema",
		}, nil
	}
	l.corrections++
	if err := l.remember(l.current); err != nil {
		return nil, err
	}
	text := "The answer does not satisfy the required schema:\n" + wrong + "\nAnswer again with the corrected JSON only."
	if err := l.record(event.Event{Message: l.NewID("msg"), Part: l.NewID("part"), Data: event.UserMessage{Text: text, Synthetic: true, Origin: &message.Origin{Kind: message.OriginRunner}}}); err != nil {
		return nil, err
	}
	return nil, l.remember(l.View.Message())
}

// outOfSteps ends a run whose steps are used up; the answer to the closing
// request is a partial output, never a completed run.
func (l *loop) outOfSteps(out *message.Output) *End {
	why := "the model still asked for tools"
	newest := l.View.Messages[max(0, len(l.View.Messages)-2):]
	if slices.ContainsFunc(newest, func(m *message.Message) bool { return posted(l.View, m) && !l.View.Begins(m) }) {
		why = "a message that was sent to the run needed one more"
	}
	return &End{
		Reason:  reason.MaxSteps,
		Message: sentence("limits.maxSteps is %d and %s", l.Limits.MaxSteps, why),
		Hint:    "raise spec.limits.maxSteps of the agent, or give it a smaller task",
		Output:  out.Text,
	}
}
