package client

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// serve starts a server over TLS and returns a client that trusts it.
func serve(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewTLSServer(h)
	t.Cleanup(s.Close)
	c, err := New(Endpoint{Context: "test", Server: s.URL, CA: certPEM(s), Token: "secret-token"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func certPEM(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func status(code int, reason, message string, more string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":%q%s}`, code, reason, message, more)
	}
}

func text(code int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
}

const agentJSON = `{"apiVersion":"agentctl.dev/v1alpha1","kind":"Agent","metadata":{"name":"a","namespace":"default","resourceVersion":"7"}}`

var agentRef = Ref{Kind: "Agent", Name: "a"}

func TestAnswersOfServersBecomeWords(t *testing.T) {
	cases := map[string]struct {
		reason  string
		handler http.HandlerFunc
		want    string // in the error; "": no error is expected
		hint    string
	}{
		"object": {
			reason:  "an object is an object",
			handler: text(200, agentJSON),
		},
		"missing": {
			reason:  "NotFound with the name of the object is about the object",
			handler: status(404, "NotFound", `agents.agentctl.dev "a" not found`, `,"details":{"name":"a","kind":"agents"}`),
			want:    `agent "a": not found`, hint: "agentctl get agents",
		},
		"no such namespace": {
			reason:  "a cluster has objects for namespaces, and says of a create that this one is missing",
			handler: status(404, "NotFound", `namespaces "n" not found`, `,"details":{"name":"n","kind":"namespaces"}`),
			want:    `has no namespace "n"`, hint: "kubectl create namespace n",
		},
		"no such path": {
			reason:  "a server without our kinds says NotFound, too, and names nothing",
			handler: status(404, "NotFound", "the server could not find the requested resource", `,"details":{}`),
			want:    "does not serve agentctl.dev", hint: "get-contexts",
		},
		"page not found": {
			reason:  "a server that is none of Kubernetes",
			handler: text(404, "404 page not found\n"),
			want:    "does not serve agentctl.dev", hint: "get-contexts",
		},
		"unauthorized": {
			reason:  "a token that was rotated",
			handler: status(401, "Unauthorized", "Unauthorized", ""),
			want:    "does not know this token", hint: "config view",
		},
		"forbidden": {
			reason:  "the role is told by the server",
			handler: status(403, "Forbidden", "role viewer may not do this", ""),
			want:    "may not do that: role viewer", hint: "ask an admin of context",
		},
		"managed": {
			reason: "each field is told with who manages it",
			handler: status(409, "Conflict", "Apply failed", `,"details":{"name":"a","causes":[`+
				`{"reason":"FieldManagerConflict","message":"conflict with \"kubectl\" using agentctl.dev/v1alpha1","field":".spec.mode"},`+
				`{"reason":"FieldManagerConflict","message":"conflict with \"ui\"","field":".spec.limits.maxSteps"}]}`),
			want: `spec.mode is managed by "kubectl"; spec.limits.maxSteps is managed by "ui"`, hint: "--force-conflicts",
		},
		"changed": {
			reason:  "a version that is not the newest",
			handler: status(409, "Conflict", "the object has been modified", ""),
			want:    "changed it in the meantime", hint: "anew",
		},
		"invalid": {
			reason: "every field is told",
			handler: status(422, "Invalid", "Agent is invalid", `,"details":{"causes":[{"reason":"FieldValueInvalid","field":"spec.mode","message":"Invalid value: \"X\": no"},`+
				`{"reason":"FieldValueRequired","field":"spec.modelRef","message":"Required value"}]}`),
			want: `spec.mode: "X": no; spec.modelRef: Required value`,
		},
		"too large": {
			reason:  "what etcd does not take",
			handler: status(413, "RequestEntityTooLarge", "limit is 3145728", ""),
			want:    "larger than what a control plane keeps",
		},
		"broken inside": {
			reason:  "a server's own words are told",
			handler: status(500, "InternalError", "etcdserver: no space", ""),
			want:    "answered 500: etcdserver: no space",
		},
		"web page": {
			reason:  "somebody's error page is not repeated",
			handler: text(502, "<html><body>"+strings.Repeat("x", 5000)+"</body></html>", "Content-Type", "text/html"),
			want:    "answered 502: Bad Gateway",
		},
		"redirect": {
			reason:  "the token must not follow",
			handler: text(302, "", "Location", "https://example.com/"),
			want:    "sends us elsewhere (302)",
		},
		"broken JSON": {
			reason:  "half an object is none",
			handler: text(200, `{"kind":"Agent",`),
			want:    "its answer is no object",
		},
		"null":  {reason: "nothing is no object", handler: text(200, `null`), want: "its answer is no object"},
		"list":  {reason: "a list is no object", handler: text(200, `[1,2]`), want: "its answer is no object"},
		"name":  {reason: "a name that clears the screen", handler: text(200, `{"kind":"Agent","metadata":{"name":"a\u001b[2J"}}`), want: `its metadata.name is "a\x1b[2J"`},
		"lines": {reason: "a name that is two", handler: text(200, `{"kind":"Agent","metadata":{"name":"a\nb"}}`), want: `its metadata.name is "a\nb"`},
		"empty": {reason: "nothing at all", handler: text(200, ``), want: "its answer is no object"},
		"ten megabytes": {
			reason:  "no answer about one object is that long",
			handler: text(200, `{"x":"`+strings.Repeat("x", 10<<20)+`"}`),
			want:    "larger than 4 MiB",
		},
		"long message": {
			reason:  "a server cannot flood a terminal",
			handler: status(500, "InternalError", strings.Repeat("x", 100000), ""),
			want:    "…",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := serve(t, c.handler).Get(t.Context(), agentRef)
			if c.want == "" {
				if err != nil {
					t.Fatalf("%s: %v", c.reason, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 3000 {
				t.Errorf("%s: got %.300v, want %q in it", c.reason, err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret-token") {
				t.Error("the token is told")
			}
			if got := Hint(err); c.hint != "" && !strings.Contains(got, c.hint) {
				t.Errorf("%s: hint %q, want %q in it", c.reason, got, c.hint)
			}
		})
	}
}

func TestTokenDoesNotFollowARedirect(t *testing.T) {
	var leaked atomic.Bool
	other := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, _ *http.Request) { leaked.Store(true) }))
	defer other.Close()
	c := serve(t, text(307, "", "Location", other.URL))
	if _, err := c.Apply(t.Context(), Object{"kind": "Agent", "metadata": map[string]any{"name": "a"}}, WriteOptions{}); err == nil {
		t.Error("a redirect is no success")
	}
	if leaked.Load() {
		t.Error("the other server was asked")
	}
}

func TestRequestsAreWhatAnAPIServerReads(t *testing.T) {
	type seen struct{ method, path, query, contentType, body string }
	var got seen
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var body strings.Builder
		_, _ = fmt.Fprint(&body, readAll(r))
		got = seen{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get("Content-Type"), body.String()}
		if r.Header.Get("Authorization") != "Bearer secret-token" {
			t.Error("no token")
		}
		fmt.Fprint(w, agentJSON)
	})
	const at = "/apis/agentctl.dev/v1alpha1/namespaces/"
	agent := Object{"kind": "Agent", "metadata": map[string]any{"name": "a", "namespace": "n"}}
	for name, x := range map[string]struct {
		reason string
		do     func(context.Context) error
		want   seen
	}{
		"apply": {
			"force is off unless asked for",
			func(ctx context.Context) error { _, err := c.Apply(ctx, agent, WriteOptions{}); return err },
			seen{"PATCH", at + "n/agents/a", "fieldManager=agentctl&fieldValidation=Strict&force=false", "application/apply-patch+yaml", `{"kind":"Agent","metadata":{"name":"a","namespace":"n"}}`},
		},
		"dry run by force": {
			"both are words of the query",
			func(ctx context.Context) error {
				_, err := c.Apply(ctx, agent, WriteOptions{DryRun: true, Force: true})
				return err
			},
			seen{"PATCH", at + "n/agents/a", "dryRun=All&fieldManager=agentctl&fieldValidation=Strict&force=true", "application/apply-patch+yaml", `{"kind":"Agent","metadata":{"name":"a","namespace":"n"}}`},
		},
		"merge": {
			"null removes a key",
			func(ctx context.Context) error {
				_, err := c.Merge(ctx, agentRef, map[string]any{"a": nil}, WriteOptions{})
				return err
			},
			seen{"PATCH", at + "default/agents/a", "fieldManager=agentctl&fieldValidation=Strict", "application/merge-patch+json", `{"a":null}`},
		},
		"delete": {
			"only the object that was seen",
			func(ctx context.Context) error {
				return c.Delete(ctx, agentRef, DeleteOptions{Propagation: Orphan, UID: "u"})
			},
			seen{"DELETE", at + "default/agents/a", "", "application/json", `{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"u"},"propagationPolicy":"Orphan"}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := x.do(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got != x.want {
				t.Errorf("%s:\ngot  %+v\nwant %+v", x.reason, got, x.want)
			}
		})
	}
}

func TestNamesCannotLeadElsewhere(t *testing.T) {
	c := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the server was asked") })
	for _, name := range []string{"..", ".", "a/b", "../../../../api", "a%2fb"} {
		_, err := c.Get(t.Context(), Ref{Kind: "Agent", Name: name})
		_, inNamespace := c.Get(t.Context(), Ref{Kind: "Agent", Name: "a", Namespace: name})
		_, table := c.TableOf(t.Context(), Ref{Kind: "Agent", Name: name})
		_, _, all := c.List(t.Context(), ListOptions{Kind: "Agent", Namespace: name})
		for _, err := range []error{err, inNamespace, table, all} {
			if err == nil || !strings.Contains(err.Error(), "is no name") {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
}

func readAll(r *http.Request) string {
	var b strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := r.Body.Read(buf)
		b.Write(buf[:n])
		if err != nil {
			return b.String()
		}
	}
}

func TestSlowServerMeetsTheCallersDeadline(t *testing.T) {
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := c.Get(ctx, agentRef)
	if err == nil || !strings.Contains(err.Error(), "does not answer in time") {
		t.Errorf("got %v", err)
	}
}

func TestCallersEndIsTheCause(t *testing.T) {
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithCancelCause(t.Context())
	mine := errors.New("a signal")
	time.AfterFunc(20*time.Millisecond, func() { cancel(mine) })
	if _, err := c.Get(ctx, agentRef); !errors.Is(err, mine) {
		t.Errorf("got %v", err)
	}
}

func TestServerThatAsksForPatienceIsAskedAgain(t *testing.T) {
	var asked atomic.Int32
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) < 2 {
			w.Header().Set("Retry-After", "1")
			status(429, "TooManyRequests", "later", "")(w, r)
			return
		}
		fmt.Fprint(w, agentJSON)
	})
	if _, err := c.Get(t.Context(), agentRef); err != nil || asked.Load() != 2 {
		t.Errorf("asked %d times: %v", asked.Load(), err)
	}
}

func TestUnreachableServersAreTold(t *testing.T) {
	closed := httptest.NewTLSServer(http.NotFoundHandler())
	closed.Close()
	stranger := httptest.NewTLSServer(http.NotFoundHandler())
	defer stranger.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	for name, x := range map[string]struct{ server, want string }{
		"nobody listens":    {closed.URL, "nobody listens there"},
		"not who it was":    {stranger.URL, "certificate that nobody we trust has signed"},
		"no TLS":            {strings.Replace(plain.URL, "http:", "https:", 1), "cannot be reached"},
		"no such host":      {"https://nothing.invalid:1", "cannot be reached"},
		"plain text beyond": {"http://192.0.2.1:80", "is not https"},
		"no address":        {"::", "is no address"},
		"with a password":   {"https://u:p@127.0.0.1:1", "more than a host"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := New(Endpoint{Context: "x", Server: x.server})
			if err == nil {
				defer c.Close()
				_, err = c.Get(t.Context(), agentRef)
			}
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("got %v, want %q in it", err, x.want)
			}
		})
	}
}

func TestListJoinsChunksAndStopsAtOneThatIsGone(t *testing.T) {
	page := func(name, next string) string {
		return fmt.Sprintf(`{"kind":"AgentList","metadata":{"resourceVersion":"9","continue":%q},"items":[{"metadata":{"name":%q}}]}`, next, name)
	}
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("limit") != "500" || r.URL.Query().Get("labelSelector") != "a=b" {
			t.Errorf("asked %s", r.URL.RawQuery)
		}
		switch r.URL.Query().Get("continue") {
		case "":
			fmt.Fprint(w, page("a", "2"))
		case "2":
			fmt.Fprint(w, page("b", ""))
		}
	})
	all, version, err := c.List(t.Context(), ListOptions{Kind: "Agent", Labels: "a=b"})
	if err != nil || len(all) != 2 || all[1].Name() != "b" || all[1].Kind() != "Agent" || version != "9" {
		t.Errorf("got %v %q %v", all, version, err)
	}
	old := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("continue") == "" {
			fmt.Fprint(w, page("a", "2"))
			return
		}
		status(410, "Expired", "The provided continue parameter is too old", "")(w, r)
	})
	if all, _, err := old.List(t.Context(), ListOptions{Kind: "Agent"}); err == nil || all != nil {
		t.Errorf("half a list is none: %v, %v", all, err)
	}
}

// TestChangeIsTriedAgainForWhatIsThereNow: others write, too.
func TestChangeIsTriedAgainForWhatIsThereNow(t *testing.T) {
	for _, tt := range []struct {
		others int // how often somebody comes in between
		wins   bool
	}{{0, true}, {3, true}, {rounds, false}} {
		version := 1
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, item("a", strconv.Itoa(version)))
		})
		tries := 0
		_, err := c.Change(t.Context(), Object{"kind": "Agent", "metadata": map[string]any{"name": "a", "resourceVersion": "1"}}, func(now Object) (Object, error) {
			if got := now.ResourceVersion(); got != strconv.Itoa(version) {
				t.Errorf("try %d is for version %s, not %d", tries, got, version)
			}
			if tries++; tries <= tt.others {
				version++
				return nil, &StatusError{Reason: "Conflict"}
			}
			return now, nil
		})
		if (err == nil) != tt.wins || !tt.wins && !Conflict(err) {
			t.Errorf("%d others: %v", tt.others, err)
		}
	}
	refused := errors.New("no")
	if _, err := serve(t, status(500, "", "", "")).Change(t.Context(), Object{}, func(Object) (Object, error) { return nil, refused }); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
}

func TestApplyTellsInOrderWhatBecameOfEach(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		if name == "agents" { // many are listed at once
			var items []string
			for i := range 40 {
				if i%4 != 0 {
					items = append(items, item([]string{"new", "bad", "same", "other"}[i%4]+strconv.Itoa(i), "1"))
				}
			}
			fmt.Fprint(w, list("1", items...))
			return
		}
		answer := Object{"kind": "Agent", "metadata": map[string]any{"name": name, "resourceVersion": map[string]string{"GET": "1", "PATCH": "2"}[r.Method]}}
		switch {
		case strings.HasPrefix(name, "new") && r.Method == "GET":
			status(404, "NotFound", "", `,"details":{"name":"x"}`)(w, r)
			return
		case strings.HasPrefix(name, "bad") && r.Method == "PATCH":
			status(422, "Invalid", "no", "")(w, r)
			return
		case strings.HasPrefix(name, "same"): // another version: its status was written
			answer["status"] = map[string]any{"observedGeneration": len(r.Method)}
		case r.Method == "PATCH":
			answer["spec"] = map[string]any{"mode": "All"}
		}
		_ = json.NewEncoder(w).Encode(answer)
	})
	for _, size := range []int{1, 7, 40} {
		inOrder(t, c, size)
	}
}

func inOrder(t *testing.T, c *Client, size int) {
	t.Helper()
	var objects []Object
	var want, got []string
	for i := range size {
		kind := []string{"new", "bad", "same", "other"}[i%4]
		objects = append(objects, Object{"kind": "Agent", "metadata": map[string]any{"name": fmt.Sprintf("%s%d", kind, i)}})
		want = append(want, fmt.Sprintf("%s%d %s", kind, i, map[string]string{"new": Created, "same": Unchanged, "other": Configured}[kind]))
	}
	c.ApplyAll(t.Context(), objects, WriteOptions{}, func(o Outcome) {
		if (o.Err != nil) != (o.Verb == "") {
			t.Errorf("%v", o)
		}
		got = append(got, o.Ref.Name+" "+o.Verb)
	})
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %v", got)
	}
}

func TestServerThatGoesAwayIsNotAskedForEachObject(t *testing.T) {
	var asked atomic.Int32
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) > 3 {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, agentJSON)
	})
	var objects []Object
	for i := range 200 {
		objects = append(objects, Object{"kind": []string{"Agent", "Model", "Tool"}[i%3], "metadata": map[string]any{"name": "a", "namespace": fmt.Sprint("n", i)}})
	}
	failed, unsent := 0, 0
	c.ApplyAll(t.Context(), objects, WriteOptions{}, func(o Outcome) {
		switch {
		case errors.Is(o.Err, ErrNotSent):
			unsent++
		case o.Err != nil:
			failed++
		}
	})
	if failed == 0 || failed > workers || failed+unsent < 190 {
		t.Errorf("%d failed, %d were not sent", failed, unsent)
	}
}

func TestPruneLeavesWhatOthersHaveMade(t *testing.T) {
	item := func(name, manager, operation string) string {
		return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"default","uid":"u-%s","managedFields":[{"manager":%q,"operation":%q}]}}`, name, name, manager, operation)
	}
	var deleted []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == "DELETE":
			deleted = append(deleted, r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:])
			fmt.Fprint(w, agentJSON)
		case strings.HasSuffix(r.URL.Path, "/agents"):
			fmt.Fprintf(w, `{"items":[%s,%s,%s,%s]}`, item("kept", "agentctl", "Apply"), item("old", "agentctl", "Apply"), item("edited", "agentctl", "Update"), item("foreign", "kubectl", "Apply"))
		default:
			fmt.Fprint(w, `{"items":[]}`)
		}
	})
	o := PruneOptions{Namespaces: []string{"default"}, Labels: "a=b"}
	if err := c.Prune(t.Context(), o, []Ref{{"Agent", "default", "kept"}}, func(Outcome) {}); err != nil || strings.Join(deleted, " ") != "old" {
		t.Errorf("deleted %v: %v", deleted, err)
	}
	o.Labels = " "
	if err := c.Prune(t.Context(), o, nil, func(Outcome) {}); err == nil || len(deleted) != 1 {
		t.Error("prune without a selector would delete everything")
	}
}

