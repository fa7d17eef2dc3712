package web

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"agentctl.dev/agentctl/plugins/sdk"
)

const (
	// robotsVariable is set to "ignore" by a manifest whose author may fetch all the same.
	robotsVariable = "WEBFETCH_ROBOTS"
	// product is how a robots.txt names this program.
	product = "agentctl"
	// robotsAge is how long an answer counts, and maxRobots how many are kept.
	robotsAge = 10 * time.Minute
	maxRobots = 64
)

// allowed returns an error if the robots.txt of a server asks this program to leave an
// address alone (RFC 9309). An answer 4xx means that there is no such wish; a server that
// cannot say is left alone.
func (s *set) allowed(ctx context.Context, c *client, u *url.URL) error {
	if s.ignoreRobots || u.Path == "/robots.txt" {
		return nil
	}
	rules, err := s.robots.of(origin(u), func() (robots, error) { return s.readRobots(ctx, c, u) })
	if err != nil {
		return err
	}
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}
	if line, ok := rules.allow(path); !ok {
		return sdk.Errorf("robots.txt of %s asks programs not to fetch this address (%s). Whoever may fetch it all the same declares %s=ignore in the env of the Tool", u.Host, brief(line), robotsVariable)
	}
	return nil
}

func (s *set) readRobots(ctx context.Context, c *client, page *url.URL) (robots, error) {
	ctx, cancel := context.WithTimeout(ctx, s.limits.robotsTime)
	defer cancel()
	u := &url.URL{Scheme: page.Scheme, Host: page.Host, Path: "/robots.txt"}
	for range s.limits.redirects + 1 {
		resp, err := c.get(ctx, u)
		if err != nil {
			return nil, sdk.Errorf("read %s, which says whether programs may fetch: %w", u, err)
		}
		to, moved := redirected(resp, u)
		if moved && to != nil && origin(to) == origin(u) {
			_ = resp.Body.Close()
			u = to
			continue
		}
		text, err := readAll(resp, s.limits.robots, s.limits.robots)
		_ = resp.Body.Close()
		switch {
		case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests:
			return nil, sdk.Errorf("%s answers %d: what programs may fetch is not known, so nothing was fetched", u, resp.StatusCode)
		case resp.StatusCode != http.StatusOK:
			return nil, nil
		case err != nil:
			return nil, sdk.Errorf("read %s, which says whether programs may fetch: %w", u, err)
		}
		return parseRobots(text.content, product), nil
	}
	return nil, nil
}

// robotsRule is a line of a robots.txt.
type robotsRule struct {
	pattern string
	allow   bool
}

// robots are the rules for one program.
type robots []robotsRule

// maxRules bounds the rules of one robots.txt, and maxRule the length of each.
const (
	maxRules = 2000
	maxRule  = 1024
)

// parseRobots returns the rules of the groups for a program, or else of those for all.
func parseRobots(text []byte, name string) robots {
	var own, all robots
	forOwn, forAll, agents, named := false, false, false, false
	sc := bufio.NewScanner(bytes.NewReader(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))))
	sc.Buffer(nil, 64<<10) // what follows a longer line is not read
	for sc.Scan() {
		line, _, _ := strings.Cut(sc.Text(), "#")
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		value = strings.TrimSpace(value)
		switch strings.ToLower(strings.TrimSpace(key)) {
		case "user-agent":
			if !agents {
				forOwn, forAll = false, false
			}
			agents = true
			forAll = forAll || value == "*"
			if strings.EqualFold(value, name) {
				forOwn, named = true, true
			}
		case "allow", "disallow":
			agents = false
			if value == "" || len(value) > maxRule || len(own)+len(all) >= maxRules {
				continue
			}
			r := robotsRule{pattern: value, allow: strings.EqualFold(strings.TrimSpace(key), "allow")}
			if forOwn {
				own = append(own, r)
			}
			if forAll {
				all = append(all, r)
			}
		}
	}
	if named {
		return own
	}
	return all
}

// allow reports whether a path may be fetched, and the line that refuses it. The longest
// pattern counts, of two equally long ones the one that allows.
func (r robots) allow(path string) (line string, ok bool) {
	longest, ok := -1, true
	for _, rule := range r {
		if len(rule.pattern) < longest || len(rule.pattern) == longest && !rule.allow || !rule.matches(path) {
			continue
		}
		longest, ok = len(rule.pattern), rule.allow
		line = fmt.Sprintf("Disallow: %s", rule.pattern)
	}
	return line, ok
}

// matches compares a path with a pattern, in which * is any text and a final $ the end.
// Each star takes the first place that fits: the work is that of one search.
func (r robotsRule) matches(path string) bool {
	pattern, end := strings.CutSuffix(r.pattern, "$")
	parts := strings.Split(pattern, "*")
	rest, ok := strings.CutPrefix(path, parts[0])
	if !ok {
		return false
	}
	for i, part := range parts[1:] {
		if end && i == len(parts)-2 {
			return strings.HasSuffix(rest, part)
		}
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return !end || rest == ""
}

// robotsBook keeps what servers have said for a while.
type robotsBook struct {
	now   func() time.Time
	mu    sync.Mutex
	known map[string]kept
}

type kept struct {
	rules robots
	at    time.Time
}

func newRobotsBook(now func() time.Time) *robotsBook {
	return &robotsBook{now: now, known: map[string]kept{}}
}

// of returns the rules of a server. Two calls at the same time may both ask for them.
func (b *robotsBook) of(server string, read func() (robots, error)) (robots, error) {
	b.mu.Lock()
	k, ok := b.known[server]
	b.mu.Unlock()
	if ok && b.now().Sub(k.at) < robotsAge {
		return k.rules, nil
	}
	rules, err := read()
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.known) >= maxRobots {
		clear(b.known)
	}
	b.known[server] = kept{rules, b.now()}
	return rules, nil
}
