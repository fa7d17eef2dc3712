package publish

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/publish/delivery"
	"agentctl.dev/agentctl/runner/publish/forgetest"
	"agentctl.dev/agentctl/runner/publish/github"
	"agentctl.dev/agentctl/runner/publish/gitlab"
	"agentctl.dev/agentctl/runner/publish/item"
	"agentctl.dev/agentctl/runner/publish/webhook"
	"agentctl.dev/agentctl/runner/secret"
)

const key = "0123456789abcdef0123456789abcdef"

// kinds are the targets of a forge for tests.
func kinds(f *forgetest.Forge) map[string]item.Target {
	return map[string]item.Target{
		"github comment": {Type: v1alpha1.PublishComment, Forge: v1alpha1.ForgeGitHub, URL: f.URL + "/github", Repository: "acme/shop", Number: "7", Subject: v1alpha1.SubjectPullRequest},
		"gitlab comment": {Type: v1alpha1.PublishComment, Forge: v1alpha1.ForgeGitLab, URL: f.URL + "/gitlab", Repository: "acme/shop", Number: "7", Subject: v1alpha1.SubjectPullRequest},
		"github pull":    {Type: v1alpha1.PublishPullRequest, Forge: v1alpha1.ForgeGitHub, URL: f.URL + "/github", Repository: "acme/shop", Base: "main"},
		"gitlab pull":    {Type: v1alpha1.PublishPullRequest, Forge: v1alpha1.ForgeGitLab, URL: f.URL + "/gitlab", Repository: "acme/shop", Base: "main"},
		"webhook":        {Type: v1alpha1.PublishWebhook, URL: f.URL + "/hook"},
	}
}

// hello is the hash of "hello\n".
const hello = "sha256:5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"

func itemFor(t item.Target) *delivery.Item {
	return &delivery.Item{
		Target: t, Key: key, Title: "Fix it", Text: item.Text("because", "a", "r", key), Payload: []byte(`{"x":1}`), Since: time.Now(),
		Files: []delivery.File{
			{Path: "dir/hello.txt", Old: hello, Content: []byte("hello, world\n")}, {Path: "new file.sh", Content: []byte("new"), Executable: true}, {Path: "old.txt", Old: hello, Deleted: true},
		},
	}
}

func fresh(t *testing.T) *forgetest.Forge {
	t.Helper()
	f := forgetest.New()
	t.Cleanup(f.Close)
	f.Files = map[string]string{"dir/hello.txt": "hello\n", "old.txt": "hello\n", "kept.txt": "kept\n"}
	return f
}

// send delivers an item, and returns how long it would have waited.
func send(t *testing.T, token string, it *delivery.Item) (out delivery.Outcome, waited time.Duration, err error) {
	t.Helper()
	c, err := delivery.NewClient(it.Target, secret.NewValue(token))
	if err != nil {
		return out, 0, err
	}
	defer c.Close()
	to := webhook.New(c)
	switch it.Target.Forge {
	case v1alpha1.ForgeGitHub:
		to = github.New(c)
	case v1alpha1.ForgeGitLab:
		to = gitlab.New(c)
	}
	out, err = delivery.Deliver(t.Context(), to, it, func(_ context.Context, d time.Duration) error {
		waited += d
		return nil
	})
	return out, waited, err
}

// count is how many there are of an item.
func count(f *forgetest.Forge) int { return len(f.Comments()) + len(f.Pulls()) + len(f.Hooks()) }

