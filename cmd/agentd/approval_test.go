package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/control/embedded"
)

// daemon is an agentd of its own process, and a client of it.
type daemon struct {
	t      *testing.T
	state  string
	cmd    *exec.Cmd
	config *rest.Config

	mu      sync.Mutex
	clients map[string]*http.Client // by token
}

// startDaemon starts an agentd on a state folder whose path is short enough.
func startDaemon(t *testing.T, state string) *daemon {
	t.Helper()
	log, err := os.CreateTemp(t.TempDir(), "log")
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{t: t, state: state, clients: map[string]*http.Client{}, cmd: exec.CommandContext(context.WithoutCancel(t.Context()), "agentd", "serve", "--state", state, "--allow-unsandboxed")}
	d.cmd.Stderr = log
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.kill()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("the log of an agentd:\n%s", text)
		}
	})
	d.until("agentd to be ready", func() bool {
		text, err := os.ReadFile(log.Name())
		return err == nil && bytes.Contains(text, []byte("msg=ready"))
	})
	if d.config, err = clientcmd.BuildConfigFromFlags("", filepath.Join(state, "control", "kubeconfig")); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *daemon) kill() {
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
}

// token makes an identity and returns its token.
func (d *daemon) token(name string, role embedded.Role, runs ...string) string {
	d.t.Helper()
	tokens, err := embedded.OpenTokens(d.state, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	token, err := tokens.Create(d.t.Context(), embedded.Identity{Name: name, Role: role, Runs: runs})
	if err != nil {
		d.t.Fatal(err)
	}
	return token
}

const objectsPath = "/apis/agentctl.dev/v1alpha1/namespaces/"

// do sends a request as whoever has the token; "" is the admin of the kubeconfig.
func (d *daemon) do(token, method, path, body string) (code int, text string) {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), method, d.config.Host+objectsPath+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := d.client(token).Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(all)
}

func (d *daemon) client(token string) *http.Client {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.clients[token]; c != nil {
		return c
	}
	config := rest.CopyConfig(d.config)
	if token != "" {
		config.BearerToken = token
	}
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		d.t.Fatal(err)
	}
	d.clients[token] = c
	return c
}

func (d *daemon) create(namespace, kind, object string) {
	d.t.Helper()
	if code, text := d.do("", "POST", namespace+"/"+kind, object); code != http.StatusCreated {
		d.t.Fatalf("create of %s: %d %s", kind, code, text)
	}
}

func (d *daemon) decide(token, namespace, name, decision string) (code int, text string) {
	d.t.Helper()
	return d.do(token, "POST", namespace+"/approvals/"+name+"/decision", `{"decision": "`+decision+`", "reason": "said so"}`)
}

// until waits until something holds.
func (d *daemon) until(what string, holds func() bool) {
	d.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(5 * time.Minute)
	defer late.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-late.C:
			_, runs := d.do("", "GET", "ns/runs", "")
			_, approvals := d.do("", "GET", "ns/approvals", "")
			d.t.Fatalf("waited too long for %s\n%s\n%s", what, runs, approvals)
		}
	}
}

// undecided are the Approvals of a namespace that wait, by the names of their runs.
func (d *daemon) undecided(namespace string) map[string]v1alpha1.Approval {
	d.t.Helper()
	var list v1alpha1.ApprovalList
	code, text := d.do("", "GET", namespace+"/approvals", "")
	if err := json.Unmarshal([]byte(text), &list); code != http.StatusOK || err != nil {
		d.t.Fatalf("%d %v %s", code, err, text)
	}
	all := map[string]v1alpha1.Approval{}
	for _, a := range list.Items {
		if a.Status.Decision == "" {
			all[a.Spec.RunRef.Name] = a
		}
	}
	return all
}

func (d *daemon) run(namespace, name string) (r v1alpha1.Run) {
	d.t.Helper()
	code, text := d.do("", "GET", namespace+"/runs/"+name, "")
	if err := json.Unmarshal([]byte(text), &r); code != http.StatusOK || err != nil {
		d.t.Fatalf("%d %v %s", code, err, text)
	}
	return r
}

