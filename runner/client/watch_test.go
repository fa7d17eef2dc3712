package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// script is a server whose lists and watches are written down; what is used up
// ends with a watch that says nothing.
type script struct {
	t       *testing.T
	mu      sync.Mutex
	lists   []string
	watches []string
	asked   []string
}

func next(l *[]string) (string, bool) {
	if len(*l) == 0 {
		return "", false
	}
	first := (*l)[0]
	*l = (*l)[1:]
	return first, true
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.URL.Query()
	if q.Get("watch") == "" {
		s.asked = append(s.asked, "list")
		body, ok := next(&s.lists)
		if !ok {
			s.t.Error("one list too many")
		}
		return answer(200, body), nil
	}
	s.asked = append(s.asked, "watch "+q.Get("resourceVersion"))
	body, ok := next(&s.watches)
	switch {
	case !ok:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case body == "quiet":
		a := answer(200, "")
		a.Body = io.NopCloser(&pings{"", 40})
		return a, nil
	case body == "broken":
		return nil, errors.New("connection reset by peer")
	case strings.HasPrefix(body, "!"):
		var code int
		_, _ = fmt.Sscanf(body, "!%d", &code)
		return answer(code, fmt.Sprintf(`{"kind":"Status","code":%d,"reason":"x","message":"m"}`, code)), nil
	}
	return answer(200, body), nil
}

func answer(code int, body string) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}
}

