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
	return e.denied(ctx, e.reader, opRead, files)
}

// Fixed returns those files that no call of edit may change, even with an approval: a sandbox
// makes them read-only for all programs. Files are named as for Masked.
func (e *Engine) Fixed(ctx context.Context, files []string) ([]string, error) {
	return e.union(func(e *Engine) ([]string, error) { return e.fixedOwn(ctx, files) })
}

func (e *Engine) fixedOwn(ctx context.Context, files []string) ([]string, error) {
	editor := e.shipped(builtinEdit)
	if editor == nil {
		editor = e.judgedTool(&Tool{
			Name: builtinEdit, Builtin: builtinEdit, Source: "builtin", Risk: v1alpha1.RiskR1,
			Effects: []v1alpha1.Effect{v1alpha1.EffectRead, v1alpha1.EffectWrite}, Category: v1alpha1.CategoryEdit,
		}, e.policies)
	}
	if !editor.speaksOfPaths() {
		return nil, nil
	}
	return e.denied(ctx, editor, opWrite, files)
}

const builtinEdit = "edit"

// denied returns those files about which a tool is denied its operation because of the file:
// what is denied for every file says nothing about programs.
func (e *Engine) denied(ctx context.Context, by *judged, op string, files []string) ([]string, error) {
	r, err := e.judging(ctx, by, op)
	if err != nil {
		return nil, err
	}
	var denied []string
	for _, name := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if o, more := r.of(ctx, e.context.Workspace.resolve(name, op)); more && o.action == v1alpha1.ActionDeny {
			denied = append(denied, name)
		}
	}
	return denied, nil
}
