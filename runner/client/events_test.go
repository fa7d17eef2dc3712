package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// streams is a server whose streams are written down, one a connection; when
// they are used up it cannot be reached.
type streams struct {
	texts []string
	asked []string
}

func (s *streams) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.URL.Path, "/events") { // it looks whether there is the run
		return answer(404, `{"kind":"Status","reason":"NotFound","details":{"name":"r"}}`), nil
	}
	s.asked = append(s.asked, r.URL.RawQuery)
	text, ok := next(&s.texts)
	switch code, words, _ := strings.Cut(text, " "); {
	case !ok || code == "broken":
		return nil, errors.New("connection reset by peer")
	case strings.HasPrefix(code, "!"):
		a := answer(0, fmt.Sprintf(`{"kind":"Status","reason":%q,"message":"words","details":{"name":"r"}}`, words))
		if _, err := fmt.Sscanf(code, "!%d", &a.StatusCode); err != nil {
			return nil, err
		}
		if a.StatusCode == 429 || a.StatusCode == 503 {
			a.Header.Set("Retry-After", "1")
		}
		return a, nil
	case code == "html":
		return answer(200, "<html>"), nil
	}
	a := answer(200, "")
	a.Header.Set("Content-Type", "text/event-stream; charset=utf-8")
	a.Body = io.NopCloser(strings.NewReader(text))
	if rest, quiet := strings.CutSuffix(text, "quiet"); quiet {
		a.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(strings.NewReader(rest), &pings{": ping\n\n", 40}), io.NopCloser(nil)}
	}
	if rest, silent := strings.CutSuffix(text, "silence"); silent {
		a.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(strings.NewReader(rest), stuck{r.Context()}), io.NopCloser(nil)}
	}
	return a, nil
}

// stuck is a connection on which nothing comes any more.
type stuck struct{ ctx context.Context } //nolint:containedctx // a reader has no other way

func (s stuck) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

// pings is a connection on which a server says every 15 seconds that it is
// there, and which is lost then.
type pings struct {
	text string
	left int
}

func (p *pings) Read(b []byte) (int, error) {
	if p.left--; p.left < 0 {
		return 0, io.ErrUnexpectedEOF
	}
	time.Sleep(15 * time.Second) // in a bubble
	return copy(b, p.text), nil
}

// line is a record of an event as a server writes it.
func line(seq int) string { return ofRun("r-1", seq) }

func ofRun(run string, seq int) string {
	return fmt.Sprintf("id: %d\nevent: step.start\ndata: {\"seq\":%d,\"time\":\"2026-01-01T00:00:00.000Z\",\"type\":\"step.start\",\"run\":%q,\"data\":{\"step\":1}}\n\n", seq, seq, run)
}

func say(data string) string { return "data: " + data + "\n\n" }