func TestAnItemIsSentOnceWhateverTheTargetAnswers(t *testing.T) {
	faults := map[string][]forgetest.Fault{
		"none":                      nil,
		"502":                       {{Method: "POST", Status: 502}},
		"502 and done":              {{Method: "POST", Status: 502, Done: true}},
		"cut":                       {{Method: "POST", Cut: true}},
		"cut and done":              {{Method: "POST", Cut: true, Done: true}},
		"409":                       {{Method: "POST", Status: 409}},
		"409 and done":              {{Method: "POST", Status: 409, Done: true}},
		"429":                       {{Method: "POST", Status: 429, Header: map[string]string{"Retry-After": "7"}}},
		"403 of a rate limit":       {{Method: "POST", Status: 403, Header: map[string]string{"X-RateLimit-Remaining": "0"}}},
		"done, and no JSON":         {{Method: "POST", Status: 201, Body: "<html>", Done: true}},
		"three times, twice done":   {{Method: "POST", Status: 503}, {Method: "POST", Status: 502, Done: true}, {Method: "POST", Cut: true, Done: true}},
		"the search fails":          {{Method: "GET", Status: 500}, {Method: "GET", Cut: true}},
		"every part of it is lost":  {{Method: "POST", Status: 502, Done: true}, {Method: "GET", Status: 502}, {Method: "POST", Status: 502, Done: true}},
		"the pull request is lost":  {{Method: "POST", Path: "/pulls", Status: 502, Done: true}, {Method: "POST", Path: "/merge_requests", Status: 502, Done: true}},
		"the branch is there twice": {{Method: "POST", Path: "/git/refs", Status: 502, Done: true}, {Method: "POST", Path: "/repository/commits", Status: 502, Done: true}},
	}
	for fault, all := range faults {
		f := fresh(t)
		for kind := range kinds(f) {
			t.Run(fault+"/"+kind, func(t *testing.T) {
				f := fresh(t)
				f.Fail(all...)
				it := itemFor(kinds(f)[kind])
				out, waited, err := send(t, forgetest.Token, it)
				if err != nil || out.Found || count(f) != 1 {
					t.Fatalf("%+v, %v, %d items, requests %v", out, err, count(f), f.Requests())
				}
				if fault == "429" && waited != 7*time.Second {
					t.Errorf("waited %s", waited)
				}
				sent := len(f.Requests())
				again, _, err := send(t, forgetest.Token, it)
				if err != nil || count(f) != 1 || it.Target.Forge != "" && (!again.Found || again.URL == "" || again.URL != out.URL) {
					t.Errorf("again: %+v after %+v, %v, %d items, %d requests before", again, out, err, count(f), sent)
				}
				for _, p := range f.Pulls() {
					files := p["files"].(map[string]string)
					if len(files) != 3 || files["dir/hello.txt"] != "hello, world\n" || files["new file.sh"] != "new" || files["kept.txt"] != "kept\n" {
						t.Errorf("the branch has %v", files)
					}
				}
			})
		}
	}
}

func TestATargetThatNeverAnswersIsGivenUp(t *testing.T) {
	for name, fault := range map[string]forgetest.Fault{
		"502": {Method: "POST", Status: 502}, "cut": {Method: "POST", Cut: true}, "409": {Method: "POST", Status: 409}, "429": {Method: "POST", Status: 429},
	} {
		f := fresh(t)
		for range 20 {
			f.Fail(fault)
		}
		it := itemFor(kinds(f)["github comment"])
		_, waited, err := send(t, forgetest.Token, it)
		if err == nil || !strings.Contains(err.Error(), "after 4 attempts") || waited > time.Minute || count(f) != 0 {
			t.Errorf("%s: %v, waited %s, %d items", name, err, waited, count(f))
		}
	}
}

func TestWhatCannotSucceedIsNotTriedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		fault forgetest.Fault
		want  string
	}{
		"403":       {forgetest.Fault{Method: "POST", Status: 403, Body: `{"message":"Resource not accessible"}`}, "does not permit this): \"Resource not accessible\""},
		"404":       {forgetest.Fault{Method: "POST", Status: 404}, "does not exist"},
		"422":       {forgetest.Fault{Method: "POST", Status: 422}, "422"},
		"redirect":  {forgetest.Fault{Method: "POST", Status: 307, Header: map[string]string{"Location": "https://evil.example/"}}, "not followed"},
		"far":       {forgetest.Fault{Method: "POST", Status: 429, Header: map[string]string{"Retry-After": "3600"}}, "asks to wait for 1h0m0s"},
		"echo":      {forgetest.Fault{Method: "POST", Status: 400, Body: `{"message":"bad token ` + forgetest.Token + `"}`}, "***"},
		"terminals": {forgetest.Fault{Method: "POST", Status: 400, Body: `{"message":"\u001b[2Jx"}`}, "400"},
	} {
		f := fresh(t)
		f.Fail(c.fault)
		_, waited, err := send(t, forgetest.Token, itemFor(kinds(f)["gitlab comment"]))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), forgetest.Token) || strings.ContainsRune(err.Error(), '\x1b') || waited > 0 || count(f) != 0 {
			t.Errorf("%s: %v, waited %s, %d items", name, err, waited, count(f))
		}
	}
	f := fresh(t)
	if _, _, err := send(t, "another-token-0123456789", itemFor(kinds(f)["github comment"])); err == nil || !strings.Contains(err.Error(), "the credential is not accepted") {
		t.Errorf("a wrong credential: %v", err)
	}
}