// asker makes an agent whose one call appends a line to a file once a person lets
// it, and returns the file.
func (d *daemon) asker(namespace string) (marks string) {
	d.t.Helper()
	marks = filepath.Join(d.t.TempDir(), "marks")
	program := marks + ".sh"
	if err := os.WriteFile(program, []byte("#!/bin/sh\nread -r args\necho \"$args\" >>"+marks+"\n"), 0o700); err != nil {
		d.t.Fatal(err)
	}
	const head = `{"apiVersion": "agentctl.dev/v1alpha1", "metadata": {"name": "a"}, `
	d.create(namespace, "tools", head+`"kind": "Tool", "spec": {"callName": "mark", "risk": "R2", "parameters": {"type": "object", "properties": {"text": {"type": "string"}}}, "isolation": {"minimum": "None"}, "source": {"exec": {"command": ["`+program+`"]}}}}`)
	d.create(namespace, "models", head+`"kind": "Model", "spec": {"provider": "scripted", "scripted": {"steps": [{"calls": [{"tool": "mark", "args": {"text": "${prompt}"}}]}, {"say": "done"}]}}}`)
	d.create(namespace, "policies", head+`"kind": "Policy", "spec": {"default": "ask"}}`)
	d.create(namespace, "agents", head+`"kind": "Agent", "spec": {"modelRef": {"name": "a"}, "tools": [{"name": "a"}], "policyRefs": [{"name": "a"}], "approvals": {"onAsk": "Wait", "timeout": "10m"}}}`)
	return marks
}

func (d *daemon) ask(namespace, run string) {
	d.t.Helper()
	d.create(namespace, "runs", fmt.Sprintf(`{"apiVersion": "agentctl.dev/v1alpha1", "kind": "Run", "metadata": {"name": %q}, "spec": {"agentRef": {"name": "a"}, "prompt": %q}}`, run, run))
}

// shortFolder is a folder in whose paths a socket can be.
func shortFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "agentd-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestADecisionIsAPersonsToMake(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, shortFolder(t))
	marks := d.asker("here")
	d.ask("here", "one")
	d.ask("here", "jane")
	d.until("the questions", func() bool { return len(d.undecided("here")) == 2 })
	one, jane := d.undecided("here")["one"], d.undecided("here")["jane"]
	approver, other := d.token("jane", embedded.RoleApprover), d.token("joe", embedded.RoleApprover)
	for name, c := range map[string]struct {
		token, namespace, approval, decision string
		code                                 int
	}{
		"a viewer":                 {d.token("viewer", embedded.RoleViewer), "here", one.Name, "approved", 403},
		"a user":                   {d.token("user", embedded.RoleUser), "here", one.Name, "approved", 403},
		"a controller":             {d.token("controller", embedded.RoleController), "here", one.Name, "approved", 403},
		"a worker of the run":      {d.token("worker", embedded.RoleWorker, "here/one"), "here", one.Name, "approved", 403},
		"a worker by role name":    {d.token("approver", embedded.RoleWorker, "here/one"), "here", one.Name, "approved", 403},
		"nobody":                   {"agentd_none", "here", one.Name, "approved", 401},
		"for another namespace":    {approver, "there", one.Name, "approved", 404},
		"for no approval":          {approver, "here", "none", "approved", 404},
		"no decision":              {approver, "here", one.Name, "perhaps", 422},
		"a path that leads astray": {approver, "here", one.Name + "/../" + jane.Name, "approved", 403},
	} {
		if code, text := d.decide(c.token, c.namespace, c.approval, c.decision); code != c.code {
			t.Errorf("%s: got %d, want %d: %.300s", name, code, c.code, text)
		}
	}
	if code, text := d.do(approver, "POST", "here/approvals/"+one.Name+"/decision", `{"decision": "approved", "reason": "`+strings.Repeat("x", 2<<20)+`"}`); code != http.StatusRequestEntityTooLarge {
		t.Errorf("two megabytes: %d %.200s", code, text)
	}
	if got := d.undecided("here"); len(got) != 2 {
		t.Fatalf("what was refused has changed something: %+v", got)
	}
	if text, err := os.ReadFile(marks); !os.IsNotExist(err) {
		t.Fatalf("a call ran that nobody approved: %q, %v", text, err)
	}

	// Another run of the same name asks its own question.
	if code, text := d.do("", "DELETE", "here/runs/one", ""); code != http.StatusOK {
		t.Fatal(code, text)
	}
	d.until("the run to be gone", func() bool { code, _ := d.do("", "GET", "here/runs/one", ""); return code == http.StatusNotFound })
	d.ask("here", "one")
	if code, text := d.decide(approver, "here", one.Name, "approved"); code != http.StatusNotFound && code != http.StatusConflict {
		t.Errorf("a decision on a run that is gone: %d %s", code, text)
	}
	d.until("the new question", func() bool { a, ok := d.undecided("here")["one"]; return ok && a.UID != one.UID })
	again := d.undecided("here")["one"]
	if again.Name == one.Name || again.Spec.CallHash != one.Spec.CallHash {
		t.Errorf("the question of another run is %+v, that of the first was %+v", again.Spec, one.Spec)
	}
	for _, a := range []v1alpha1.Approval{again, jane} {
		if code, text := d.decide(other, "here", a.Name, "approved"); code != http.StatusOK || !strings.Contains(text, `"by":"joe"`) {
			t.Errorf("%s: %d %s", a.Name, code, text)
		}
		d.until("the end of the run", func() bool { return d.run("here", a.Spec.RunRef.Name).Status.Phase == v1alpha1.PhaseSucceeded })
		if code, text := d.decide(other, "here", a.Name, "rejected"); code != http.StatusConflict || !strings.Contains(text, "approved already by joe") {
			t.Errorf("decided once more: %d %s", code, text)
		}
	}
	if text, err := os.ReadFile(marks); err != nil || strings.Count(string(text), "\n") != 2 {
		t.Errorf("two calls were approved, and these ran: %q, %v", text, err)
	}
}