func TestStreamTellsEachEventOnce(t *testing.T) {
	end := func(next int) string {
		return say(fmt.Sprintf(`{"type":"stream.end","next":%d,"phase":"Succeeded","reason":"Completed","exitCode":0}`, next))
	}
	cases := map[string]struct {
		reason      string
		from        int64
		short       bool
		children    bool
		texts       []string
		want, asked []string
		code        int
		away        int
		err         string
	}{
		"to its end": {
			reason: "comments, carriage returns, other fields and unknown records change nothing",
			texts:  []string{": ping\r\n\r\nretry: 5\n" + line(1) + say(`{"type":"stream.news"}`) + strings.ReplaceAll(line(2), "\n", "\r\n") + end(3)},
			want:   []string{"1", "2"}, asked: []string{""},
		},
		"in several lines": {
			reason: "the lines of a record are joined",
			texts:  []string{"data: {\"type\":\ndata:\"stream.end\",\"phase\":\"Failed\",\ndata: \"reason\":\"MaxSteps\"}\n\n"},
			asked:  []string{""}, code: 5,
		},
		"cut": {
			reason: "half a record is none, and the next connection begins behind the last whole one",
			texts:  []string{line(1) + line(2)[:40], line(2) + end(3)},
			want:   []string{"1", "2"}, asked: []string{"", "from=2"}, away: 1,
		},
		"from": {
			reason: "a place is kept",
			from:   7, texts: []string{line(7), "broken", "!503", line(8) + end(9)},
			want: []string{"7", "8"}, asked: []string{"from=7", "from=8", "from=8", "from=8"}, away: 3,
		},
		"silent": {
			reason: "a connection on which nothing comes any more is given up",
			texts:  []string{line(1) + "silence", end(2)},
			want:   []string{"1"}, asked: []string{"", "from=2"}, away: 1,
		},
		"quiet": {
			reason: "a run that waits for somebody says nothing for long, and then its server starts anew",
			texts:  []string{line(1) + "quiet", "broken", "broken", line(2) + end(3)},
			want:   []string{"1", "2"}, asked: []string{"", "from=2", "from=2", "from=2"}, away: 3,
		},
		"always waiting": {
			reason: "to wait is not to get anywhere",
			texts:  repeat(say(`{"type":"stream.waiting","phase":"Pending"}`)+say(`{"type":"stream.dropped","message":"no"}`), 60),
			want:   repeat("Pending  ", 30), err: "ends the stream: no",
		},
		"dropped": {
			reason: "it goes on where it was dropped",
			texts:  []string{line(1) + say(`{"type":"stream.dropped","next":2,"message":"agentd stops"}`), line(2) + end(3)},
			want:   []string{"1", "2"}, asked: []string{"", "from=2"}, away: 1,
		},
		"endless words": {
			reason: "as much of them is repeated as a person reads",
			texts:  []string{say(`{"type":"stream.waiting","phase":"`+strings.Repeat("p", 9000)+`"}`) + end(1)},
			want:   []string{strings.Repeat("p", maxMessage) + "…  "}, asked: []string{""},
		},
		"always dropped": {
			reason: "nobody gets anywhere",
			texts:  repeat(say(`{"type":"stream.dropped","next":1,"message":"too slow"}`), 60),
			err:    "ends the stream: too slow",
		},
		"away for good": {
			reason: "two minutes are enough",
			texts:  []string{line(1)}, want: []string{"1"}, err: "cannot be reached",
		},
		"revoked": {
			reason: "a token that was revoked comes back never",
			texts:  []string{line(1) + say(`{"type":"stream.dropped","next":2,"message":"the token was revoked"}`), "!401 Unauthorized"},
			want:   []string{"1"}, asked: []string{"", "from=2"}, away: 1, err: "does not know this token",
		},
		"deleted meanwhile": {
			reason: "the run is gone",
			texts:  []string{line(1), "!404 NotFound"},
			want:   []string{"1"}, asked: []string{"", "from=2"}, away: 1, err: `run "r": not found`,
		},
		"waiting": {
			reason: "what a run waits for is told",
			texts: []string{
				say(`{"type":"stream.waiting","phase":"Pending","reason":"ReferenceNotFound","message":"no agent"}`) +
					say(`{"type":"stream.end","next":1,"phase":"Cancelled","reason":"Cancelled","message":"cancelled before it began"}`),
			},
			want: []string{"Pending ReferenceNotFound no agent"}, asked: []string{""}, code: 1,
		},
		"another attempt": {
			reason: "its events have numbers of their own, and a cut leads back into it",
			texts:  []string{line(1) + line(2) + say(`{"type":"stream.attempt","attempt":2}`) + ofRun("r-2", 1), ofRun("r-2", 2) + end(3)},
			want:   []string{"1", "2", "attempt 2", "1", "2"}, asked: []string{"", "attempt=2&from=2"}, away: 1,
		},
		"another attempt while nobody listened": {
			reason: "the place is one of the attempt before: it is asked for anew",
			texts:  []string{line(1) + line(2), say(`{"type":"stream.attempt","attempt":2}`) + ofRun("r-2", 3), ofRun("r-2", 1) + end(2)},
			want:   []string{"1", "2", "attempt 2", "1"}, asked: []string{"", "from=3", "attempt=2"}, away: 1,
		},
		"begins in a later attempt": {
			reason: "a place is one of the attempt that is told first",
			from:   4, texts: []string{say(`{"type":"stream.attempt","attempt":3}`) + line(4) + end(5)},
			want: []string{"attempt 3", "4"}, asked: []string{"from=4"},
		},
		"short": {
			reason: "what there is now has an end though the run has none",
			short:  true, texts: []string{line(1) + say(`{"type":"stream.end","next":2,"phase":"Running"}`)},
			want: []string{"1"}, asked: []string{"follow=false"}, code: -1,
		},
		"busy at first": {
			reason: "a server that asks for patience is asked again",
			texts:  []string{"!429 TooManyRequests", "!503 ServiceUnavailable", end(1)},
			asked:  []string{"", "", ""},
		},
		"busy": {
			reason: "three times",
			texts:  []string{"!429", "!429", "!429"},
			asked:  []string{"", "", ""}, err: "too much to do: words",
		},
		"no run":      {reason: "nothing is waited for", texts: []string{"!404 NotFound"}, asked: []string{""}, err: `run "r": not found`},
		"no such API": {reason: "an older server", texts: []string{"!404"}, asked: []string{""}, err: "does not serve runs/events"},
		"forbidden":   {reason: "a role", texts: []string{"!403 Forbidden"}, asked: []string{""}, err: "may not do that"},
		"unreachable": {reason: "at once", asked: []string{""}, err: "cannot be reached"},
		"broken":      {reason: "a server's error at once is one", texts: []string{"!500"}, asked: []string{""}, err: "answered 500: words"},
		"no stream":   {reason: "somebody's page", texts: []string{"html"}, asked: []string{""}, err: `of the type "application/json"`},
		"no JSON":     {reason: "a stranger", texts: []string{say("hello")}, asked: []string{""}, err: "no event"},
		"no event":    {reason: "a stranger", texts: []string{say(`{"type":"run.started","seq":"one"}`)}, asked: []string{""}, err: "no event"},
		"no record":   {reason: "a stranger", texts: []string{say(`{"type":"stream.end","exitCode":"zero"}`)}, asked: []string{""}, err: "cannot be read"},
		"endless line": {
			reason: "a line has a limit",
			texts:  []string{"data: " + strings.Repeat("x", maxRecord)}, asked: []string{""}, err: "larger than 17 MiB",
		},
		"endless record": {
			reason: "many lines have the same limit",
			texts:  []string{strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 18)}, asked: []string{""}, err: "larger than 17 MiB",
		},
		"children": {
			reason:   "a connection has no place in the runs below: everything comes again, and is told once",
			children: true, from: 2,
			texts: []string{line(2) + ofRun("c-1", 1) + ofRun("c-1", 2) + line(3) + line(4)[:30], line(2) + ofRun("c-1", 1) + ofRun("c-1", 2) + ofRun("c-1", 3) + line(3) + ofRun("c-2", 1) + line(4) + end(5)},
			want:  []string{"2", "c-1 1", "c-1 2", "3", "c-1 3", "c-2 1", "4"}, asked: []string{"children=true&from=2", "children=true&from=2"}, away: 1,
		},
		"children of an attempt": {
			reason:   "the next attempt is read from its beginning",
			children: true, from: 2,
			texts: []string{line(2) + ofRun("c-1", 1) + say(`{"type":"stream.attempt","attempt":2}`) + ofRun("r-2", 1) + ofRun("c-2", 1), ofRun("r-2", 1) + ofRun("c-2", 1) + ofRun("r-2", 2) + end(3)},
			want:  []string{"2", "c-1 1", "attempt 2", "1", "c-2 1", "2"}, asked: []string{"children=true&from=2", "attempt=2&children=true"}, away: 1,
		},
		"children left out": {
			reason:   "no event is lost without a word",
			children: true, texts: []string{line(1) + ofRun("c-1", 1) + ofRun("c-1", 3)},
			want: []string{"1", "c-1 1"}, asked: []string{"children=true"}, err: "leaves out the events from 2 to 2 of run c-1",
		},
		"goes back":           {reason: "an event comes once", texts: []string{line(1) + line(2) + line(1)}, want: []string{"1", "2"}, asked: []string{""}, err: "goes back to event 1 where 3 is next"},
		"goes back anew":      {reason: "a place that was asked for is kept", texts: []string{line(1) + line(2), line(1)}, want: []string{"1", "2"}, asked: []string{"", "from=3"}, away: 1, err: "goes back to event 1"},
		"leaves out":          {reason: "no event is lost without a word", texts: []string{line(1) + line(4)}, want: []string{"1"}, asked: []string{""}, err: "leaves out the events from 2 to 3"},
		"leaves out the last": {reason: "the end counts them", texts: []string{line(1) + end(3)}, want: []string{"1"}, asked: []string{""}, err: "leaves out the events from 2 to 2"},
		"another run":         {reason: "deleted and made anew", texts: []string{line(1), ofRun("r-9", 2)}, want: []string{"1"}, asked: []string{"", "from=2"}, away: 1, err: "from run r-1 to run r-9"},
		"attempts go back":    {reason: "they count", texts: []string{say(`{"type":"stream.attempt","attempt":2}`) + say(`{"type":"stream.attempt","attempt":1}`)}, want: []string{"attempt 2"}, asked: []string{""}, err: "goes back to attempt 1"},
		"ends too early":      {reason: "a run that goes on has no end", texts: []string{say(`{"type":"stream.end","next":1,"phase":"Suspended"}`)}, asked: []string{""}, err: "ends while the run is Suspended"},
		"deleted":             {reason: "a run that is deleted has a code, and no phase that says so", texts: []string{line(1) + say(`{"type":"stream.end","next":2,"phase":"Running","reason":"Cancelled","exitCode":1}`)}, want: []string{"1"}, asked: []string{""}, code: 1},
		"code out of range":   {reason: "a shell knows 0 to 255; the reason counts", texts: []string{say(`{"type":"stream.end","next":1,"phase":"Failed","reason":"CredentialMissing","exitCode":256}`)}, asked: []string{""}, code: 4},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &streams{texts: c.texts}
				cl, err := New(Endpoint{Context: "x", Server: "https://example.invalid"})
				if err != nil {
					t.Fatal(err)
				}
				cl.http.Transport = s
				var got []string
				away := 0
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				end, err := cl.Events(ctx, EventsOptions{
					Run: Ref{Name: "r"}, From: c.from, Follow: !c.short, Children: c.children, Away: func(error) { away++ },
				}, func(r Record) error {
					got = append(got, word(r))
					return nil
				})
				switch {
				case c.err == "" && (err != nil || end.ExitCode != c.code):
					t.Errorf("%s: %+v, %v, want code %d", c.reason, end, err, c.code)
				case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
					t.Errorf("%s: %+v, %v, want %q", c.reason, end, err, c.err)
				}
				if d := cmp.Diff(c.want, got); d != "" {
					t.Errorf("%s: told (-want +got)\n%s", c.reason, d)
				}
				if c.asked == nil {
					return
				}
				if d := cmp.Diff(c.asked, s.asked); d != "" || away != c.away {
					t.Errorf("%s: away %d, want %d; asked (-want +got)\n%s", c.reason, away, c.away, d)
				}
			})
		})
	}
}

