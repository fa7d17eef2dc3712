package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agentctl.dev/agentctl/runner/publish/forgetest"
)

// publisher is a set of manifests whose run has prepared a comment, and a forge whose
// requests that make a comment can be held.
type publisher struct {
	t     *testing.T
	dir   string
	env   []string
	forge *forgetest.Forge

	mu sync.Mutex
	// before and after hold a request before, or after, the forge has carried it out.
	before, after *gate
}

// gate holds one request until it is sent on or, with false, dropped.
type gate struct {
	reached chan struct{}
	open    chan bool
}

func newGate() *gate { return &gate{make(chan struct{}), make(chan bool, 1)} }

func (g *gate) hold() {
	if g == nil {
		return
	}
	close(g.reached)
	select {
	case on := <-g.open:
		if on {
			return
		}
	case <-time.After(patience):
	}
	panic(http.ErrAbortHandler)
}

func newPublisher(t *testing.T) *publisher {
	t.Helper()
	p := &publisher{t: t, dir: t.TempDir(), forge: forgetest.New()}
	t.Cleanup(p.forge.Close)
	to, err := url.Parse(p.forge.URL)
	if err != nil {
		t.Fatal(err)
	}
	through := httputil.NewSingleHostReverseProxy(to)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var before, after *gate
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/comments") {
			p.mu.Lock()
			before, after, p.before, p.after = p.before, p.after, nil, nil
			p.mu.Unlock()
		}
		before.hold()
		if after == nil {
			through.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		through.ServeHTTP(answer, r)
		after.hold()
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()) // the sender may be gone
	}))
	t.Cleanup(front.Close)
	token := filepath.Join(p.dir, "token.sh")
	put(t, token, "#!/bin/sh\n[ ! -e "+filepath.Join(p.dir, "no-token")+" ] || exit 3\nprintf '%s\\n' '"+forgetest.Token+"'\n")
	if err := os.Chmod(token, 0o700); err != nil { //nolint:gosec // a program of this test
		t.Fatal(err)
	}
	put(t, filepath.Join(p.dir, "set", "all.yaml"), document("Agent", "reviewer", spec{
		"modelRef": spec{"name": "script"}, "policyRefs": named("publishes"),
		"publish": []spec{{"name": "review", "type": "Comment", "forge": spec{"type": "GitHub", "baseURL": front.URL + "/github", "repository": "acme/shop", "number": "7"}, "credential": spec{"valueFrom": spec{"exec": []string{token}}}}},
	})+document("Policy", "publishes", spec{"permissions": []spec{{"permission": "publish", "pattern": "*", "action": "allow"}}})+
		document("Model", "script", spec{"provider": "scripted", "scripted": spec{"steps": []spec{
			{"calls": []spec{{"tool": "publish", "args": spec{"name": "review", "body": "The sum is wrong."}}}}, {"say": "done"},
		}}}))
	p.env = append(os.Environ(), "AGENTCTL_STATE="+filepath.Join(p.dir, "state"), "AGENTCTL_LIBEXEC="+buildTools(t))
	if out, code := p.agentctl("run", "-f", "set", "-p", "go"); code != 0 {
		t.Fatalf("run: exit code %d\n%s", code, out)
	}
	return p
}

// hold returns a gate for the next comment, before or after it is made.
func (p *publisher) hold(made bool) *gate {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := newGate()
	if made {
		p.after = g
	} else {
		p.before = g
	}
	return g
}

func (p *publisher) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(p.t.Context(), "agentctl", args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = p.dir, p.env, time.Second
	return cmd
}

func (p *publisher) agentctl(args ...string) (out string, code int) {
	cmd := p.command(args...)
	b, _ := cmd.CombinedOutput() // judged by its code
	return string(b), cmd.ProcessState.ExitCode()
}

func (p *publisher) send() (out string, code int) {
	return p.agentctl("apply-changes", "@latest", "--publish", "-f", "set", "--yes")
}

