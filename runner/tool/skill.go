package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/tool/skill"
)

// skills answers the calls that load a skill, or a file of one.
func skills() HostTool { return HostTool{Tool: "skill", Answer: loadSkill} }

// loadSkill reads a skill on the host. What a policy does not let a call read of the
// workspace is not read for it either.
func loadSkill(ctx context.Context, h Host, call message.ToolCall) (*message.ToolResult, error) {
	var args struct{ Name, File string }
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return nil, err
	}
	failed := func(format string, args ...any) (*message.ToolResult, error) {
		return h.Result(Reply{Output: fmt.Sprintf(format, args...), Failed: true})
	}
	all, err := readable(ctx, h, call)
	if err != nil {
		return nil, err
	}
	switch {
	case len(all) == 0:
		return failed("there are no skills here")
	case args.Name == "" && args.File != "":
		return failed("name the skill that has the file")
	case args.Name == "":
		return h.Result(Reply{Output: skill.Full(all), Title: fmt.Sprintf("%d skills", len(all))})
	}
	at := slices.IndexFunc(all, func(e skill.Entry) bool { return e.Name == args.Name })
	if at < 0 {
		names := make([]string, len(all))
		for i, e := range all {
			names[i] = e.Name
		}
		return failed("there is no skill %q; the nearest names are: %s", args.Name, strings.Join(first(reason.Sorted(args.Name, names)), ", "))
	}
	e := &all[at]
	if e.Dir == "" {
		if args.File != "" {
			return failed("skill %s has no files", e.Name)
		}
		return h.Result(Reply{Output: e.Planned(), Title: e.Name})
	}
	if args.File != "" {
		if err := skill.Named(args.File); err != nil {
			return failed("skill %s: %s: %v", e.Name, args.File, err)
		}
	}
	if path := e.Path(args.File); path != "" && args.File != "" && h.Unreadable != nil {
		hidden, err := h.Unreadable(ctx, call, []string{path})
		if err != nil {
			return nil, err
		}
		if len(hidden) > 0 {
			return h.Result(Reply{Output: fmt.Sprintf("a policy does not let this agent read %s", path), Failed: true, Code: message.CodeDenied})
		}
	}
	s, folder, err := e.Load()
	if err != nil {
		return failed("skill %s: %v", e.Name, err)
	}
	defer folder.Close() //nolint:errcheck // nothing was written
	if args.File == "" {
		metadata, err := json.Marshal(map[string]string{"skill": e.Name, "digest": e.Digest})
		if err != nil {
			return nil, err
		}
		return h.Result(Reply{Output: e.Describe(s, folder, h.Tools), Title: e.Name, Metadata: metadata})
	}
	text, err := folder.Text(args.File)
	if err != nil {
		return failed("skill %s: %s: %v", e.Name, args.File, err)
	}
	return h.Result(Reply{Output: text, Title: e.Name + ": " + args.File})
}

// readable are the skills without those of the workspace that the agent must not read.
func readable(ctx context.Context, h Host, call message.ToolCall) ([]skill.Entry, error) {
	var paths []string
	for i := range h.Skills {
		if path := h.Skills[i].Path(skill.File); path != "" {
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 || h.Unreadable == nil {
		return h.Skills, nil
	}
	hidden, err := h.Unreadable(ctx, call, paths)
	if err != nil || len(hidden) == 0 {
		return h.Skills, err
	}
	return slices.DeleteFunc(slices.Clone(h.Skills), func(e skill.Entry) bool { return slices.Contains(hidden, e.Path(skill.File)) }), nil
}

// first are so many names as fit a message.
func first(names []string) []string {
	const most = 10
	return names[:min(len(names), most)]
}