func repeat(text string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = text
	}
	return all
}

func word(r Record) string {
	switch {
	case r.Event != nil:
		return fmt.Sprint(r.Event.Seq)
	case r.Below != nil:
		return fmt.Sprint(r.Below.Run, " ", r.Below.Seq)
	case r.Waiting != nil:
		return r.Waiting.Phase + " " + r.Waiting.Reason + " " + r.Waiting.Message
	}
	return fmt.Sprintf("attempt %d", r.Attempt)
}

func TestStreamEndsWithWhoReadsIt(t *testing.T) {
	full := errors.New("the disk is full")
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, line(1)+line(2))
	})
	seen := 0
	_, err := c.Events(t.Context(), EventsOptions{Run: Ref{Name: "r"}, Follow: true}, func(Record) error {
		seen++
		return full
	})
	if !errors.Is(err, full) || seen != 1 {
		t.Errorf("got %v after %d", err, seen)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	_, err = c.Events(ctx, EventsOptions{Run: Ref{Name: "r"}, Follow: true}, func(Record) error {
		cancel(stopped)
		return nil
	})
	if !errors.Is(err, stopped) {
		t.Errorf("got %v", err)
	}
	if _, err := c.Events(t.Context(), EventsOptions{Run: Ref{Name: "../x"}}, nil); err == nil || !strings.Contains(err.Error(), "is no name") {
		t.Errorf("got %v", err)
	}
}

