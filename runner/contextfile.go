package runner

import (
	"context"
	"fmt"

	"agentctl.dev/agentctl/runner/policy"
)

// admitContext judges the agent's context files as if read were called for them.
// Nobody can be asked yet: a file that would be asked about is left out, and the
// run says so.
func (s *session) admitContext(ctx context.Context) func(file, text string) (string, bool) {
	if len(s.Agent.Spec.ContextFiles) == 0 || len(s.compiled) == 0 {
		return nil
	}
	engine := policy.NewEngine(s.compiled, s.standing())
	return func(file, text string) (string, bool) {
		text, err := engine.Load(ctx, file, text)
		if err != nil {
			s.leaveOut(file, err)
		}
		return text, err == nil
	}
}

func (s *session) leaveOut(file string, err error) {
	s.warnings = append(s.warnings, fmt.Sprintf("context file %s is left out: %s", file, err))
}
