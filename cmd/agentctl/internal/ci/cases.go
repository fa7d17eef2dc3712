package ci

import (
	"strings"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/cmd/agentctl/internal/junit"
)

// problem is why a run has not succeeded, in one line; "" if it has.
func problem(r *view.Result) string {
	if r.Phase == view.Succeeded {
		return ""
	}
	return clip(strings.TrimSuffix(r.Reason+": "+line(r.Message), ": "), maxMessage)
}

// cases is a run as test results: a case for the run itself, one for each call that was
// judged, and one for each evidence.
//
//	case      fails                                          is skipped
//	run       the run has not succeeded                      never
//	call      it was refused, and the run failed for that    it was refused, and the run continued
//	evidence  it is missing                                  never
func cases(r *view.Result) ([]byte, error) {
	name := "agent/" + line(r.Agent)
	suite := junit.Suite{Name: name}
	whole := junit.Case{Name: "run", Class: name, Time: junit.Seconds(r.DurationMs * 1000)}
	if p := problem(r); p != "" {
		whole.Failure = &junit.Failure{Message: p, Text: p}
	}
	suite.Cases = append(suite.Cases, whole)
	fails := r.Reason == string(reason.Denied) || r.Reason == string(reason.ApprovalRequired)
	for i := range r.ToolCalls {
		c := &r.ToolCalls[i]
		if c.Decision == nil {
			continue
		}
		one := junit.Case{Name: callName(c), Class: name + "/calls", Time: junit.Seconds(c.DurationMs * 1000)}
		if why := refusal(c); why != "" && fails {
			one.Failure = &junit.Failure{Message: why, Text: why}
		} else if why != "" {
			one.Skipped = &junit.Skipped{Message: why}
		}
		suite.Cases = append(suite.Cases, one)
	}
	for _, e := range r.Evidence {
		one := junit.Case{Name: line(e.Name), Class: name + "/evidence", Time: junit.Seconds(0)}
		if !e.Met {
			one.Failure = &junit.Failure{Message: line(e.Message), Text: prose(e.Message)}
		}
		suite.Cases = append(suite.Cases, one)
	}
	suite.Sum(r.DurationMs * 1000)
	return junit.Marshal([]junit.Suite{suite})
}

// callName is what a call is about, with its id, since calls may be the same.
func callName(c *view.CallResult) string {
	const most = 160
	return clip(line(c.Tool)+" "+line(string(c.Args)), most) + " (" + line(c.ID) + ")"
}

// refusal is why a call was not allowed to run; "" if it was.
func refusal(c *view.CallResult) string {
	if c.Error == nil || *c.Error != "denied" && *c.Error != "rejected" {
		return ""
	}
	why := "refused"
	if c.Rule != nil {
		why += " by " + line(*c.Rule)
	}
	if c.Source != nil {
		why += " (" + line(*c.Source) + ")"
	}
	if c.Approval != nil {
		why += ", the question was " + line(*c.Approval)
	}
	return why
}
