package fork

import (
	"fmt"

	"agentctl.dev/agentctl/runner/moment"
)

// OutsideError reports that a run that is forked has done something outside.
type OutsideError struct {
	Run     string
	Effects []moment.Effect
}

func (e *OutsideError) Error() string {
	text := fmt.Sprintf("run %s cannot be forked there: before that it has had effects outside, which stay:", e.Run)
	for i, effect := range e.Effects {
		if i == 20 {
			return text + fmt.Sprintf("\n  and %d more", len(e.Effects)-i)
		}
		text += "\n  " + effect.Text
	}
	return text
}

// Notice says for people where a fork comes from, and what stays done.
func Notice(from string, m *moment.Moment, effects []moment.Effect) string {
	text := "forked from run/" + from
	switch {
	case m.Call != "":
		text += " before call " + m.Call
	case m.Message != "":
		text += " before message " + m.Message
	}
	for _, e := range effects {
		text += "; stays done: " + e.Text
	}
	return text
}
