package loop

import (
	"testing"

	"agentctl.dev/agentctl/api/message"
)

func TestRequestsWithoutAnAnswerAreCounted(t *testing.T) {
	said := func(err message.Error, u message.Usage, guess *message.Usage) *message.Message {
		return &message.Message{Role: message.RoleAssistant, Error: err, Usage: u, Estimate: guess, Time: message.Time{Completed: 1}}
	}
	void := said(message.Void, message.Usage{}, nil)
	for name, c := range map[string]struct {
		reason   string
		messages []*message.Message
		want     int64
	}{
		"none":        {"nothing was lost", []*message.Message{user("go"), said("", message.Usage{Input: 100, Output: 5}, nil)}, 0},
		"counted":     {"the same request was sent again", []*message.Message{user("go"), void, void, said("", message.Usage{Input: 60, CacheRead: 40, Output: 5}, nil)}, 200},
		"not counted": {"its estimate", []*message.Message{user("go"), void, said("", message.Usage{}, &message.Usage{Input: 70, Output: 9})}, 70},
		"the last":    {"it is sent again next", []*message.Message{user("go"), void, said("", message.Usage{Input: 100}, nil), user("on"), void, void}, 100 + 2*30},
		"stopped":     {"an answer that a person stopped is counted as it is", []*message.Message{user("go"), said(message.Aborted, message.Usage{Input: 100}, nil)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lostRequests(c.messages, 30); got != (message.Usage{Input: c.want}) {
				t.Errorf("%s: got %+v, want %d", c.reason, got, c.want)
			}
		})
	}
}
