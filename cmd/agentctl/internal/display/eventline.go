package display

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// mostText is how much of a text a line about an event shows where nothing else
// bounds it.
const mostText = 240

// EventLine shows an event as a line: number, time, type and what it is about.
// Pieces of what comes whole a little later have none.
func EventLine(s *Screen, e event.Event) error { return eventLine(s, e, "") }

// eventLine is EventLine with a mark before what the event is about.
func eventLine(s *Screen, e event.Event, mark string) error {
	switch d := e.Data.(type) {
	case event.TextStart, event.TextDelta, event.ReasoningStart, event.ReasoningDelta, event.ToolInputStart, event.ToolInputDelta:
		return s.Err()
	case event.ToolProgress:
		if d.Title == "" && len(d.Metadata) == 0 {
			return s.Err()
		}
	}
	head := fmt.Sprintf("%5d  %s  ", e.Seq, e.Time.Local().Format("15:04:05.000")) + s.paint(eventStyle(e), pad(Line(string(e.Type())), 19))
	about := Line(about(e)) // a journal may be anybody's
	if e.Call != "" {
		about = strings.TrimSuffix(s.paint(dim, Line(e.Call))+"  "+about, "  ")
	}
	s.print(strings.TrimRight(fit(head+" "+mark+fit(about, mostText), s.width()), " ") + "\n")
	return s.Err()
}

// EventJSON shows an event as it is in the journal.
func EventJSON(s *Screen, e event.Event) error {
	line, err := e.AppendJSON(nil)
	if err != nil {
		return err
	}
	_, err = objects{s, s.TTY}.Write(append(line, '\n'))
	return err
}

func eventStyle(e event.Event) style {
	switch d := e.Data.(type) {
	case event.RunFinished:
		return phaseStyle(d.Phase)
	case event.ToolError, event.ModelRetry:
		return red
	case event.ApprovalRequested, event.QuestionAsked, event.Warning:
		return yellow
	}
	return ""
}

// about is the content of an event, on one line.
func about(e event.Event) string {
	switch d := e.Data.(type) {
	case event.RunStarted:
		return join("agent "+Line(d.Agent), modelName(d.Model), Line(d.Prompt))
	case event.RunResumed:
		if t := d.Turn; t != nil {
			return join("turn "+strconv.Itoa(t.Number), "agent "+Line(t.Agent), modelName(t.Model), Line(t.Prompt))
		}
		return "attempt " + strconv.Itoa(d.Attempt)
	case event.RunFinished:
		return join(Line(d.Phase), Line(d.Reason), "exit code "+strconv.Itoa(d.ExitCode), plural(int64(d.Steps), "step"), Line(d.Message))
	case event.UserMessage:
		return Line(d.Text)
	case event.ToolProgress:
		return join(Line(d.Title), Line(string(d.Metadata)))
	case event.MessageReceived:
		return join(Line(d.By), Line(d.Text))
	case event.StepStart:
		return "step " + strconv.Itoa(d.Step)
	case event.StepFinish:
		return join("step "+strconv.Itoa(d.Step), string(d.Finish))
	case event.TextEnd:
		return Line(d.Text)
	case event.ReasoningEnd:
		return Line(d.Text)
	case event.Warning:
		return Line(d.Message)
	case event.WorkspaceSnapshot:
		if d.Step > 0 {
			return join("step "+strconv.Itoa(d.Step), plural(int64(d.Changed), "change"), Line(d.Error))
		}
		return plural(int64(d.Files), "file") + ", " + plural(d.Bytes, "byte")
	case event.WorkspacePatch:
		return join(plural(int64(len(d.Files)+d.Omitted), "changed file"), Line(d.Error))
	case event.WorkspaceApplied:
		return join(plural(int64(d.Files), "changed file"), Line(d.Source), Line(d.By))
	case event.RunReverted:
		return join("to "+Line(d.To), plural(int64(d.Changed), "changed file"), Line(d.By))
	case event.PublishItem:
		return join(Line(d.Name), string(d.State), Line(d.Target), Line(d.URL), Line(d.Error), Line(d.By))
	case event.SecretResolved:
		return join(Line(d.From+" "+d.Name), Line(d.Model+d.Tool), Line(d.Field))
	case event.EgressConnection:
		return join(string(d.Decision), Line(d.Host)+":"+strconv.Itoa(d.Port), Line(d.Rule), Line(d.Error))
	case event.Unknown:
		return Line(string(d.Raw))
	}
	return aboutModel(e)
}

func aboutModel(e event.Event) string {
	switch d := e.Data.(type) {
	case event.ModelRequest:
		return join("step "+strconv.Itoa(d.Step), plural(int64(d.Messages), "message"))
	case event.ModelResponse:
		return join(modelName(d.Model), string(d.Finish), plural(d.Tokens.Total(), "token"), cost(d.Cost), duration(time.Duration(d.DurationMs)*time.Millisecond))
	case event.ModelRetry:
		return retry(d.Retry)
	case event.ContextPrune:
		return plural(int64(len(d.Calls)), "old call") + ", " + count(d.Before) + " → " + count(d.After) + " tokens"
	case event.ContextCompaction:
		return count(d.Before) + " → " + count(d.After) + " tokens, " + cost(d.Cost)
	}
	return aboutCall(e)
}

func aboutCall(e event.Event) string {
	switch d := e.Data.(type) {
	case event.ToolInputEnd:
		return join(Line(d.Tool), title(&message.ToolPart{Input: d.Input, Raw: d.Raw}))
	case event.PolicyDecision:
		return join(string(d.Action), Line(d.Rule), Line(d.Risk), Line(d.Message))
	case event.ApprovalRequested:
		return join(Line(d.Tool), Line(d.Rule), Line(d.Message))
	case event.ApprovalDecided:
		ends := ""
		if d.EndRun {
			ends = "ends the run"
		}
		return join(string(d.State), Line(d.By), ends, Line(d.Reason))
	case event.QuestionAsked:
		return join(Line(d.Text), Line(strings.Join(d.Options, " | ")))
	case event.QuestionAnswered:
		return join(string(d.State), Line(d.Answer), Line(d.By), Line(d.Reason))
	case event.ToolCall:
		return join(Line(d.Tool), title(&message.ToolPart{Input: d.Args}))
	case event.ToolResult:
		return result(&d.ToolResult)
	case event.ToolError:
		return result(&d.ToolResult)
	}
	return ""
}

func result(r *message.ToolResult) string {
	code := Line(string(r.Code))
	if r.ExitCode != nil {
		code = strings.TrimSpace(code + " exit " + strconv.Itoa(*r.ExitCode))
	}
	code = join(code, Line(r.Record.Excess("")))
	text := r.Output
	if text == "" {
		text = r.Text
	}
	return join(code, duration(time.Duration(r.DurationMicros)*time.Microsecond), Line(r.Title), Line(text))
}

// join puts what is not empty on a line.
func join(words ...string) string {
	var some []string
	for _, w := range words {
		if w != "" {
			some = append(some, w)
		}
	}
	return strings.Join(some, " · ")
}