func (p *publisher) wait(reached <-chan struct{}) {
	p.t.Helper()
	select {
	case <-reached:
	case <-time.After(patience):
		p.t.Fatal("no comment was sent")
	}
}

// TestOfTwoSendersOneSends: while one sends, another one says so and sends nothing.
func TestOfTwoSendersOneSends(t *testing.T) {
	p := newPublisher(t)
	g := p.hold(false)
	first := p.command("apply-changes", "@latest", "--publish", "-f", "set", "--yes")
	var said bytes.Buffer
	first.Stdout, first.Stderr = &said, &said
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	p.wait(g.reached)
	out, code := p.send()
	if code != 2 || !strings.Contains(out, "process") || !strings.Contains(out, "wait until it has ended, then publish again") {
		t.Errorf("the second sender: exit code %d\n%s", code, out)
	}
	g.open <- true
	if err := first.Wait(); err != nil || !strings.Contains(said.String(), "sent") {
		t.Errorf("the first sender: %v\n%s", err, said.String())
	}
	if all := p.forge.Comments(); len(all) != 1 {
		t.Errorf("%d comments, want one: %q", len(all), all)
	}
}

func TestManySendersMakeOneComment(t *testing.T) {
	p := newPublisher(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	codes := map[int]int{}
	for range 6 {
		wg.Go(func() {
			out, code := p.send()
			mu.Lock()
			defer mu.Unlock()
			if codes[code]++; code != 0 && code != 2 {
				t.Errorf("exit code %d\n%s", code, out)
			}
		})
	}
	wg.Wait()
	if all := p.forge.Comments(); len(all) != 1 || codes[0] == 0 {
		t.Errorf("%d comments, want one; exit codes %v", len(all), codes)
	}
}

// TestAKilledSenderIsContinued kills a sender between the records of an item: before the
// forge has it, and after.
func TestAKilledSenderIsContinued(t *testing.T) {
	for _, c := range []struct {
		reason string
		made   bool
		state  string
	}{{"the forge has not seen it", false, "sent"}, {"the forge has it, and the answer was lost", true, "found"}} {
		t.Run(c.reason, func(t *testing.T) {
			p := newPublisher(t)
			g := p.hold(c.made)
			first := p.command("apply-changes", "@latest", "--publish", "-f", "set", "--yes")
			if err := first.Start(); err != nil {
				t.Fatal(err)
			}
			p.wait(g.reached)
			if err := first.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = first.Wait() // it was killed
			g.open <- false
			if out, _ := p.agentctl("apply-changes", "@latest", "--publish", "-f", "set"); !strings.Contains(out, "begun") {
				t.Errorf("what was begun is not shown:\n%s", out)
			}
			out, code := p.send()
			if code != 0 || !strings.Contains(out, " "+c.state+" ") {
				t.Errorf("exit code %d, want the item %s\n%s", code, c.state, out)
			}
			if all := p.forge.Comments(); len(all) != 1 {
				t.Errorf("%d comments, want one: %q", len(all), all)
			}
			if out, code := p.agentctl("audit", "verify", "@latest"); code != 0 {
				t.Errorf("the journal cannot be verified: %s", out)
			}
		})
	}
}

func TestTheProgramOfACredentialIsAsked(t *testing.T) {
	p := newPublisher(t)
	put(t, filepath.Join(p.dir, "no-token"), "")
	out, code := p.send()
	if code != 4 || !strings.Contains(out, `agent "reviewer": spec.publish review: credential`) || len(p.forge.Requests()) > 0 {
		t.Errorf("a program that fails: exit code %d, requests %q\n%s", code, p.forge.Requests(), out)
	}
	if strings.Contains(out, forgetest.Token) {
		t.Errorf("the token is shown:\n%s", out)
	}
	if err := os.Remove(filepath.Join(p.dir, "no-token")); err != nil {
		t.Fatal(err)
	}
	if out, code := p.send(); code != 0 || len(p.forge.Comments()) != 1 {
		t.Errorf("exit code %d, comments %q\n%s", code, p.forge.Comments(), out)
	}
}
