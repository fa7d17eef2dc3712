package giturl

import (
	"errors"
	"strings"
	"testing"
)

func TestCheckRefusesWhatStartsProgramsOrHoldsCredentials(t *testing.T) {
	for name, c := range map[string]struct {
		reason, url, ref, want string
		credentials            bool
	}{
		"https":         {"the usual", "https://example.com/org/repo.git", "main", "", false},
		"ssh":           {"a user is no secret", "ssh://git@example.com:22/org/repo", "v1.0", "", false},
		"file":          {"a repository of this host", "file:///srv/repo.git", "refs/pull/7/head", "", false},
		"loopback":      {"nobody is between", "http://127.0.0.1:8080/repo", "", "", false},
		"ext":           {"a shell", "ext::sh -c touch% /tmp/x", "", "control character", false},
		"ext escaped":   {"a shell", "ext::sh", "", "starts a program", false},
		"fd":            {"an open file", "fd::17", "", "starts a program", false},
		"helper":        {"any remote helper", "testgit::https://example.com/x", "", "starts a program", false},
		"git":           {"not encrypted", "git://example.com/repo", "", `scheme "git"`, false},
		"ftp":           {"not supported", "ftp://example.com/repo", "", `scheme "ftp"`, false},
		"http":          {"can be changed on the way", "http://example.com/repo", "", "write https", false},
		"http dressed":  {"another host", "http://localhost.example.com/repo", "", "write https", false},
		"scp":           {"no scheme", "git@example.com:org/repo", "", "write https://", false},
		"path":          {"a path is no URL", "/srv/repo", "", "write https://", false},
		"relative":      {"a path is no URL", "../repo", "", "write https://", false},
		"dots":          {"leads elsewhere", "file:///srv/../etc/repo", "", "without ..", false},
		"file host":     {"another host", "file://example.com/repo", "", "no host", false},
		"option":        {"--upload-pack starts a program", "--upload-pack=touch", "", "begins with -", false},
		"host option":   {"ssh reads it as an option", "ssh://-oProxyCommand=touch/x", "", "names no host", false},
		"user option":   {"ssh reads it as an option", "ssh://-oProxyCommand=touch@host/x", "", "begins with -", false},
		"password":      {"a secret in a manifest", "https://user:secret-token@example.com/repo", "", "credentials", true},
		"token":         {"a secret in a manifest", "https://secret-token@example.com/repo", "", "credentials", true},
		"ssh password":  {"a secret in a manifest", "ssh://git:secret-token@example.com/repo", "", "credentials", true},
		"query":         {"often a token", "https://example.com/repo?access_token=secret-token", "", "credentials", true},
		"no repository": {"nothing to clone", "https://example.com/", "", "no repository", false},
		"line break":    {"a header of its own", "https://example.com/a\nb", "", "control character", false},
		"ref option":    {"a program of the server", "https://example.com/r", "--upload-pack=touch", "begins with -", false},
		"ref range":     {"more than a name", "https://example.com/r", "a..b", "no branch", false},
		"refspec":       {"more than a name", "https://example.com/r", "main:refs/heads/x", "no branch", false},
		"reflog":        {"more than a name", "https://example.com/r", "main@{1}", "no branch", false},
		"ref space":     {"more than a name", "https://example.com/r", "a b", "no branch", false},
	} {
		err := Check(c.url, c.ref)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s (%s): %v", name, c.reason, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s (%s): %v, want %q", name, c.reason, err, c.want)
		case errors.Is(err, ErrCredentials) != c.credentials:
			t.Errorf("%s (%s): %v: credentials %t", name, c.reason, err, !c.credentials)
		case err != nil && strings.Contains(err.Error(), "secret-token"):
			t.Errorf("%s: the error holds the secret: %v", name, err)
		}
	}
}

func TestNameIsFitForAFolder(t *testing.T) {
	for url, want := range map[string]string{
		"https://example.com/org/repo.git": "repo", "ssh://git@h/a/b/": "b", "file:///srv/x.git/": "x",
		"https://h/..": "repository", "https://h/a%2f..%2fb": "b", "https://h/-x": "x", "https://h/a b": "a-b",
		"https://h/" + strings.Repeat("a", 300): "repository",
	} {
		if got := Name(url); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}
