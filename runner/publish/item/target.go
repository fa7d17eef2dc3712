// Package item knows what a run may prepare for publication, and where it goes.
package item

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// The servers of the forges, where a manifest names none.
const (
	githubURL = "https://api.github.com"
	gitlabURL = "https://gitlab.com/api/v4"
)

// Target is where an item goes, with its inputs filled in.
type Target struct {
	Type v1alpha1.PublicationType `json:"type"`
	// Forge is "" for a Webhook.
	Forge v1alpha1.ForgeType `json:"forge,omitempty"`
	// URL is the base of the forge's API, or that of the Webhook.
	URL        string                `json:"url"`
	Repository string                `json:"repository,omitempty"`
	Subject    v1alpha1.ForgeSubject `json:"subject,omitempty"`
	Number     string                `json:"number,omitempty"`
	Base       string                `json:"base,omitempty"`
}

var (
	repositoryName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*){1,9}$`)
	})
	subjectNumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[1-9][0-9]{0,9}$`) })
	branchName    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._/-]{0,254}$`) })
)

// Resolve returns the target of an entry. Fill replaces what names an input. What comes from
// an input cannot become another path of the API.
func Resolve(p *v1alpha1.Publication, fill func(string) (string, error)) (Target, error) {
	if p.Type == v1alpha1.PublishWebhook {
		_, err := Server(p.URL)
		return Target{Type: p.Type, URL: p.URL}, err
	}
	f := p.Forge
	if f == nil {
		return Target{}, errors.New("there is no forge")
	}
	t := Target{Type: p.Type, Forge: f.Type, URL: cmp.Or(f.BaseURL, githubURL)}
	if f.BaseURL == "" && f.Type == v1alpha1.ForgeGitLab {
		t.URL = gitlabURL
	}
	t.URL = strings.TrimRight(t.URL, "/")
	at, err := Server(t.URL)
	if err != nil {
		return t, fmt.Errorf("forge.baseURL: %w", err)
	}
	if at.RawQuery != "" {
		return t, errors.New("forge.baseURL: it has a query")
	}
	if t.Repository, err = fill(f.Repository); err != nil {
		return t, fmt.Errorf("forge.repository: %w", err)
	}
	if !repositoryName().MatchString(t.Repository) || strings.Contains(t.Repository, "..") || f.Type == v1alpha1.ForgeGitHub && strings.Count(t.Repository, "/") != 1 {
		return t, fmt.Errorf("forge.repository: %q does not name a repository with its owner, such as acme/shop", brief(t.Repository))
	}
	if p.Type == v1alpha1.PublishPullRequest {
		t.Base = cmp.Or(f.Base, "main")
		if !branchName().MatchString(t.Base) || strings.Contains(t.Base, "..") || strings.Contains(t.Base, "//") || strings.HasSuffix(t.Base, "/") {
			return t, fmt.Errorf("forge.base: %q does not name a branch", brief(t.Base))
		}
		return t, nil
	}
	t.Subject = cmp.Or(f.Subject, v1alpha1.SubjectPullRequest)
	if t.Number, err = fill(f.Number); err != nil {
		return t, fmt.Errorf("forge.number: %w", err)
	}
	if !subjectNumber().MatchString(t.Number) {
		return t, fmt.Errorf("forge.number: %q is not the number of a pull request or an issue", brief(t.Number))
	}
	return t, nil
}

// String is the target for people.
func (t Target) String() string {
	at, err := url.Parse(t.URL)
	host := t.URL
	if err == nil {
		host = at.Host
	}
	switch {
	case t.Forge == "":
		return "Webhook at " + host
	case t.Type == v1alpha1.PublishPullRequest:
		return fmt.Sprintf("%s %s into %s at %s", t.Forge, t.Repository, t.Base, host)
	}
	sign := "#"
	if t.Forge == v1alpha1.ForgeGitLab && t.Subject == v1alpha1.SubjectPullRequest {
		sign = "!"
	}
	return fmt.Sprintf("%s %s%s%s at %s", t.Forge, t.Repository, sign, t.Number, host)
}

// Server parses the URL of a target: https, or http on this host. It holds no credentials.
func Server(text string) (*url.URL, error) {
	at, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q is not a URL", brief(text))
	case at.Scheme != "https" && at.Scheme != "http", at.Hostname() == "", at.Opaque != "":
		return nil, fmt.Errorf("%q is not an https URL", brief(text))
	case at.Scheme == "http" && !Local(at.Hostname()):
		return nil, fmt.Errorf("%q is http: what is sent, with its credential, could be read on the way", brief(text))
	case at.User != nil:
		return nil, errors.New("the URL holds credentials: name them with credential")
	case at.Fragment != "":
		return nil, fmt.Errorf("%q has a fragment", brief(text))
	}
	return at, nil
}

// Local reports whether a name is that of this host.
func Local(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

func brief(s string) string {
	if r := []rune(s); len(r) > 80 {
		return string(r[:80]) + "…"
	}
	return s
}
