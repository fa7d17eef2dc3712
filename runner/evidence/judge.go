package evidence

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/expect"
	"agentctl.dev/agentctl/runner/workspace"
)

// Judge evaluates what an agent declares, over a run with its end. Blobs are those of the
// run; nil for a recording, which holds no files: what was found then counts for an
// expression that reads them.
func Judge(ctx context.Context, declared []v1alpha1.Evidence, s *expect.Set, v *view.Run, blobs workspace.Blobs, found []event.Evidence) ([]event.Evidence, error) {
	values := map[string]any{
		"result": Result(s, v), "calls": Calls(s, v), "decisions": Decisions(v), "prompt": v.Started.Prompt, "inputs": map[string]any{}, "events": []any{}, "children": []any{}, "files": map[string]any{},
	}
	if raw := v.Started.Inputs; len(raw) > 0 && string(raw) != "null" {
		inputs, err := s.Inputs(raw)
		if err != nil {
			return nil, fmt.Errorf("read the inputs: %w", err)
		}
		values["inputs"] = inputs
	}
	all := make([]event.Evidence, len(declared))
	for i := range declared {
		one, err := judge(ctx, &declared[i], s, v, blobs, values, found)
		if err != nil {
			return nil, err
		}
		all[i] = one
	}
	return all, nil
}

func judge(ctx context.Context, d *v1alpha1.Evidence, s *expect.Set, v *view.Run, blobs workspace.Blobs, values map[string]any, found []event.Evidence) (event.Evidence, error) {
	missing := func(format string, args ...any) event.Evidence {
		return event.Evidence{Name: d.Name, Message: fmt.Sprintf(format, args...)}
	}
	e, err := s.Compile(d.Expression)
	if err != nil {
		return missing("the expression cannot be compiled: %v", err), nil
	}
	if e.ReadsFiles() {
		at := slices.IndexFunc(found, func(f event.Evidence) bool { return f.Name == d.Name })
		if blobs == nil && at >= 0 {
			return found[at], nil
		}
		files, err := Files(v, blobs)
		if err != nil {
			return missing("the changed files cannot be read: %v", err), nil
		}
		values = maps.Clone(values)
		values["files"] = files
	}
	verdict, err := e.Judge(ctx, values)
	if err != nil {
		return event.Evidence{}, err
	}
	if !verdict.Met {
		return missing("%s", unmet(d, &verdict)), nil
	}
	return event.Evidence{Name: d.Name, Met: true}, nil
}

// unmet says why evidence is missing.
func unmet(d *v1alpha1.Evidence, v *expect.Verdict) string {
	switch {
	case v.Err != nil:
		return fmt.Sprintf("the expression cannot be evaluated: %v", v.Err)
	case d.Message != "":
		return d.Message
	}
	return d.Expression + " is not true"
}
