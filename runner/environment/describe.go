package environment

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/workspace"
)

// describe asks the programs of tools whose manifests leave out what they take, and
// replaces each Tool that provides several functions by one tool for each of them.
func (t *Tools) describe(ctx context.Context) error {
	declared := slices.Clone(t.Definitions)
	t.Definitions = nil
	for i := range declared {
		d := &declared[i]
		functions := declared[i : i+1]
		var err error
		switch {
		case d.Select != nil:
			functions, err = t.expand(ctx, d)
		case len(d.Parameters) == 0:
			err = t.pool.Describe(ctx, d)
		}
		if reason.Of(err) == reason.ToolChanged { // a run ends with a reason of runs
			err = reason.New(reason.ToolError, "%s: %w", reason.ToolChanged, err).WithHint("%s", reason.Hint(err))
		}
		if err != nil {
			return err
		}
		t.Definitions = append(t.Definitions, functions...)
	}
	return tool.Distinct(t.Definitions)
}

// expand returns the functions of a Tool that provides several: those that an earlier
// process of the run has recorded, or else those that the program serves now, which are
// then recorded.
func (t *Tools) expand(ctx context.Context, d *tool.Definition) ([]tool.Definition, error) {
	if found, ok := t.env.o.Functions[d.Name]; ok {
		return tool.Expand(d, found)
	}
	found, err := t.pool.Several(ctx, d, t.env.o.Pins[d.Name])
	if err != nil {
		return nil, err
	}
	all, err := tool.Expand(d, found)
	if err != nil {
		return nil, err
	}
	return all, t.record(d, found, all)
}

// record writes down the chosen functions, so that a resume, a replay and an explanation
// need no program to know them.
func (t *Tools) record(d *tool.Definition, found []tool.Function, all []tool.Definition) error {
	chosen := slices.DeleteFunc(slices.Clone(found), func(f tool.Function) bool { return !d.Select.Takes(f.Name) })
	text, err := json.Marshal(chosen)
	if err == nil {
		text = t.env.secrets.Redactor.JSON(text)
	}
	id := ""
	if err == nil {
		id, err = t.env.o.Journal.PutBlob(text)
	}
	if err != nil {
		return reason.New(reason.Internal, "write down the functions of tool %q: %w", d.Name, err)
	}
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	_, err = t.env.o.Journal.Append(event.Event{Data: event.ToolsDescribed{Tool: d.Name, Functions: names, Definitions: id}})
	if err != nil {
		return fmt.Errorf("record the functions of tool %q: %w", d.Name, err)
	}
	return nil
}

// Probed is a tool as its program describes it.
type Probed struct {
	tool.Definition
	// Functions are those of a Tool that provides several; nil for others.
	Functions []tool.Function
}

// Probe checks that a tool can be isolated as it demands, in an empty folder, and returns
// it with what its program reports about it. A program that cannot be asked is only
// looked for. A server at a URL that needs a secret is not asked: whoever may write down
// a Tool would have this host's secrets sent to it, without a run.
func (h *Host) Probe(ctx context.Context, id string, d tool.Definition, dir string) (*Probed, error) {
	tools := []tool.Definition{d}
	if err := h.site.Require(ctx, tools); err != nil {
		return nil, err
	}
	profiles, err := h.profiles(tools, workspace.Spec{Dir: dir})
	if err != nil {
		return nil, err
	}
	pool := h.pool(tool.PoolOptions{Run: id, Dir: dir, Profiles: profiles})
	p := &Probed{Definition: d}
	switch {
	case d.Remote != "" && (len(d.Secrets) > 0 || d.Obtains):
	case d.Select != nil:
		p.Functions, err = survey(ctx, pool, &p.Definition)
	case d.Describes:
		err = pool.Describe(ctx, &p.Definition)
	default:
		_, err = pool.Functions(ctx, &p.Definition)
	}
	return p, err
}

// survey asks the program of a Tool that provides several functions for all of them.
func survey(ctx context.Context, pool *tool.Pool, d *tool.Definition) ([]tool.Function, error) {
	found, err := pool.Functions(ctx, d)
	if err != nil {
		return nil, tool.WithHint(fmt.Errorf("tool %q: ask its program for its functions: %w", d.Name, err), "check spec.source of the Tool")
	}
	if found == nil {
		found = []tool.Function{}
	}
	_, err = tool.Expand(d, found)
	return found, err
}
