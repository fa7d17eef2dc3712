package policy

import (
	"context"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// Masked returns those files that no call may read, even with an approval: a sandbox hides
// them from all programs. A file that a person could allow is not among them. Files are
// named relative to the workspace.
func (e *Engine) Masked(ctx context.Context, files []string) ([]string, error) {
	return e.union(func(e *Engine) ([]string, error) { return e.maskedOwn(ctx, files) })
}

func (e *Engine) maskedOwn(ctx context.Context, files []string) ([]string, error) {
	if !e.reader.enforced.byPath && !e.reader.enforced.listed {
		return nil, nil
	}
	r, err := e.reading(ctx)
	if err != nil {
		return nil, err
	}
	var masked []string
	for _, name := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if o, more := r.of(ctx, e.context.Workspace.resolve(name, opRead)); more && o.action == v1alpha1.ActionDeny {
			masked = append(masked, name)
		}
	}
	return masked, nil
}
