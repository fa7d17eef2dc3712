package item

import (
	"errors"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/v1alpha1"
)

func plain(s string) (string, error) { return s, nil }

func TestATargetIsDeclaredAndNothingElse(t *testing.T) {
	forge := func(f v1alpha1.Forge) v1alpha1.Publication {
		return v1alpha1.Publication{Type: v1alpha1.PublishComment, Forge: &f}
	}
	for name, c := range map[string]struct {
		in   v1alpha1.Publication
		want string
	}{
		"github":         {forge(v1alpha1.Forge{Type: "GitHub", Repository: "acme/shop", Number: "7"}), "GitHub acme/shop#7 at api.github.com"},
		"gitlab":         {forge(v1alpha1.Forge{Type: "GitLab", Repository: "acme/sub/shop", Number: "7"}), "GitLab acme/sub/shop!7 at gitlab.com"},
		"gitlab issue":   {forge(v1alpha1.Forge{Type: "GitLab", Repository: "acme/shop", Number: "7", Subject: "Issue"}), "GitLab acme/shop#7 at gitlab.com"},
		"own server":     {forge(v1alpha1.Forge{Type: "GitHub", BaseURL: "https://git.example.com/api/v3/", Repository: "acme/shop", Number: "7"}), "GitHub acme/shop#7 at git.example.com"},
		"this host":      {forge(v1alpha1.Forge{Type: "GitHub", BaseURL: "http://127.0.0.1:80", Repository: "acme/shop", Number: "7"}), "GitHub acme/shop#7 at 127.0.0.1:80"},
		"pull request":   {v1alpha1.Publication{Type: v1alpha1.PublishPullRequest, Forge: &v1alpha1.Forge{Type: "GitHub", Repository: "acme/shop"}}, "GitHub acme/shop into main at api.github.com"},
		"webhook":        {v1alpha1.Publication{Type: v1alpha1.PublishWebhook, URL: "https://hooks.example.com/x?y=1"}, "Webhook at hooks.example.com"},
		"traversal":      {forge(v1alpha1.Forge{Type: "GitHub", Repository: "acme/../../user", Number: "7"}), "!does not name a repository"},
		"dots":           {forge(v1alpha1.Forge{Type: "GitLab", Repository: "acme/shop..", Number: "7"}), "!does not name a repository"},
		"encoded":        {forge(v1alpha1.Forge{Type: "GitHub", Repository: "acme%2fx/shop", Number: "7"}), "!does not name a repository"},
		"three parts":    {forge(v1alpha1.Forge{Type: "GitHub", Repository: "a/b/c", Number: "7"}), "!does not name a repository"},
		"number":         {forge(v1alpha1.Forge{Type: "GitHub", Repository: "acme/shop", Number: "7/lock"}), "!not the number"},
		"zero":           {forge(v1alpha1.Forge{Type: "GitHub", Repository: "acme/shop", Number: "0"}), "!not the number"},
		"http":           {forge(v1alpha1.Forge{Type: "GitHub", BaseURL: "http://git.example.com", Repository: "acme/shop", Number: "7"}), "!could be read on the way"},
		"credentials":    {forge(v1alpha1.Forge{Type: "GitHub", BaseURL: "https://me:hunter2@git.example.com", Repository: "acme/shop", Number: "7"}), "!holds credentials"},
		"query":          {forge(v1alpha1.Forge{Type: "GitHub", BaseURL: "https://git.example.com/?x=", Repository: "acme/shop", Number: "7"}), "!has a query"},
		"file":           {v1alpha1.Publication{Type: v1alpha1.PublishWebhook, URL: "file:///etc/passwd"}, "!not an https URL"},
		"branch":         {v1alpha1.Publication{Type: v1alpha1.PublishPullRequest, Forge: &v1alpha1.Forge{Type: "GitHub", Repository: "acme/shop", Base: "../x"}}, "!does not name a branch"},
		"without forge":  {v1alpha1.Publication{Type: v1alpha1.PublishComment}, "!no forge"},
		"rebound number": {forge(v1alpha1.Forge{Type: "GitHub", Repository: "acme/shop", Number: "7\n8"}), "!not the number"},
	} {
		got, err := Resolve(&c.in, plain)
		if want, wrong := strings.CutPrefix(c.want, "!"); wrong {
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: %v, %v", name, got, err)
			}
		} else if err != nil || got.String() != want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	missing := forge(v1alpha1.Forge{Type: "GitHub", Repository: "acme/shop", Number: "${inputs.n}"})
	if _, err := Resolve(&missing, func(string) (string, error) { return "", errors.New("not given") }); err == nil {
		t.Error("an input that is not given")
	}
}

func TestATextMentionsNobodyAndCommandsNothing(t *testing.T) {
	for in, want := range map[string]string{
		"hi @team and a@b":       "hi @\u200bteam and a@\u200bb",
		"/merge\nnot /merge":     "\u200b/merge\nnot /merge",
		"> /close":               "> \u200b/close",
		"- /approve":             "- \u200b/approve",
		"  \t/label ~bug":        "  \t\u200b/label ~bug",
		"a\r/merge\r\n/unassign": "a\n\u200b/merge\n\u200b/unassign",
		"plain: a/b":             "plain: a/b",
	} {
		if got := Inert(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
	text := Text("done @all", "reviewer", "r1", "abc")
	if !strings.Contains(text, "Published by agentctl for agent reviewer, run r1.") || strings.Count(text, "<!-- agentctl:abc -->") != 1 || strings.Contains(text, "@all") {
		t.Error(text)
	}
}

func TestAKeyIsThatOfOneItemOfOneRun(t *testing.T) {
	a := Key("r", "h", "c")
	if a != Key("r", "h", "c") || a == Key("r", "h", "d") || a == Key("r", "i", "c") || a == Key("rh", "", "c") || len(a) != 32 {
		t.Error(a)
	}
}