func TestOneOfTwoApproversDecides(t *testing.T) {
	t.Parallel()
	const many = 50
	d := startDaemon(t, shortFolder(t))
	marks := d.asker("ns")
	for i := range many {
		d.ask("ns", fmt.Sprintf("run-%d", i))
	}
	d.until("the questions", func() bool { return len(d.undecided("ns")) == many })
	tokens := map[string]string{"yes": d.token("yes", embedded.RoleApprover), "no": d.token("no", embedded.RoleApprover)}
	approved := 0
	for run, a := range d.undecided("ns") {
		var wg sync.WaitGroup
		codes := map[string]*int{"yes": new(int), "no": new(int)}
		for who, code := range codes {
			wg.Go(func() {
				*code, _ = d.decide(tokens[who], "ns", a.Name, map[string]string{"yes": "approved", "no": "rejected"}[who])
			})
		}
		wg.Wait()
		yes, no := *codes["yes"], *codes["no"]
		if min(yes, no) != http.StatusOK || max(yes, no) != http.StatusConflict {
			t.Errorf("%s: yes is answered with %d, no with %d", run, yes, no)
		}
		if yes == http.StatusOK {
			approved++
		}
	}
	d.until("the runs to end", func() bool {
		for i := range many {
			if !d.run("ns", fmt.Sprintf("run-%d", i)).Status.Phase.Finished() {
				return false
			}
		}
		return true
	})
	text, err := os.ReadFile(marks)
	if err != nil && approved > 0 || strings.Count(string(text), "\n") != approved {
		t.Errorf("%d calls were approved, and these ran (%v):\n%s", approved, err, text)
	}
}

// TestDecisionsSurviveKills kills agentd at any time around decisions: each that
// was acknowledged is carried out, and no call runs that was not let, or more
// often than it was let.
func TestDecisionsSurviveKills(t *testing.T) {
	t.Parallel()
	const rounds, each = 6, 8
	state := shortFolder(t)
	d := startDaemon(t, state)
	marks := d.asker("ns")
	token := d.token("jane", embedded.RoleApprover)
	for round := range rounds {
		for i := range each {
			d.ask("ns", fmt.Sprintf("run-%d-%d", round, i))
		}
		d.until("the questions", func() bool { return len(d.undecided("ns")) == each })
		acknowledged := map[string]string{}
		decisions := []string{"approved", "rejected"}
		for run, a := range d.undecided("ns") {
			decision := decisions[len(acknowledged)%2]
			if code, text := d.decide(token, "ns", a.Name, decision); code != http.StatusOK {
				t.Fatalf("%d %s", code, text)
			}
			acknowledged[run] = decision
		}
		// From before the first was handed over to after the last was taken.
		pause := time.NewTimer(time.Duration(round) * 40 * time.Millisecond)
		<-pause.C
		d.kill()

		d = startDaemon(t, state)
		lets := map[string]int{}
		d.until("the runs to end", func() bool {
			for run, a := range d.undecided("ns") {
				// A call that was cut off may have happened: that is asked, and nothing else.
				if !a.Spec.Unknown {
					t.Fatalf("the decision on run %s is lost: it asks again, as %s", run, a.Name)
				}
				if code, _ := d.decide(token, "ns", a.Name, "approved"); code == http.StatusOK {
					lets[run]++
				}
			}
			for run := range acknowledged {
				if !d.run("ns", run).Status.Phase.Finished() {
					return false
				}
			}
			return true
		})
		text, err := os.ReadFile(marks)
		if err != nil {
			t.Fatal(err)
		}
		for run, decision := range acknowledged {
			most := lets[run]
			least := 0
			if decision == "approved" {
				least, most = 1, most+1
			}
			if n := strings.Count(string(text), `"`+run+`"`); n < least || n > most {
				t.Errorf("run %s was %s, and let %d times more; its call ran %d times", run, decision, lets[run], n)
			}
		}
	}
}
