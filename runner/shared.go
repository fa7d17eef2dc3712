package runner

import "agentctl.dev/agentctl/runner/policy"

// Shared is what the runs of one process can have in common, so that a thousand
// of them do not hold the same thing a thousand times. The zero value is ready
// and may be used by many runs at once.
type Shared struct{ policies policy.Shared }

// rules are the policies that were compiled already; nil shares nothing.
func (s *Shared) rules() *policy.Shared {
	if s == nil {
		return nil
	}
	return &s.policies
}
