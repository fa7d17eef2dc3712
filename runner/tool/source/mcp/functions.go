package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/safetext"
	"agentctl.dev/agentctl/runner/tool"
)

// Bounds of what a server describes.
const (
	maxFunctions   = 2000
	maxPages       = 200
	maxName        = 128
	maxDescription = 32 << 10
	maxSchema      = 512 << 10
)

// described is what a server serves: the functions that can be offered to a model, and
// those that are left out.
type described struct {
	Functions []tool.Function `json:"functions"`
	LeftOut   []tool.Omission `json:"leftOut,omitempty"`
	// Digest is that of all that the server said.
	Digest string `json:"digest"`
}

// digest tells two descriptions apart without the work of compiling schemas.
func (d *described) digest() (string, error) {
	text, err := json.Marshal([]any{d.Functions, d.LeftOut})
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}

// omit leaves a function out.
func (d *described) omit(name, why string, args ...any) {
	d.LeftOut = append(d.LeftOut, tool.Omission{Name: strings.Clone(name[:min(len(name), maxName)]), Why: fmt.Sprintf(why, args...)})
}

// functions asks the server what it serves. Schemas are not compiled.
func (l *link) functions(ctx context.Context) (*described, error) {
	l.stale.Store(false) // a change while it answers counts
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	all := &described{}
	params := &mcp.ListToolsParams{}
	for range maxPages {
		page, err := l.session.ListTools(ctx, params)
		if err != nil {
			if gone := l.gone(); gone != nil {
				err = gone
			}
			return nil, fmt.Errorf("list its functions: %w", err)
		}
		for _, t := range page.Tools {
			l.add(all, t)
		}
		if len(all.Functions)+len(all.LeftOut) > maxFunctions {
			return nil, fmt.Errorf("list its functions: it serves more than %d", maxFunctions)
		}
		if page.NextCursor == "" {
			return all, l.remember(all)
		}
		params = &mcp.ListToolsParams{Cursor: page.NextCursor}
	}
	return nil, fmt.Errorf("list its functions: they have more than %d pages", maxPages)
}

// add adds a function to those that can be offered, or to the others.
func (l *link) add(all *described, t *mcp.Tool) {
	f, why := usable(t)
	if reveals := l.source.pool.Options().Reveals; why == "" && reveals != nil {
		if text, err := json.Marshal(f); err != nil || reveals(text) {
			f.Name, why = "a function", "its description holds a secret of the run"
		}
	}
	if why != "" {
		all.omit(f.Name, "%s", why)
		return
	}
	all.Functions = append(all.Functions, f)
}

// compilable leaves out functions whose schema is none: the model would be offered what
// fails at its first call.
func compilable(found *described) *described {
	all := &described{LeftOut: slices.Clone(found.LeftOut), Digest: found.Digest}
	for _, f := range found.Functions {
		if _, err := tool.NewSchema(f.Parameters); err != nil {
			all.omit(f.Name, "its schema cannot be checked: %v", err)
			continue
		}
		all.Functions = append(all.Functions, f)
	}
	return all
}

// leftOut reports what is left out of the functions of a Tool.
func (s *source) leftOut(d *tool.Definition, all []tool.Omission) {
	if report := s.pool.Options().LeftOut; report != nil {
		report(d.Program(), all)
	}
}

// remember keeps the functions to compare them with those that the model was told.
func (l *link) remember(all *described) error {
	slices.SortFunc(all.Functions, func(a, b tool.Function) int { return strings.Compare(a.Name, b.Name) })
	seen := map[string]tool.Function{}
	for _, f := range all.Functions {
		if _, twice := seen[f.Name]; twice {
			return fmt.Errorf("list its functions: it serves two with the name %q", f.Name)
		}
		seen[f.Name] = f
	}
	var err error
	if all.Digest, err = all.digest(); err != nil {
		return fmt.Errorf("list its functions: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen, l.same = seen, map[string]bool{}
	return nil
}

// usable is a function as its server describes it, without what could move a terminal, or
// why it cannot be used.
func usable(t *mcp.Tool) (f tool.Function, why string) {
	f.Name = t.Name
	switch {
	case t.Name == "":
		return f, "it has no name"
	case len(t.Name) > maxName:
		return f, fmt.Sprintf("its name is longer than %d bytes", maxName)
	case safetext.Visible(t.Name, 0) != t.Name:
		return f, "its name holds characters that are not shown"
	}
	schema, err := json.Marshal(t.InputSchema)
	switch {
	case err != nil:
		return f, "its schema is not JSON"
	case len(schema) > maxSchema:
		return f, fmt.Sprintf("its schema is longer than %d KiB", maxSchema>>10)
	}
	f.Parameters = schema
	f.Description = cleanLines(t.Description[:min(len(t.Description), maxDescription)])
	f.Hints.Title = clean(t.Title)
	if a := t.Annotations; a != nil {
		if f.Hints.Title == "" {
			f.Hints.Title = clean(a.Title)
		}
		f.Hints.ReadOnly, f.Hints.Idempotent = a.ReadOnlyHint, a.IdempotentHint
		f.Hints.Destructive = a.DestructiveHint != nil && *a.DestructiveHint
		f.Hints.OpenWorld = a.OpenWorldHint != nil && *a.OpenWorldHint
	}
	return f, ""
}

// unchanged compares a function with what the model was told about it. The server is
// asked at every start, and again when it says that its functions have changed: it may
// describe another function by then, which nobody has approved.
func (l *link) unchanged(ctx context.Context, d *tool.Definition) error {
	l.mu.Lock()
	asked, same := l.seen != nil, l.same[d.Name]
	l.mu.Unlock()
	if stale := l.stale.Load(); !asked || stale {
		found, err := l.functions(ctx)
		if err != nil {
			return reason.New(reason.ToolError, "tool %q: %w", d.Of, err)
		}
		if now := l.source.cache.renew(d, found); now != nil { // the next run begins with what the server serves now
			l.source.leftOut(d, now.LeftOut)
		}
		same = false
	}
	if same {
		return nil
	}
	l.mu.Lock()
	f, serves := l.seen[d.Function]
	l.mu.Unlock()
	before, now := tool.Pin(d.Name, d.Description, d.Parameters), "nothing: it serves no function "+d.Function
	if serves {
		now = tool.Pin(d.Name, f.Description, f.Parameters)
	}
	if before != now {
		return reason.New(reason.ToolChanged, "tool %q: its server describes it otherwise than before: it was %s and is %s", d.Name, before, now).
			WithHint("begin a run with what the server serves now")
	}
	l.mu.Lock()
	l.same[d.Name] = true
	l.mu.Unlock()
	return nil
}

// clean is one line of a server's text without what a terminal would obey.
func clean(s string) string {
	return safetext.Visible(strings.ReplaceAll(s, "\n", " "), safetext.Writing)
}

// cleanLines is clean for a text of several lines.
func cleanLines(s string) string {
	return safetext.Visible(strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\r\n", "\n"), safetext.Prose)
}
