package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/plugins/host"
)

// rounds bounds how often a search is made again because it has found something
// in files that may not be read; each round leaves out more of them.
const rounds = 20

// call asks the server. Files that the caller may not read must not appear in
// the result of a search: the search is repeated without those files, so that
// its result is complete.
func (r *Registry) call(ctx context.Context, d *Definition, call message.ToolCall, server Server, req host.CallRequest, progress func(string)) (Reply, error) {
	if r.Unreadable == nil || !d.Search {
		return server.Call(ctx, req, progress)
	}
	given := len(req.Hidden) // these are not part of what the tool may find
	for range rounds {
		reply, err := server.Call(ctx, req, progress)
		if err != nil || reply.Failed {
			if len(req.Hidden) > given && err == nil {
				reply.Output = "the search failed once files that may not be read were left out"
			}
			return reply, err
		}
		files, ok := shownFiles(reply)
		if !ok {
			return withheld("the search did not say which files it has shown"), nil
		}
		hidden, err := r.Unreadable(ctx, call, files)
		if err != nil {
			return withheld("nobody can say which files may be read: " + err.Error()), nil //nolint:nilerr // the result reports it
		}
		if len(hidden) == 0 {
			return leftOut(reply, len(req.Hidden)-given), nil
		}
		before := len(req.Hidden)
		for _, name := range hidden {
			if !slices.Contains(req.Hidden, name) {
				req.Hidden = append(req.Hidden, name)
			}
		}
		if len(req.Hidden) == before {
			return withheld("it shows files that may not be read"), nil
		}
	}
	return withheld("too many of the files it finds may not be read: narrow path or include"), nil
}

// shownFiles are the files of which a search shows something.
func shownFiles(reply Reply) ([]string, bool) {
	var data struct {
		Matches *int     `json:"matches"`
		Files   []string `json:"files"`
	}
	if json.Unmarshal(reply.Metadata, &data) != nil || data.Matches == nil || *data.Matches > 0 && len(data.Files) == 0 {
		return nil, false
	}
	return data.Files, true
}

func withheld(why string) Reply {
	return Reply{Output: "the result is withheld: " + why, Failed: true, Code: message.CodeTool}
}

// leftOut describes how much a search has left out.
func leftOut(reply Reply, n int) Reply {
	if n == 0 {
		return reply
	}
	files := "1 file that matches was"
	if n > 1 {
		files = fmt.Sprintf("%d files that match were", n)
	}
	reply.Output = strings.TrimSuffix(reply.Output, "\n") + "\n(" + files + " left out: the policy keeps them from this agent)"
	return reply
}
