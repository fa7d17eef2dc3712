package evidence

import (
	"fmt"
	"unicode/utf8"

	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/workspace"
)

// Bounds of what expectations read of changed files.
const (
	maxContent  = 256 << 10
	maxContents = 16 << 20
)

// Files is the variable files of a run. Blobs are those of the run; nil for a recording,
// which holds no contents.
func Files(v *view.Run, blobs workspace.Blobs) (map[string]any, error) {
	if v.Changes.Error != "" {
		return nil, fmt.Errorf("what the run has changed is not completely known: %s", v.Changes.Error)
	}
	if blobs == nil || v.Changes.Change == "" {
		return named(v), nil
	}
	return changed(v, blobs)
}

// named are the changed files without their contents.
func named(v *view.Run) map[string]any {
	all := map[string]any{}
	for _, f := range v.Changes.Files {
		all[f.Path] = map[string]any{"change": f.Change, "type": string(workspace.TypeFile), "size": int64(0)}
	}
	return all
}

// changed are the changed files, with the contents of those that are text and not too large.
func changed(v *view.Run, blobs workspace.Blobs) (map[string]any, error) {
	change, err := workspace.ReadChange(blobs, v.Changes.Change)
	if err != nil {
		return nil, err
	}
	all, left := map[string]any{}, int64(maxContents)
	for _, f := range change.Files {
		out := map[string]any{"change": f.Change, "type": string(workspace.TypeFile), "size": int64(0)}
		all[string(f.Path)] = out
		if f.New == nil {
			if f.Old != nil {
				out["type"] = string(f.Old.Type)
			}
			continue
		}
		out["type"], out["size"] = string(f.New.Type), f.New.Size
		if f.New.Target != "" {
			out["target"] = string(f.New.Target)
		}
		if f.New.Blob != "" && f.New.Type == workspace.TypeFile && f.New.Size <= min(maxContent, left) {
			b, err := blobs.GetBlob(f.New.Blob)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.Path, err)
			}
			if utf8.Valid(b) {
				out["content"] = string(b)
				left -= f.New.Size
			}
		}
	}
	return all, nil
}
