// Package gitlab makes notes and merge requests with the REST API of GitLab.
package gitlab

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/publish/delivery"
	"agentctl.dev/agentctl/runner/publish/item"
)

// Bounds of the notes that are looked through, the newest first.
const (
	perPage  = 100
	maxPages = 20
)

type sender struct{ client *delivery.Client }

// New returns what sends items with a client.
func New(c *delivery.Client) delivery.Sender { return sender{c} }

// note is a comment. GitLab names no URL of it.
type note struct {
	ID   int64  `json:"id"`
	Body string `json:"body"`
}

// merge is a merge request.
type merge struct {
	URL         string `json:"web_url"`
	Description string `json:"description"`
}

// Find implements delivery.Sender.
func (s sender) Find(ctx context.Context, it *delivery.Item) (string, bool, error) {
	if it.Target.Type == v1alpha1.PublishPullRequest {
		return s.findMerge(ctx, it)
	}
	for page := 1; page <= maxPages; page++ {
		var all []note
		query := url.Values{"per_page": {strconv.Itoa(perPage)}, "page": {strconv.Itoa(page)}, "order_by": {"created_at"}, "sort": {"desc"}}
		if err := s.client.Do(ctx, delivery.Request{Method: http.MethodGet, Path: notes(it), Query: query, Into: &all}); err != nil {
			return "", false, err
		}
		for _, n := range all {
			if strings.Contains(n.Body, item.Marker(it.Key)) {
				return s.noteURL(ctx, it, n.ID), true, nil
			}
		}
		if len(all) < perPage {
			return "", false, nil
		}
	}
	return "", false, &delivery.Error{Text: "there are too many notes to look for one of an earlier attempt"}
}

// Send implements delivery.Sender.
func (s sender) Send(ctx context.Context, it *delivery.Item) (string, error) {
	if it.Target.Type == v1alpha1.PublishPullRequest {
		return s.sendMerge(ctx, it)
	}
	var out note
	if err := s.client.Do(ctx, delivery.Request{Method: http.MethodPost, Path: notes(it), Body: map[string]string{"body": it.Text}, Into: &out}); err != nil {
		return "", err
	}
	return s.noteURL(ctx, it, out.ID), nil
}

// noteURL is where a note is shown; "" where that is not known.
func (s sender) noteURL(ctx context.Context, it *delivery.Item, id int64) string {
	var subject merge
	if err := s.client.Do(ctx, delivery.Request{Method: http.MethodGet, Path: subjectOf(it), Into: &subject}); err != nil || subject.URL == "" {
		return ""
	}
	return subject.URL + "#note_" + strconv.FormatInt(id, 10)
}

func (s sender) findMerge(ctx context.Context, it *delivery.Item) (string, bool, error) {
	var all []merge
	err := s.client.Do(ctx, delivery.Request{
		Method: http.MethodGet, Path: project(it) + "/merge_requests", Query: url.Values{"source_branch": {item.Branch(it.Key)}, "state": {"all"}}, Into: &all,
	})
	if err != nil {
		return "", false, err
	}
	for _, m := range all {
		if strings.Contains(m.Description, item.Marker(it.Key)) {
			return m.URL, true, nil
		}
	}
	return "", false, nil
}

// sendMerge makes a branch with one commit, and the merge request. A branch that is there is
// that of an earlier attempt.
func (s sender) sendMerge(ctx context.Context, it *delivery.Item) (string, error) {
	branch := item.Branch(it.Key)
	at, err := s.branch(ctx, it, branch)
	if err != nil {
		return "", err
	}
	if at == "" {
		if err := s.push(ctx, it); err != nil {
			return "", err
		}
	}
	var out merge
	err = s.client.Do(ctx, delivery.Request{Method: http.MethodPost, Path: project(it) + "/merge_requests", Into: &out, Body: map[string]any{
		"source_branch": branch, "target_branch": it.Target.Base, "title": it.Title, "description": it.Text, "remove_source_branch": true,
	}})
	return out.URL, err
}

// branch returns the commit of a branch, "" where there is none.
func (s sender) branch(ctx context.Context, it *delivery.Item, name string) (string, error) {
	var out struct {
		Commit struct {
			ID string `json:"id"`
		} `json:"commit"`
	}
	err := s.client.Do(ctx, delivery.Request{Method: http.MethodGet, Path: project(it) + "/repository/branches/" + url.PathEscape(name), Into: &out})
	if missing(err) {
		return "", nil
	}
	return out.Commit.ID, err
}

// action is what a commit does to a file.
type action struct {
	Action     string `json:"action"`
	Path       string `json:"file_path"`
	Content    string `json:"content,omitempty"`
	Encoding   string `json:"encoding,omitempty"`
	Executable *bool  `json:"execute_filemode,omitempty"`
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
	var actions []action
	for i := range it.Files {
		f := &it.Files[i]
		if err := s.unchanged(ctx, it, f, base); err != nil {
			return err
		}
		if f.Deleted {
			actions = append(actions, action{Action: "delete", Path: f.Path})
			continue
		}
		a := action{Action: "update", Path: f.Path, Content: base64.StdEncoding.EncodeToString(f.Content), Encoding: "base64"}
		if f.Old == "" {
			a.Action, a.Executable = "create", &f.Executable
		}
		actions = append(actions, a)
		if f.Old != "" {
			actions = append(actions, action{Action: "chmod", Path: f.Path, Executable: &f.Executable})
		}
	}
	return s.client.Do(ctx, delivery.Request{Method: http.MethodPost, Path: project(it) + "/repository/commits", Body: map[string]any{
		"branch": item.Branch(it.Key), "start_sha": base, "commit_message": it.Title, "actions": actions,
	}})
}

func (s sender) unchanged(ctx context.Context, it *delivery.Item, f *delivery.File, base string) error {
	var now struct {
		Content string `json:"content"`
	}
	err := s.client.Do(ctx, delivery.Request{Method: http.MethodGet, Path: project(it) + "/repository/files/" + url.PathEscape(f.Path), Query: url.Values{"ref": {base}}, Into: &now})
	if missing(err) {
		return f.Unchanged(nil, false, it.Target.Base)
	}
	if err != nil {
		return err
	}
	b, err := base64.StdEncoding.DecodeString(now.Content)
	if err != nil {
		return &delivery.Error{Text: f.Path + " cannot be compared with " + it.Target.Base}
	}
	return f.Unchanged(b, true, it.Target.Base)
}

func project(it *delivery.Item) string { return "/projects/" + url.PathEscape(it.Target.Repository) }

func subjectOf(it *delivery.Item) string {
	if it.Target.Subject == v1alpha1.SubjectIssue {
		return project(it) + "/issues/" + it.Target.Number
	}
	return project(it) + "/merge_requests/" + it.Target.Number
}

func notes(it *delivery.Item) string { return subjectOf(it) + "/notes" }

func missing(err error) bool {
	e, ok := errors.AsType[*delivery.Error](err)
	return ok && e.Status == http.StatusNotFound
}
