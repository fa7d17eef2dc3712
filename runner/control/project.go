package control

import (
	"fmt"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
)

// maxOutput bounds the part of an answer that a status shows.
const maxOutput = 1024

// project is a run as its object shows it.
func project(v *view.Run, dir, head string) v1alpha1.RunStatus {
	s := v1alpha1.RunStatus{
		Phase: v1alpha1.Phase(v.Phase), Steps: int32(v.Steps),
		Tokens: &v1alpha1.TokenCount{
			Input: v.Tokens.Input, Output: v.Tokens.Output, Reasoning: v.Tokens.Reasoning, CacheRead: v.Tokens.CacheRead, CacheWrite: v.Tokens.CacheWrite,
		},
		ChangedFiles: int32(len(v.Changes.Files)), PendingApprovals: int32(len(v.PendingApprovals)),
		Journal: &v1alpha1.JournalStatus{Path: dir, LastSeq: v.LastSeq, HeadHash: head},
	}
	if n := v.Counted; n != (message.CallCounts{}) {
		s.Calls = &v1alpha1.CallCount{Done: int32(n.Done), Refused: int32(n.Refused), Asked: int32(n.Asked), Repaired: int32(n.Repaired)} //nolint:gosec // a run has fewer
	}
	if !v.Unpriced && !v.Uncounted {
		s.Cost = money(int64(v.Cost))
	}
	if f := v.Finished; f != nil {
		s.Output = cut(f.Output, maxOutput)
		if s.Cost = ""; f.Cost != nil {
			s.Cost = money(int64(*f.Cost))
		}
	}
	return s
}

// money is picodollars as a status shows them, rounded up to millionths.
func money(pico int64) v1alpha1.Money {
	const perMicro, micros = 1_000_000, 1_000_000
	n := (pico + perMicro - 1) / perMicro
	whole, frac := n/micros, strings.TrimRight(fmt.Sprintf("%06d", n%micros), "0")
	for len(frac) < 2 {
		frac += "0"
	}
	return v1alpha1.Money(fmt.Sprintf("%d.%s", whole, frac))
}

// cut shortens a text to whole characters.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const more = "…"
	return strings.ToValidUTF8(text[:most-len(more)], "") + more
}
