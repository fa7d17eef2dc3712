package plan

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/tool/skill"
)

// images is Images for an admission.
func (o *Options) images(ctx context.Context) func(ref string) (string, error) {
	if o.Images == nil {
		return nil
	}
	return func(ref string) (string, error) { return o.Images(ctx, ref) }
}

// unresolved is the error for manifests that make no plan: a mistake of the user, unless an
// image cannot be had.
func unresolved(err error) error {
	if known, ok := errors.AsType[*reason.Error](err); ok {
		return reason.New(known.Reason, "%w", err).WithHint("%s", known.Hint)
	}
	return &reason.UsageError{Err: err}
}

// FetchSkills ensures that the images of a recorded plan are on this host, the same as when
// the run began: their digests are in the plan.
func (p *Plan) FetchSkills(ctx context.Context, images func(ctx context.Context, ref string) (string, error)) error {
	if err := fetchSkills(ctx, p.Plan, images); err != nil {
		return err
	}
	for _, below := range p.Subagents {
		if err := fetchSkills(ctx, below, images); err != nil {
			return err
		}
	}
	return nil
}

func fetchSkills(ctx context.Context, p *admission.Plan, images func(ctx context.Context, ref string) (string, error)) error {
	for i := range p.Skills {
		e := &p.Skills[i]
		if e.Image == "" {
			continue
		}
		top, err := images(ctx, e.Image)
		if err != nil {
			return unresolved(fmt.Errorf("skill %q: %w", e.Name, err))
		}
		dir, err := skill.Within(top, e.Folder)
		if err != nil {
			return unresolved(fmt.Errorf("skill %q: %w", e.Name, err))
		}
		if e.Tool != "" && filepath.Clean(dir) != filepath.Clean(e.Dir) {
			return reason.New(reason.WorkspaceUnavailable, "skill %q: the run began with its script in %s, and it is in %s now", e.Name, e.Dir, dir).
				WithHint("move the state folder back, or begin a new run")
		}
		e.Dir = dir
	}
	return nil
}
