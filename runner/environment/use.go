package environment

import (
	"context"
	"errors"

	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/secret"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/workspace"
)

// UseOptions name a tool that is used without a run.
type UseOptions struct {
	// ID labels what is started; Dir is the folder whose files the tool sees.
	ID, Dir string
	Tool    tool.Definition
	// LeftOut and Ask are those of tool.Pool.
	LeftOut func(of string, all []tool.Omission)
	Ask     func(ctx context.Context, call string, q host.Question) (string, error)
}

// Use isolates a tool as a run does, resolves its secrets, and hands it to a function with
// what removes the secrets from a text. There is no policy: the tool sees every file of the
// folder. Its programs have ended when Use returns.
func (h *Host) Use(ctx context.Context, o UseOptions, use func(ctx context.Context, p *tool.Pool, hide *secret.Redactor) error) error {
	tools := []tool.Definition{o.Tool}
	if err := h.site.Require(ctx, tools); err != nil {
		return err
	}
	secrets, err := h.resolve(ctx, &Options{Tools: tools})
	if err != nil {
		return err
	}
	profiles, err := h.profiles(tools, workspace.Spec{Dir: o.Dir})
	if err != nil {
		return err
	}
	pool := h.pool(tool.PoolOptions{
		Run: o.ID, Dir: o.Dir, Profiles: profiles, Env: secrets.env, Secrets: secrets.sources, Learn: secrets.learn, Reveals: secrets.revealed,
		LeftOut: o.LeftOut, Ask: o.Ask,
		Guard: func(context.Context) (readOnly, masked []string, err error) { return nil, nil, nil },
	})
	return errors.Join(use(ctx, pool, secrets.Redactor), pool.Close())
}
