package control

import (
	"strings"
	"testing"
	"unicode/utf8"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
)

func TestMoneyIsRoundedUpToMillionths(t *testing.T) {
	for pico, want := range map[int64]v1alpha1.Money{
		0: "0.00", 1: "0.000001", 1_000_000: "0.000001", 1_000_001: "0.000002", 104_000_000: "0.000104",
		2_000_000_000_000: "2.00", 1_500_000_000_000: "1.50",
	} {
		got := money(pico)
		if got != want {
			t.Errorf("%d picodollars are %s, want %s", pico, got, want)
		}
		if _, err := got.Micros(); err != nil {
			t.Errorf("%s is not an amount: %v", got, err)
		}
	}
}

func TestAStatusHoldsNoMoreThanItMay(t *testing.T) {
	cost := message.Cost(5)
	v := &view.Run{ID: "r", Phase: view.Succeeded, Steps: 2, Unpriced: true, LastSeq: 9, PendingApprovals: []string{"a"}, Finished: &event.RunFinished{
		Output: strings.Repeat("ä", 1000), Cost: &cost,
	}}
	s := project(v, "/dir", "sha256:x")
	if len(s.Output) > maxOutput || !utf8.ValidString(s.Output) || !strings.HasSuffix(s.Output, "ä…") {
		t.Errorf("the output is %d bytes and ends in %q", len(s.Output), s.Output[len(s.Output)-6:])
	}
	if s.Cost != "0.000001" || s.PendingApprovals != 1 || s.Journal.LastSeq != 9 || s.Journal.HeadHash != "sha256:x" {
		t.Errorf("the status is %+v", s)
	}
	v.Finished.Cost = nil
	if s := project(v, "", ""); s.Cost != "" {
		t.Errorf("a cost that is not known is shown as %s", s.Cost)
	}
}
