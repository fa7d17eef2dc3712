package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// RefusedError is the error for a file that a rule withholds from the model.
type RefusedError struct {
	// Rule as policy/rule.
	Rule    string
	Message string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("it is refused by %s: %s", e.Rule, e.Message)
}

// Load decides about a file that the runner itself reads, as if read were called for it,
// and returns the text that a model may see. A file that read would be denied, or asked
// about, is refused with a *RefusedError, or a *WithheldError for its text. A file of the
// workspace's repository above the workspace is refused only if it is denied.
func (e *Engine) Load(ctx context.Context, file, text string) (string, error) {
	text, err := e.loadOwn(ctx, file, text)
	for _, c := range e.ceilings {
		if err != nil {
			return "", err
		}
		text, err = c.Load(ctx, file, text)
	}
	return text, err
}

func (e *Engine) loadOwn(ctx context.Context, file, text string) (out string, err error) {
	defer func() {
		if r := recover(); r != nil {
			out, err = "", fmt.Errorf("judge the file: %v", r)
		}
	}()
	file = strings.TrimPrefix(file, filepath.Clean(e.context.Workspace.Root)+"/") // as a call would name it
	args, err := json.Marshal(map[string]string{"path": file})
	if err != nil {
		return "", fmt.Errorf("judge the file: %w", err)
	}
	in, err := e.input(e.reader, message.ToolCall{ID: "load", Tool: e.reader.tool.Name, Args: args})
	if err != nil {
		return "", fmt.Errorf("judge the file: %w", err)
	}
	for _, p := range e.byAllNames(file, opRead) {
		switch o := e.reader.enforced.outcome(ctx, e.reader, in.on(p), false); o.action {
		case v1alpha1.ActionAllow, v1alpha1.ActionRedact:
		case v1alpha1.ActionAsk:
			if p.InWorkspace || !e.context.Workspace.belongs(p) {
				return "", &RefusedError{o.rule, o.message}
			}
		default:
			return "", &RefusedError{o.rule, o.message}
		}
	}
	if len(e.reader.enforced.after) == 0 {
		return text, nil
	}
	result := &message.ToolResult{Text: text}
	in.result(result)
	if result, err = e.review(ctx, e.reader, in, result); err != nil {
		return "", err
	}
	return result.Text, nil
}

// Forbids judges a file that a person hands to the model: only a rule or a list
// that denies to read it is a *RefusedError. Where a rule would ask, or only the
// default denies, the person has answered.
func (e *Engine) Forbids(ctx context.Context, file string) error {
	err := e.forbidsOwn(ctx, file)
	for _, c := range e.ceilings {
		if err != nil {
			return err
		}
		err = c.Forbids(ctx, file)
	}
	return err
}

func (e *Engine) forbidsOwn(ctx context.Context, file string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("judge the file: %v", r)
		}
	}()
	file = strings.TrimPrefix(file, filepath.Clean(e.context.Workspace.Root)+"/") // as a call would name it
	args, err := json.Marshal(map[string]string{"path": file})
	if err != nil {
		return fmt.Errorf("judge the file: %w", err)
	}
	in, err := e.input(e.reader, message.ToolCall{ID: "attach", Tool: e.reader.tool.Name, Args: args})
	if err != nil {
		return fmt.Errorf("judge the file: %w", err)
	}
	for _, p := range e.byAllNames(file, opRead) {
		if o, failed := e.reader.enforced.strict(ctx, e.reader, in.on(p)); o.action == v1alpha1.ActionDeny {
			return &RefusedError{o.rule, o.message}
		} else if failed != nil {
			return &RefusedError{failed.rule, failed.message}
		}
	}
	return nil
}

// belongs reports whether a path, with links resolved, is in the repository around the
// workspace.
func (w Workspace) belongs(p Path) bool {
	repo, ok := findRepository(realPath(w.Root), false)
	return ok && inside(p.Real, repo.tree)
}
