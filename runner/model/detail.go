package model

import (
	"encoding/json"
	"strings"
	"time"
)

// details reads what an error of Google's APIs says for programs: the reasons, the
// quotas that are used up, and how long to wait.
func details(raw []byte) (words string, wait time.Duration) {
	var e struct {
		Details []struct {
			Reason     string
			RetryDelay string
			Violations []struct{ QuotaID string }
		}
	}
	if json.Unmarshal(raw, &e) != nil {
		return "", 0 // a list of another shape is another server's
	}
	var all []string
	for _, d := range e.Details {
		if d.Reason != "" {
			all = append(all, d.Reason)
		}
		for _, v := range d.Violations {
			all = append(all, v.QuotaID)
		}
		if n, err := time.ParseDuration(d.RetryDelay); err == nil {
			wait = max(wait, n)
		}
	}
	return strings.Join(all, " "), wait
}

// onlyError returns the error in a list that holds nothing else, which is how
// Google answers those who asked for a stream; nil for any other body.
func onlyError(body []byte) json.RawMessage {
	var list []struct{ Error json.RawMessage }
	var whole []json.RawMessage
	if json.Unmarshal(body, &list) != nil || len(list) != 1 || list[0].Error == nil || json.Unmarshal(body, &whole) != nil {
		return nil
	}
	return whole[0]
}

// badKey says that the key is no key: Google answers it with 400.
func (f Fault) badKey() bool { return strings.Contains(f.Detail, "API_KEY_INVALID") }

// perDay says that what is used up comes back tomorrow. The quotas of a minute
// come back within the wait that the server asks for.
func (f Fault) perDay() bool { return strings.Contains(f.Detail, "PerDay") }
