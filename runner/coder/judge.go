package coder

import (
	"cmp"
	"fmt"
	"strings"

	"agentctl.dev/agentctl/api/message"
)

// judge says how an execution ended. An exit code of 0 alone proves nothing: completed is
// exit code 0, the event that ends a whole answer, and an answer that is not empty.
//
//	exit code   ended its answer   answer   outcome
//	0           yes                some     completed
//	1           yes                some     completed, with a warning: it went on after an error
//	0           no, or empty       -        denied, if it has refused what its model asked for; otherwise incomplete
//	other       -                  -        failed
//	-           ended at a limit   -        timeout, or failed
func (e *Ended) judge(why cut, refused string, l Limits) {
	s := &e.Said
	answered := s.Done && strings.TrimSpace(s.Text) != ""
	end := e.Exit.String()
	switch {
	case why == cancelled:
		e.Outcome, e.Why = message.CodingFailed, "the call was cancelled"
	case why == wallOver:
		e.Outcome, e.Why = message.CodingTimeout, fmt.Sprintf("it was ended after %s", l.Wall)
	case why == silent:
		e.Outcome, e.Why = message.CodingTimeout, fmt.Sprintf("it has printed no event within %s%s", l.First, quoted(e.Stderr))
	case why == flooded:
		e.Outcome, e.Why = message.CodingFailed, fmt.Sprintf("it has printed more than %d bytes", l.Log)
	case answered && e.Exit == Exit{}:
		e.Outcome = message.CodingCompleted
	case answered && e.Exit.Code == 1 && e.Exit.Signal == "":
		e.Outcome = message.CodingCompleted
		e.Warning = "it ended with exit code 1 after a complete answer" + because(s.Error)
	case refused != "":
		e.Outcome, e.Why = message.CodingDenied, refused
	case e.Exit == Exit{} && s.Denied:
		e.Outcome, e.Why = message.CodingDenied, "it has refused what its model asked for, and ended without an answer"
	case e.Exit == Exit{}:
		e.Outcome, e.Why = message.CodingIncomplete, end+" without a complete answer"+because(s.Error)
	case !s.Began:
		e.Outcome, e.Why = message.CodingFailed, end+" without an event"+quoted(e.Stderr)
	default:
		e.Outcome, e.Why = message.CodingFailed, end+cmp.Or(because(s.Error), quoted(e.Stderr))
	}
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + Clip(why, 500)
}

// quoted is the last line of what a program has said about its failure.
func quoted(p Printed) string {
	lines := strings.Split(strings.TrimSpace(string(p.Kept)), "\n")
	return because(strings.TrimSpace(lines[len(lines)-1]))
}