// A pull request on a branch that others have changed would undo what they did.
func TestAPullRequestOfOtherFilesIsRefused(t *testing.T) {
	for name, change := range map[string]func(map[string]string){
		"changed": func(m map[string]string) { m["dir/hello.txt"] = "hi\n" }, "removed": func(m map[string]string) { delete(m, "old.txt") }, "added": func(m map[string]string) { m["new file.sh"] = "x" },
	} {
		for _, kind := range []string{"github pull", "gitlab pull"} {
			f := fresh(t)
			change(f.Files)
			_, _, err := send(t, forgetest.Token, itemFor(kinds(f)[kind]))
			if err == nil || !strings.Contains(err.Error(), "main") || count(f) != 0 {
				t.Errorf("%s, %s: %v", name, kind, err)
			}
		}
	}
}

// A redirect, and a target that names another server, get neither the item nor the credential.
func TestNoOtherServerIsContacted(t *testing.T) {
	var reached atomic.Int32
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer thief.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, thief.URL, status) }))
		f := fresh(t)
		for kind, target := range kinds(f) {
			target.URL = s.URL
			if _, _, err := send(t, forgetest.Token, itemFor(target)); err == nil || !strings.Contains(err.Error(), "redirect") {
				t.Errorf("%d, %s: %v", status, kind, err)
			}
		}
		s.Close()
	}
	for _, repository := range []string{"@" + strings.TrimPrefix(thief.URL, "http://"), "../../../x", "a/b?c=d", "a/b#c"} {
		f := fresh(t)
		target := kinds(f)["github comment"]
		target.Repository = repository
		_, _, _ = send(t, forgetest.Token, itemFor(target)) // Resolve refuses such a name; the client must not depend on it
	}
	if n := reached.Load(); n > 0 {
		t.Errorf("the other server got %d requests", n)
	}
}

// A name of the internet that leads to this host, or to a metadata service, is not dialled.
func TestAnAddressThatNoTargetHasIsRefused(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "")
	for _, host := range []string{"169.254.169.254", "[fd00:ec2::254]", "0.0.0.0", "[::]", "224.0.0.1", "100.100.100.200"} {
		target := item.Target{Type: v1alpha1.PublishWebhook, URL: "https://" + host + "/hook"}
		if _, waited, err := send(t, "", itemFor(target)); err == nil || !strings.Contains(err.Error(), "the address is refused") || waited > 0 {
			t.Errorf("%s: %v, waited %s", host, err, waited)
		}
	}
}

func TestAnAnswerWithoutEndIsNotRead(t *testing.T) {
	var sent atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		chunk := []byte(strings.Repeat("x", 1<<20))
		for range 100 {
			n, err := w.Write(chunk)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}))
	defer s.Close()
	target := item.Target{Type: v1alpha1.PublishWebhook, URL: s.URL}
	if _, _, err := send(t, "", itemFor(target)); err == nil || !strings.Contains(err.Error(), "longer than "+strconv.Itoa(16<<20)) {
		t.Error(err)
	}
	if sent.Load() > 60<<20 {
		t.Errorf("%d MB were taken", sent.Load()>>20)
	}
}

func TestASendThatIsStoppedEnds(t *testing.T) {
	f := fresh(t)
	it := itemFor(kinds(f)["github comment"])
	f.Fail(forgetest.Fault{Method: "POST", Status: 502})
	c, err := delivery.NewClient(it.Target, secret.NewValue(forgetest.Token))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	stop := errors.New("stopped")
	if _, err := delivery.Deliver(t.Context(), github.New(c), it, func(context.Context, time.Duration) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
}