func tableJSON(version string, rows ...string) string {
	return fmt.Sprintf(`{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":%q},"columnDefinitions":[{"name":"Name","type":"string"}],"rows":[%s]}`, version, strings.Join(rows, ","))
}

func rowJSON(name, version string) string {
	return fmt.Sprintf(`{"cells":[%q],"object":%s}`, name, item(name, version))
}

func TestTablesAreTheServers(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.Contains(r.Header.Get("Accept"), "as=Table"):
			t.Errorf("asked for %s", r.Header.Get("Accept"))
		case strings.HasSuffix(r.URL.Path, "/agents/a"):
			fmt.Fprint(w, tableJSON("1", rowJSON("a", "1")))
		case strings.HasSuffix(r.URL.Path, "/agents/odd"):
			fmt.Fprint(w, agentJSON)
		case r.URL.Query().Get("watch") != "":
			fmt.Fprintf(w, `{"type":"MODIFIED","object":%s}`+"\n"+`{"type":"BOOKMARK","object":%s}`+"\n"+`{"type":"DELETED","object":%s}`+"\n",
				tableJSON("6", rowJSON("a", "6")), tableJSON("7"), `{"kind":"Table","columnDefinitions":null,"rows":[`+rowJSON("b", "8")+`]}`)
		default:
			fmt.Fprint(w, tableJSON("5", rowJSON("a", "1"), rowJSON("b", "2")))
		}
	})
	one, err := c.TableOf(t.Context(), agentRef)
	if err != nil || len(one.Rows) != 1 {
		t.Fatalf("%v, %v", one, err)
	}
	if o, err := RowObject(&one.Rows[0]); err != nil || o.Name() != "a" {
		t.Errorf("the object of the row: %v, %v", o, err)
	}
	if _, err := c.TableOf(t.Context(), Ref{Kind: "Agent", Name: "odd"}); err == nil || !strings.Contains(err.Error(), "no table") {
		t.Errorf("an object is no table: %v", err)
	}
	var got []string
	err = c.Watch(t.Context(), WatchOptions{ListOptions: ListOptions{Kind: "Agent"}, Table: true}, func(x Change) bool {
		got = append(got, fmt.Sprint(x.Type, x.Cells, len(x.Columns), x.More))
		return x.Type != Deleted
	})
	if want := "ADDED[a] 1 true ADDED[b] 1 false MODIFIED[a] 1 false DELETED[b] 1 false"; err != nil || strings.Join(got, " ") != want {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestReplaceSendsTheWholeObject(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "PUT" || r.URL.Query().Get("fieldManager") != "agentctl-edit" || !strings.Contains(readAll(r), `"resourceVersion":"7"`) {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		fmt.Fprint(w, agentJSON)
	})
	o, err := decodeObject([]byte(agentJSON))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Replace(t.Context(), o, WriteOptions{As: "edit"}); err != nil {
		t.Error(err)
	}
}

// TestASubresourceThatNobodyServesIsNoMissingObject: for both a cluster answers
// that the object is not found.
func TestASubresourceThatNobodyServesIsNoMissingObject(t *testing.T) {
	missing := status(404, "NotFound", `runs.agentctl.dev "r" not found`, `,"details":{"name":"r","kind":"runs"}`)
	for want, object := range map[string]http.HandlerFunc{
		"does not serve runs/cancel": text(200, `{"kind":"Run","metadata":{"name":"r"}}`),
		`run "r": not found`:         missing,
	} {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/cancel") {
				missing(w, r)
			} else {
				object(w, r)
			}
		})
		if _, err := c.Cancel(t.Context(), Ref{Kind: "Run", Name: "r"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
