package github

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"agentctl.dev/agentctl/runner/publish/delivery"
	"agentctl.dev/agentctl/runner/publish/item"
)

// findPull looks for the pull request of the item's branch, also a closed one.
func (s sender) findPull(ctx context.Context, it *delivery.Item) (string, bool, error) {
	owner, _, _ := strings.Cut(it.Target.Repository, "/")
	var all []made
	err := s.do(ctx, http.MethodGet, repository(it)+"/pulls", url.Values{"head": {owner + ":" + item.Branch(it.Key)}, "state": {"all"}}, nil, &all)
	if err != nil {
		return "", false, err
	}
	for _, p := range all {
		if strings.Contains(p.Body, item.Marker(it.Key)) {
			return p.URL, true, nil
		}
	}
	return "", false, nil
}

// sendPull makes a branch with one commit, and the pull request. A branch that is there is
// that of an earlier attempt: only agentctl knows its name.
func (s sender) sendPull(ctx context.Context, it *delivery.Item) (string, error) {
	there, err := s.branch(ctx, it, item.Branch(it.Key))
	if err != nil {
		return "", err
	}
	if there == "" {
		if err := s.push(ctx, it); err != nil {
			return "", err
		}
	}
	var out made
	err = s.do(ctx, http.MethodPost, repository(it)+"/pulls", nil, map[string]any{
		"title": it.Title, "body": it.Text, "head": item.Branch(it.Key), "base": it.Target.Base, "maintainer_can_modify": false,
	}, &out)
	return out.URL, err
}

// branch returns the commit of a branch, "" where there is none.
func (s sender) branch(ctx context.Context, it *delivery.Item, name string) (string, error) {
	var ref struct {
		Object struct {
			SHA string `json:"sha"`
		} `json:"object"`
	}
	err := s.do(ctx, http.MethodGet, repository(it)+"/git/ref/heads/"+name, nil, nil, &ref)
	if missing(err) {
		return "", nil
	}
	return ref.Object.SHA, err
}

// entry is a file in a tree; a nil SHA removes it.
type entry struct {
	Path string  `json:"path"`
	Mode string  `json:"mode"`
	Type string  `json:"type"`
	SHA  *string `json:"sha"`
}

// object is anything that has a hash.
type object struct {
	SHA  string `json:"sha"`
	Tree struct {
		SHA string `json:"sha"`
	} `json:"tree"`
}

// push makes the commit on the base branch as it is, if the files that change are those that
// the run has seen.
func (s sender) push(ctx context.Context, it *delivery.Item) error {
	base, err := s.branch(ctx, it, it.Target.Base)
	if err != nil {
		return err
	}
	if base == "" {
		return &delivery.Error{Text: "there is no branch " + it.Target.Base}
	}
	var commit object
	if err := s.do(ctx, http.MethodGet, repository(it)+"/git/commits/"+base, nil, nil, &commit); err != nil {
		return err
	}
	tree := make([]entry, 0, len(it.Files))
	for i := range it.Files {
		f := &it.Files[i]
		if err := s.unchanged(ctx, it, f, base); err != nil {
			return err
		}
		e := entry{Path: f.Path, Mode: "100644", Type: "blob"}
		if f.Executable {
			e.Mode = "100755"
		}
		if !f.Deleted {
			var blob object
			if err := s.do(ctx, http.MethodPost, repository(it)+"/git/blobs", nil, map[string]string{"content": base64.StdEncoding.EncodeToString(f.Content), "encoding": "base64"}, &blob); err != nil {
				return err
			}
			e.SHA = &blob.SHA
		}
		tree = append(tree, e)
	}
	var made object
	if err := s.do(ctx, http.MethodPost, repository(it)+"/git/trees", nil, map[string]any{"base_tree": commit.Tree.SHA, "tree": tree}, &made); err != nil {
		return err
	}
	if err := s.do(ctx, http.MethodPost, repository(it)+"/git/commits", nil, map[string]any{"message": it.Title, "tree": made.SHA, "parents": []string{base}}, &commit); err != nil {
		return err
	}
	return s.do(ctx, http.MethodPost, repository(it)+"/git/refs", nil, map[string]string{"ref": "refs/heads/" + item.Branch(it.Key), "sha": commit.SHA}, nil)
}

// unchanged compares a file of the base branch with what the run began with.
func (s sender) unchanged(ctx context.Context, it *delivery.Item, f *delivery.File, base string) error {
	var now struct {
		Type     string `json:"type"`
		Encoding string `json:"encoding"`
		Content  string `json:"content"`
		SHA      string `json:"sha"`
	}
	err := s.do(ctx, http.MethodGet, repository(it)+"/contents/"+delivery.EscapePath(f.Path), url.Values{"ref": {base}}, nil, &now)
	if missing(err) {
		return f.Unchanged(nil, false, it.Target.Base)
	}
	if err != nil {
		return err
	}
	if now.Type == "file" && now.Encoding != "base64" { // a large one
		var blob struct {
			Content string `json:"content"`
		}
		if err := s.do(ctx, http.MethodGet, repository(it)+"/git/blobs/"+now.SHA, nil, nil, &blob); err != nil {
			return err
		}
		now.Content = blob.Content
	}
	b, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(now.Content, "\n", ""))
	if err != nil || now.Type != "file" {
		return &delivery.Error{Text: f.Path + " cannot be compared with " + it.Target.Base}
	}
	return f.Unchanged(b, true, it.Target.Base)
}

func missing(err error) bool {
	e, ok := errors.AsType[*delivery.Error](err)
	return ok && e.Status == http.StatusNotFound
}