// TestRequestsAboutRunsAreThoseOfTheContract pins method, path and body.
func TestRequestsAboutRunsAreThoseOfTheContract(t *testing.T) {
	var got []string
	reply := ""
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Method+" "+r.URL.Path+" "+r.Header.Get("Content-Type")+" "+readAll(r))
		fmt.Fprint(w, reply)
	})
	reply = `{"kind":"Run","metadata":{"name":"a-x"}}`
	run, err := c.PromptRun(t.Context(), Ref{Namespace: "web", Name: "a"}, Prompt{Prompt: "go", Inputs: map[string]string{"k": "v"}})
	if err != nil || run.Name() != "a-x" {
		t.Errorf("got %v, %v", run, err)
	}
	if _, err := c.Cancel(t.Context(), Ref{Name: "a-x"}); err != nil {
		t.Error(err)
	}
	reply = `{"id":"m1"}`
	if id, err := c.SendMessage(t.Context(), Ref{Name: "a-x"}, "and <then>?"); id != "m1" || err != nil {
		t.Errorf("got %q, %v", id, err)
	}
	if _, err := c.PromptRun(t.Context(), Ref{Name: "a"}, Prompt{}); err == nil || !strings.Contains(err.Error(), "no Run") {
		t.Errorf("an answer that is no Run: got %v", err)
	}
	want := []string{
		`POST /apis/agentctl.dev/v1alpha1/namespaces/web/agents/a/runs application/json {"prompt":"go","inputs":{"k":"v"}}`,
		`POST /apis/agentctl.dev/v1alpha1/namespaces/default/runs/a-x/cancel application/json {}`,
		`POST /apis/agentctl.dev/v1alpha1/namespaces/default/runs/a-x/messages application/json {"text":"and \u003cthen\u003e?"}`,
		`POST /apis/agentctl.dev/v1alpha1/namespaces/default/agents/a/runs application/json {}`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestRunThatHasEndedSaysSoItself(t *testing.T) {
	c := serve(t, status(409, "Conflict", "run \"a-x\" has ended: Succeeded", ""))
	_, err := c.Cancel(t.Context(), Ref{Name: "a-x"})
	if err == nil || !strings.Contains(err.Error(), "has ended: Succeeded") || Hint(err) != "" {
		t.Errorf("got %v, hint %q", err, Hint(err))
	}
}

// FuzzRecords: whatever a server sends, a reader returns, and holds no more than
// its limit.
func FuzzRecords(f *testing.F) {
	f.Add([]byte(line(1) + ": ping\n\ndata\ndata:\r\n\r\n"))
	f.Add([]byte("\n\n\ndata: a\ndata: b\n\nid: 7\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		in := newRecords(strings.NewReader(string(text)), func() {})
		for {
			data, err := in.next()
			if err != nil {
				if !errors.Is(err, io.EOF) {
					t.Fatal(err)
				}
				return
			}
			if len(data) > len(text) {
				t.Fatalf("%q became %q", text, data)
			}
		}
	})
}
