// Package giturl decides which URLs and refs of a manifest may be given to git.
package giturl

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// maxAddress bounds a URL and a ref.
const maxAddress = 2048

// ErrCredentials is a URL that holds a user with a password, or a token.
var ErrCredentials = errors.New("the URL holds credentials, and a manifest is no place for them")

// Check refuses what must not be given to git: a URL whose scheme starts a program, one
// with credentials, and texts that git would read as options. Its errors name no part of a
// URL that may be secret.
func Check(address, ref string) error {
	if _, err := Parse(address); err != nil {
		return err
	}
	return CheckRef(ref)
}

// Parse returns the URL, if git may be given it.
func Parse(address string) (*url.URL, error) {
	switch {
	case address == "":
		return nil, errors.New("the URL is empty")
	case len(address) > maxAddress:
		return nil, fmt.Errorf("the URL has more than %d characters", maxAddress)
	case strings.HasPrefix(address, "-"):
		return nil, errors.New("the URL begins with -: git would read it as an option")
	case strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }):
		return nil, errors.New("the URL has a space, a backslash or a control character")
	}
	if helper, _, ok := strings.Cut(address, "::"); ok && !strings.Contains(helper, "/") {
		return nil, fmt.Errorf("the transport %q:: is refused: it starts a program", clip(helper))
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" {
		return nil, errors.New("it is no URL with a scheme: write https://HOST/PATH, ssh://USER@HOST/PATH, or file:///PATH of this host")
	}
	if u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return nil, fmt.Errorf("a query or fragment in the URL is refused: %w", ErrCredentials)
	}
	return u, checkScheme(u)
}

func checkScheme(u *url.URL) error {
	_, secret := u.User.Password()
	switch u.Scheme {
	case "https", "http":
		if u.User != nil {
			return ErrCredentials
		}
		if u.Scheme == "http" && !loopback(u.Hostname()) {
			return errors.New("http is refused, except to this host: what arrives could be changed on the way; write https")
		}
	case "ssh":
		if secret {
			return ErrCredentials
		}
		if strings.HasPrefix(u.User.Username(), "-") {
			return errors.New("the user in the URL begins with -: ssh would read it as an option")
		}
	case "file":
		if u.Host != "" || u.User != nil || !path.IsAbs(u.Path) || path.Clean(u.Path) != strings.TrimSuffix(u.Path, "/") {
			return errors.New("a file URL names an absolute path without .. and no host: file:///srv/repo.git")
		}
		return nil
	default:
		return fmt.Errorf("the scheme %q is refused: use https, ssh, or file for a repository of this host", clip(u.Scheme))
	}
	if u.Hostname() == "" || strings.HasPrefix(u.Host, "-") || strings.Trim(u.Path, "/") == "" {
		return errors.New("the URL names no host or no repository")
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// refForm is what git accepts in the name of a branch or tag, without what means more
// than a name.
var refForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./+@#=,-]*$`) })

// CheckRef refuses a branch, tag or commit that cannot be one; "" is the default branch.
func CheckRef(ref string) error {
	switch {
	case ref == "":
		return nil
	case strings.HasPrefix(ref, "-"):
		return errors.New("the ref begins with -: git would read it as an option")
	case len(ref) > maxAddress || !refForm().MatchString(ref) || strings.Contains(ref, "..") || strings.Contains(ref, "//") || strings.Contains(ref, "@{") ||
		strings.HasSuffix(ref, "/") || strings.HasSuffix(ref, ".lock") || strings.HasSuffix(ref, "."):
		return fmt.Errorf("the ref %q is no branch, tag or commit", clip(ref))
	}
	return nil
}

var commitForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`) })

// IsCommit reports whether a text is the whole id of a commit.
func IsCommit(id string) bool { return commitForm().MatchString(id) }

// IsDirect reports whether a ref is asked for as it is: a commit, or a full name.
func IsDirect(ref string) bool { return IsCommit(ref) || strings.HasPrefix(ref, "refs/") }

var unsafeName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^A-Za-z0-9._-]+`) })

// Name is the name of a repository, as folders are called after it.
func Name(address string) string {
	name := address
	if u, err := url.Parse(address); err == nil {
		name = u.Path
	}
	name = filepath.Base(strings.TrimSuffix(strings.TrimSuffix(name, "/"), ".git"))
	name = strings.Trim(unsafeName().ReplaceAllString(name, "-"), ".-")
	if name == "" || len(name) > 100 {
		return "repository"
	}
	return name
}

func clip(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}
