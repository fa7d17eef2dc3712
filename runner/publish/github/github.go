// Package github makes comments and pull requests with the REST API of GitHub.
package github

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/publish/delivery"
	"agentctl.dev/agentctl/runner/publish/item"
)

// Bounds of the comments that are looked through.
const (
	perPage  = 100
	maxPages = 20
)

// apart is how far the clocks of this host and of a forge may differ.
const apart = 24 * time.Hour

type sender struct{ client *delivery.Client }

// New returns what sends items with a client.
func New(c *delivery.Client) delivery.Sender { return sender{c} }

// made is what GitHub says of a comment or a pull request.
type made struct {
	URL  string `json:"html_url"`
	Body string `json:"body"`
}

// Find implements delivery.Sender.
func (s sender) Find(ctx context.Context, it *delivery.Item) (string, bool, error) {
	if it.Target.Type == v1alpha1.PublishPullRequest {
		return s.findPull(ctx, it)
	}
	since := it.Since.Add(-apart).UTC().Format(time.RFC3339)
	for page := 1; page <= maxPages; page++ {
		var all []made
		err := s.do(ctx, http.MethodGet, comments(it), url.Values{"per_page": {strconv.Itoa(perPage)}, "page": {strconv.Itoa(page)}, "since": {since}}, nil, &all)
		if err != nil {
			return "", false, err
		}
		for _, c := range all {
			if strings.Contains(c.Body, item.Marker(it.Key)) {
				return c.URL, true, nil
			}
		}
		if len(all) < perPage {
			return "", false, nil
		}
	}
	return "", false, &delivery.Error{Text: "there are too many comments to look for one of an earlier attempt"}
}

// Send implements delivery.Sender.
func (s sender) Send(ctx context.Context, it *delivery.Item) (string, error) {
	if it.Target.Type == v1alpha1.PublishPullRequest {
		return s.sendPull(ctx, it)
	}
	var out made
	err := s.do(ctx, http.MethodPost, comments(it), nil, map[string]string{"body": it.Text}, &out)
	return out.URL, err
}

// do sends a request about the repository.
func (s sender) do(ctx context.Context, method, path string, query url.Values, body, into any) error {
	return s.client.Do(ctx, delivery.Request{
		Method: method, Path: path, Query: query, Body: body, Into: into,
		Header: map[string]string{"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"},
	})
}

func repository(it *delivery.Item) string { return "/repos/" + it.Target.Repository }

func comments(it *delivery.Item) string {
	return repository(it) + "/issues/" + it.Target.Number + "/comments"
}