func list(version string, items ...string) string {
	return fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"items":[%s]}`, version, strings.Join(items, ","))
}

func item(name, version string) string {
	return fmt.Sprintf(`{"kind":"Agent","metadata":{"name":%q,"resourceVersion":%q}}`, name, version)
}

func told(kind, name, version string) string {
	return fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", kind, item(name, version))
}

func TestWatchGoesOnWhereItStood(t *testing.T) {
	gone := `{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}` + "\n"
	cases := map[string]struct {
		reason         string
		lists, watches []string
		want, asked    []string
		err            string
	}{
		"a connection that ends": {
			reason: "the next one begins at the version seen last",
			lists:  []string{list("5", item("a", "3"))},
			watches: []string{
				told("MODIFIED", "a", "6") + told("ADDED", "b", "7"), told("DELETED", "a", "8"),
			},
			want:  []string{"ADDED a 3", "MODIFIED a 6", "ADDED b 7", "DELETED a 8"},
			asked: []string{"list", "watch 5", "watch 7", "watch 8"},
		},
		"a bookmark": {
			reason:  "it says nothing, but moves the place",
			lists:   []string{list("5")},
			watches: []string{told("BOOKMARK", "", "90")},
			asked:   []string{"list", "watch 5", "watch 90"},
		},
		"too old, as an event": {
			reason:  "a second list tells only what is new, what has changed and what has gone",
			lists:   []string{list("5", item("a", "1"), item("b", "2"), item("c", "3")), list("50", item("a", "1"), item("c", "40"), item("d", "41"))},
			watches: []string{gone},
			want:    []string{"ADDED a 1", "ADDED b 2", "ADDED c 3", "MODIFIED c 40", "ADDED d 41", "DELETED b 2"},
			asked:   []string{"list", "watch 5", "list", "watch 50"},
		},
		"too old, at once": {
			reason:  "410 as an answer is the same",
			lists:   []string{list("5", item("a", "1")), list("50", item("a", "1"))},
			watches: []string{"!410"},
			want:    []string{"ADDED a 1"},
			asked:   []string{"list", "watch 5", "list", "watch 50"},
		},
		"broken and busy": {
			reason:  "both pass",
			lists:   []string{list("5")},
			watches: []string{"broken", "!503", "!429", told("ADDED", "a", "6")},
			want:    []string{"ADDED a 6"},
			asked:   []string{"list", "watch 5", "watch 5", "watch 5", "watch 5", "watch 6"},
		},
		"quiet for long": {
			reason:  "a server that had nothing to say was there",
			lists:   []string{list("5")},
			watches: []string{"quiet", "broken", "broken", told("ADDED", "a", "6")},
			want:    []string{"ADDED a 6"},
			asked:   []string{"list", "watch 5", "watch 5", "watch 5", "watch 5", "watch 6"},
		},
		"away for good": {
			reason:  "a minute is enough",
			lists:   []string{list("5")},
			watches: slices.Repeat([]string{"broken"}, 18),
			asked:   append([]string{"list"}, slices.Repeat([]string{"watch 5"}, 18)...),
			err:     "cannot be reached",
		},
		"refused": {
			reason:  "a refusal does not pass",
			lists:   []string{list("5")},
			watches: []string{"!403"},
			asked:   []string{"list", "watch 5"},
			err:     "may not do that",
		},
		"no JSON": {
			reason:  "a stranger",
			lists:   []string{list("5")},
			watches: []string{"hello\n"},
			asked:   []string{"list", "watch 5"},
			err:     "no JSON",
		},
		"no object": {
			reason:  "a stranger, too",
			lists:   []string{list("5")},
			watches: []string{`{"type":"ADDED","object":7}` + "\n"},
			asked:   []string{"list", "watch 5"},
			err:     "no object",
		},
		"endless line": {
			reason:  "a line has a limit",
			lists:   []string{list("5")},
			watches: []string{strings.Repeat("x", maxEvent+10)},
			asked:   []string{"list", "watch 5"},
			err:     "larger than",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{t: t, lists: c.lists, watches: c.watches}
				cl, err := New(Endpoint{Context: "x", Server: "https://example.invalid"})
				if err != nil {
					t.Fatal(err)
				}
				cl.http.Transport = s
				var got []string
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
				defer cancel()
				err = cl.Watch(ctx, WatchOptions{ListOptions: ListOptions{Kind: "Agent"}}, func(x Change) bool {
					got = append(got, x.Type+" "+x.Object.Name()+" "+x.Object.ResourceVersion())
					return true
				})
				if c.err == "" && !errors.Is(err, context.DeadlineExceeded) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
					t.Errorf("%s: error %v, want %q", c.reason, err, c.err)
				}
				if d := cmp.Diff(c.want, got); d != "" {
					t.Errorf("%s: told (-want +got)\n%s", c.reason, d)
				}
				if d := cmp.Diff(c.asked, s.asked); d != "" {
					t.Errorf("%s: asked (-want +got)\n%s", c.reason, d)
				}
			})
		})
	}
}

func TestAwaitEndsWithTheObjectThatWasThere(t *testing.T) {
	withUID := func(uid string) string {
		return fmt.Sprintf(`{"kind":"Agent","metadata":{"name":"a","uid":%q,"resourceVersion":"9"}}`, uid)
	}
	for name, x := range map[string]struct {
		reason         string
		now            string // "" is not found
		lists, watches []string
		goal           Goal
		ends           bool
	}{
		"gone already":         {reason: "nothing to wait for", goal: Gone, ends: true},
		"deleted":              {reason: "the event ends it", now: withUID("1"), lists: []string{list("5", withUID("1"))}, watches: []string{told("DELETED", "a", "9")}, goal: Gone, ends: true},
		"gone in between":      {reason: "an empty list ends it", now: withUID("1"), lists: []string{list("5")}, goal: Gone, ends: true},
		"made anew":            {reason: "another one of the name is not waited for", now: withUID("1"), lists: []string{list("5", withUID("2"))}, goal: Gone, ends: true},
		"still there":          {reason: "a change is no end", now: withUID("1"), lists: []string{list("5", withUID("1"))}, goal: Gone},
		"created":              {reason: "the event ends it", lists: []string{list("5")}, watches: []string{told("ADDED", "a", "9")}, goal: Exists, ends: true},
		"not created":          {reason: "an empty list does not end it", lists: []string{list("5")}, goal: Exists},
		"there from the start": {reason: "no watch at all", now: withUID("1"), goal: Exists, ends: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{t: t, lists: x.lists, watches: x.watches}
				cl, err := New(Endpoint{Context: "x", Server: "https://example.invalid"})
				if err != nil {
					t.Fatal(err)
				}
				cl.http.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
					if !strings.HasSuffix(r.URL.Path, "/agents/a") {
						return s.RoundTrip(r)
					}
					if x.now == "" {
						return answer(404, `{"kind":"Status","reason":"NotFound","details":{"name":"a"}}`), nil
					}
					return answer(200, x.now), nil
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := cl.Await(ctx, agentRef, x.goal); (err == nil) != x.ends {
					t.Errorf("%s: %v", x.reason, err)
				}
			})
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
