package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/client"
	"agentctl.dev/agentctl/runner/runs"
)

// plane is a control plane with one run, whose streams are written down.
type plane struct {
	t       *testing.T
	mu      sync.Mutex
	streams []string
	asked   []string
	// cancelled is closed by a request to cancel.
	cancelled chan struct{}
	once      sync.Once
}

// hold is a stream that says nothing more until the run is cancelled; what
// follows it comes then. A second one never ends.
const hold = "data: hold\n\n"

func newPlane(t *testing.T, streams ...string) *plane {
	t.Helper()
	p := &plane{t: t, streams: streams, cancelled: make(chan struct{})}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"far","context":{"cluster":"c"}}],"current-context":"far"}`, server.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AGENTCTL_KUBECONFIG", file)
	t.Setenv("AGENTCTL_STATE", t.TempDir())
	return p
}

func (p *plane) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	const prefix = "/apis/agentctl.dev/v1alpha1/namespaces/"
	p.mu.Lock()
	p.asked = append(p.asked, strings.TrimSpace(r.Method+" "+strings.TrimPrefix(r.URL.RequestURI(), prefix)+" "+string(body)))
	p.mu.Unlock()
	switch {
	case strings.HasSuffix(r.URL.Path, "/agents/a/runs"):
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"kind":"Run","metadata":{"name":"a-1"}}`)) // the client's end is the test's point
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/runs"):
		_, _ = w.Write([]byte(`{"kind":"RunList","items":[{"kind":"Run","metadata":{"name":"b-1","creationTimestamp":"2026-01-01T00:00:00Z"}},` +
			`{"kind":"Run","metadata":{"name":"a-1","creationTimestamp":"2026-01-03T00:00:00Z"}},{"kind":"Run","metadata":{"name":"b-2","creationTimestamp":"2026-01-02T00:00:00Z"}}]}`))
	case strings.HasSuffix(r.URL.Path, "/approvals/a-1-ask"):
		_, _ = w.Write([]byte(`{"kind":"Approval","metadata":{"name":"a-1-ask"},"spec":{"runRef":{"name":"a-1"},"call":"call_2_1"}}`))
	case strings.HasSuffix(r.URL.Path, "/runs/b-2"):
		_, _ = w.Write([]byte(`{"kind":"Run","metadata":{"name":"b-2"}}`))
	case strings.HasSuffix(r.URL.Path, "/runs/a-1"):
		_, _ = w.Write([]byte(`{"kind":"Run","metadata":{"name":"a-1"}}`))
	case strings.HasSuffix(r.URL.Path, "/cancel"):
		p.once.Do(func() { close(p.cancelled) })
		_, _ = w.Write([]byte(`{"kind":"Run","metadata":{"name":"a-1"}}`))
	case strings.HasSuffix(r.URL.Path, "/events"):
		p.stream(w, r)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"kind":"Status","reason":"NotFound","details":{"name":"x"}}`))
	}
}

func (p *plane) stream(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	text := ""
	if len(p.streams) > 0 {
		text, p.streams = p.streams[0], p.streams[1:]
	}
	p.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	pieces := strings.Split(text, hold)
	_, _ = io.WriteString(w, pieces[0])
	for i, piece := range pieces[1:] {
		w.(http.Flusher).Flush()
		released := p.cancelled
		if i > 0 {
			released = nil // it does not end in time
		}
		select {
		case <-released:
			_, _ = io.WriteString(w, piece)
		case <-r.Context().Done():
			return
		case <-time.After(patience):
			p.t.Error("nobody cancels the run")
		}
	}
}

// say is one record of a stream.
func say(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return "data: " + string(b) + "\n\n"
}

// told are the events of a run that says some words and ends.
func told(f event.RunFinished, words ...string) string { return ofRun("a-1-uid", f, words...) }

func ofRun(id string, f event.RunFinished, words ...string) string {
	var b strings.Builder
	seq := int64(0)
	add := func(message, part string, p event.Payload) {
		seq++
		b.WriteString(say(event.Event{Seq: seq, Time: time.Unix(1, 0), Run: id, Message: message, Part: part, Data: p}))
	}
	model := message.ModelRef{Name: "m", Provider: "scripted"}
	add("u", "p0", event.RunStarted{Agent: "a", Model: model, Prompt: "go", Isolation: "Sandbox", Workspace: event.Workspace{Strategy: "Empty"}})
	for i, text := range words {
		m, part := fmt.Sprintf("m%d", i+1), fmt.Sprintf("p%d", i+1)
		add(m, "s", event.StepStart{Step: i + 1})
		add(m, "s", event.ModelRequest{Step: i + 1})
		add(m, part, event.TextStart{})
		for _, piece := range strings.SplitAfter(text, " ") {
			add(m, part, event.TextDelta{Text: piece})
		}
		add(m, part, event.TextEnd{Text: text})
		add(m, "", event.ModelResponse{Model: model, Finish: message.FinishStop})
	}
	if f.Phase != "" {
		add("", "", f)
	}
	return b.String()
}

var done = event.RunFinished{Phase: view.Succeeded, Reason: "Completed", Output: "the answer", Steps: 2}

type fields map[string]any

func over(phase, why string, code int) string {
	return say(fields{"type": "stream.end", "phase": phase, "reason": why, "exitCode": code})
}

func TestRunOfAControlPlaneIsShownAsOneHere(t *testing.T) {
	failed := event.RunFinished{Phase: view.Failed, Reason: "MaxSteps", ExitCode: 5, Message: "too many steps", Steps: 2}
	suspended := event.RunFinished{Phase: view.Suspended, Reason: "ApprovalRequired", ExitCode: 3, Message: "a call waits"}
	cases := map[string]struct {
		reason  string
		args    []string
		streams []string
		code    int
		stdout  string
		stderr  []string
	}{
		"answer": {
			reason: "stdout holds the answer, stderr the story", args: []string{"run", "agent/a", "-p", "go"},
			streams: []string{say(fields{"type": "stream.waiting", "phase": "Pending", "reason": "Accepted", "message": "waits for a free worker"}) + told(done, "hm", "the answer") + over("Succeeded", "Completed", 0)},
			stdout:  "the answer\n", stderr: []string{"run/a-1\n", "agent      a, model m", "Succeeded"},
		},
		"code": {
			reason: "the exit code is the run's", args: []string{"run", "agent/a"},
			streams: []string{told(failed, "hm") + over("Failed", "MaxSteps", 5)}, code: 5, stderr: []string{"error: MaxSteps: too many steps"},
		},
		"never begun": {
			reason: "the reason's code, and no answer", args: []string{"run", "agent/a", "-o", "json"},
			streams: []string{over("Failed", "CredentialMissing", 4)}, code: 4, stderr: []string{"error: run a-1 did not begin: CredentialMissing\n"},
		},
		"detach": {
			reason: "nobody waits", args: []string{"run", "agent/a", "--detach"},
			stdout: "run.agentctl.dev/a-1 created\n",
		},
		"lost and found": {
			reason: "each event is shown once", args: []string{"attach", "run/a-1", "-o", "jsonl", "--from", "9"},
			streams: []string{
				strings.Join(strings.SplitAfter(told(done, "hm", "the answer"), "\n\n")[8:10], ""),
				strings.Join(strings.SplitAfter(told(done, "hm", "the answer"), "\n\n")[10:], "") + over("Succeeded", "Completed", 0),
			},
			stdout: strings.ReplaceAll(strings.Join(strings.SplitAfter(strings.ReplaceAll(told(done, "hm", "the answer"), "data: ", ""), "\n\n")[8:], ""), "\n\n", "\n"),
			stderr: []string{"the stream was cut", "trying again\n"},
		},
		"from": {
			reason: "what came before is known and not told", args: []string{"attach", "a-1", "--from", "5"},
			streams: []string{told(done, "hm", "the answer") + over("Succeeded", "Completed", 0)}, stdout: "the answer\n",
		},
		"suspended": {
			reason: "it is waited for, and how to go on is said", args: []string{"attach", "run/a-1", "-n", "web", "-o", "json"},
			streams: []string{told(suspended, "hm") + over("Cancelled", "Cancelled", 1)}, code: 1,
			stderr: []string{"run/a-1 is Suspended (ApprovalRequired): a call waits\n"},
		},
		"another attempt": {
			reason: "the answer is that of the last one", args: []string{"attach", "run/a-1"},
			streams: []string{told(failed, "hm") + say(fields{"type": "stream.attempt", "attempt": 2}) + ofRun("a-1-uid-2", done, "the answer") + over("Succeeded", "Completed", 0)},
			stdout:  "the answer\n", stderr: []string{"run/a-1, attempt 2\n"},
		},
		"from, in a later attempt": {
			reason: "the place is one of the attempt that is told", args: []string{"attach", "a-1", "--from", "99"},
			streams: []string{say(fields{"type": "stream.attempt", "attempt": 3}) + told(done, "hm", "the answer") + over("Succeeded", "Completed", 0)}, stdout: "the answer\n",
			stderr: []string{"run/a-1, attempt 3\nSucceeded"},
		},
		"strange server": {
			reason: "a server that leaves events out is no control plane", args: []string{"attach", "run/a-1"},
			streams: []string{told(event.RunFinished{}, "hm") + say(event.Event{Seq: 99, Run: "a-1-uid", Data: event.Warning{Message: "x"}})}, code: 1,
			stderr: []string{"leaves out the events", "run/a-1 may continue; look at it again with: agentctl attach run/a-1\n"},
		},
		"logs": {
			reason: "the answer and nothing else", args: []string{"logs", "run/a-1"},
			streams: []string{told(done, "hm", "the answer") + over("Succeeded", "Completed", 0)}, stdout: "the answer\n",
		},
		"logs as they come": {
			reason: "every text of the model", args: []string{"logs", "-f", "run/a-1"},
			streams: []string{told(done, "hm so", "the answer") + over("Succeeded", "Completed", 0)}, stdout: "hm so\nthe answer\n",
		},
		"no logs": {
			reason: "no answer is an error", args: []string{"logs", "run/a-1"},
			streams: []string{told(failed, "hm") + over("Failed", "MaxSteps", 5)}, code: 1,
			stderr: []string{"error: run/a-1 has no answer: it is Failed (MaxSteps)\n"},
		},
		"no logs yet": {
			reason: "they may come", args: []string{"logs", "run/a-1"},
			streams: []string{told(event.RunFinished{}, "hm") + say(fields{"type": "stream.end", "phase": "Running"})}, code: 1,
			stderr: []string{"error: run/a-1 has no answer: it is Running\n", "hint: follow it with: agentctl logs -f run/a-1\n"},
		},
		"no events": {
			reason: "nothing is said with a word", args: []string{"events", "run/a-1"},
			streams: []string{say(fields{"type": "stream.end", "phase": "Pending", "reason": "ReferenceNotFound", "message": "no agent"})},
			stderr:  []string{"run/a-1 has no such events: it is Pending (ReferenceNotFound): no agent\n"},
		},
		"cancel": {
			reason: "as an apply says it", args: []string{"cancel", "run/a-1"}, stdout: "run.agentctl.dev/a-1 cancelled\n",
		},
		"of no agent": {
			reason: "the agent is named", args: []string{"run", "agent/b"}, code: 1, stderr: []string{`error: agent "b": not found`},
		},
		"none at all": {
			reason: "the control plane that is meant is the one that counts", args: []string{"attach", "run/a-9"}, code: 1, stderr: []string{`error: run "a-9": not found`},
		},
		"of no run": {
			reason: "an agent is no run", args: []string{"attach", "agent/a"}, code: 2, stderr: []string{`"agent/a" is not a run`},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			newPlane(t, c.streams...)
			code, stdout, stderr := command("", c.args...)
			if code != c.code {
				t.Errorf("%s: exit code %d, want %d", c.reason, code, c.code)
			}
			if c.args[len(c.args)-1] == "json" { // of which only the beginning is this test's
				stdout = ""
			}
			if d := cmp.Diff(c.stdout, stdout); d != "" {
				t.Errorf("%s: stdout (-want +got)\n%s", c.reason, d)
			}
			for _, want := range c.stderr {
				if !strings.Contains(stderr, want) {
					t.Errorf("%s: stderr lacks %q:\n%s", c.reason, want, stderr)
				}
			}
			if t.Failed() {
				t.Logf("stderr:\n%s", stderr)
			}
		})
	}
}

// TestWaitIsSaidWhenItIsLong: a run that begins at once says nothing of its wait.
func TestWaitIsSaidWhenItIsLong(t *testing.T) {
	for _, long := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var stderr bytes.Buffer
			s := &streamed{app: testApp(io.Discard, &stderr), format: display.FormatText, view: &view.Run{}}
			s.found(&source{place: display.Place{Object: "a-1"}, client: &client.Client{}})
			for range 2 {
				if err := s.record(client.Record{Waiting: &client.RunWaiting{Phase: "Pending", Reason: "Accepted", Message: "waits for a free worker"}}); err != nil {
					t.Fatal(err)
				}
				if long {
					time.Sleep(time.Second)
				}
			}
			if err := s.record(client.Record{Event: &event.Event{Seq: 1, Run: "a-1-uid", Data: event.Warning{Message: "x"}}}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			if got, want := strings.Count(stderr.String(), "run/a-1 is Pending: waits for a free worker\n"), map[bool]int{true: 1}[long]; got != want {
				t.Errorf("said %d times, want %d:\n%s", got, want, stderr.String())
			}
		})
	}
}

// TestSignalsOfARunOfAControlPlane: the first one cancels a run that is ours and
// lets go of any other, the second one leaves.
func TestSignalsOfARunOfAControlPlane(t *testing.T) {
	cancelled := event.RunFinished{Phase: view.Cancelled, Reason: "Cancelled", ExitCode: 1, Message: "cancelled"}
	begun := strings.Join(strings.SplitAfter(told(cancelled, "hm"), "\n\n")[:4], "")
	rest := strings.Join(strings.SplitAfter(told(cancelled, "hm"), "\n\n")[4:], "") + over("Cancelled", "Cancelled", 1)
	cases := map[string]struct {
		reason  string
		args    []string
		after   string // what comes when the run is cancelled
		signals []syscall.Signal
		code    int
		stderr  string
		cancels bool
	}{
		"ours": {
			reason: "it ends, and that is waited for", args: []string{"run", "agent/a", "-o", "jsonl"}, after: rest,
			signals: []syscall.Signal{syscall.SIGINT}, code: 130, cancels: true, stderr: "cancelling run/a-1 (again to leave; then look at it with: agentctl attach run/a-1)\n",
		},
		"ours, terminated": {
			reason: "the code says how", args: []string{"run", "agent/a", "-o", "jsonl"}, after: rest,
			signals: []syscall.Signal{syscall.SIGTERM}, code: 143, cancels: true,
		},
		"ours, left": {
			reason: "it does not end in time", args: []string{"run", "agent/a", "-o", "jsonl"}, after: hold,
			signals: []syscall.Signal{syscall.SIGINT, syscall.SIGINT}, code: 130, cancels: true,
			stderr: "left run/a-1 before its end; look at it again with: agentctl attach run/a-1\n",
		},
		"watched": {
			reason: "it goes on", args: []string{"attach", "run/a-1", "-o", "jsonl", "--context", "far"},
			signals: []syscall.Signal{syscall.SIGINT}, code: 130, stderr: "run/a-1 continues; look at it again with: agentctl attach run/a-1 --context far\n",
		},
		"events": {
			reason: "there is nothing to say", args: []string{"events", "run/a-1", "-f", "-o", "jsonl"},
			signals: []syscall.Signal{syscall.SIGTERM}, code: 143,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPlane(t, begun+hold+c.after)
			var stderr bytes.Buffer
			seen := make(chan struct{})
			lines := 0
			out := writer(func(b []byte) (int, error) {
				if lines += bytes.Count(b, []byte("\n")); lines == 4 {
					close(seen)
				}
				return len(b), nil
			})
			code := make(chan int, 1)
			go func() { code <- Main(c.args, Streams{In: strings.NewReader(""), Out: out, Err: &stderr}) }()
			await(t, seen, "the first event")
			raise(t, c.signals[0])
			if c.cancels {
				await(t, p.cancelled, "the request to cancel")
			}
			if len(c.signals) > 1 {
				raise(t, c.signals[1])
			}
			select {
			case got := <-code:
				if got != c.code {
					t.Errorf("%s: exit code %d, want %d", c.reason, got, c.code)
				}
			case <-time.After(patience):
				t.Fatal("it does not end")
			}
			if !strings.Contains(stderr.String(), c.stderr) {
				t.Errorf("%s: stderr is %q, want %q in it", c.reason, stderr.String(), c.stderr)
			}
			select {
			case <-p.cancelled:
				if !c.cancels {
					t.Errorf("%s: it was cancelled", c.reason)
				}
			default:
			}
		})
	}
}

// TestRunThatNobodyReadsGoesOn: an output that takes no more is not a wish to
// cancel, and the run can be looked at again.
func TestRunThatNobodyReadsGoesOn(t *testing.T) {
	cancelled := event.RunFinished{Phase: view.Cancelled, Reason: "Cancelled", ExitCode: 1, Message: "cancelled"}
	p := newPlane(t, strings.Join(strings.SplitAfter(told(cancelled, "hm"), "\n\n")[:4], "")+hold+over("Cancelled", "Cancelled", 1))
	var stderr bytes.Buffer
	out := writer(func([]byte) (int, error) { return 0, syscall.EPIPE })
	if code := Main([]string{"run", "agent/a", "-o", "jsonl"}, Streams{In: strings.NewReader(""), Out: out, Err: &stderr}); code != 141 {
		t.Errorf("exit code %d", code)
	}
	select {
	case <-p.cancelled:
		t.Error("it was cancelled")
	default:
	}
	if got, want := stderr.String(), "run/a-1 continues; look at it again with: agentctl attach run/a-1\n"; got != want {
		t.Errorf("stderr is %q, want %q", got, want)
	}
}

func TestFlagsOfRunBecomeFieldsOfARun(t *testing.T) {
	p := newPlane(t)
	file := filepath.Join(t.TempDir(), "task.txt")
	if err := os.WriteFile(file, []byte("go on\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := command("", "run", "ag/a", "-p", "@"+file, "--input", "k=v", "--timeout", "90s", "--workspace", "workspace/repo", "--name", "a-1", "-n", "web", "--detach")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	want := []string{`POST web/agents/a/runs {"prompt":"go on","name":"a-1","inputs":{"k":"v"},"workspaceRef":{"name":"repo"},"limits":{"timeout":"1m30s"}}`}
	if d := cmp.Diff(want, p.asked); d != "" {
		t.Errorf("asked (-want +got)\n%s", d)
	}
}

func TestFlagsOfRunThatHaveNoPlaceAreRefused(t *testing.T) {
	p := newPlane(t)
	for _, args := range [][]string{
		{"agent/a", "-f", "x.yaml"},
		{"agent/a", "--agent", "b"},
		{"agent/a", "--model", "m"},
		{"agent/a", "--attach", "x.png"},
		{"agent/a", "--in-place"},
		{"agent/a", "--approve", "all"},
		{"agent/a", "--allow-unsandboxed"},
		{"agent/a", "--containerd-address", "/x"},
		{"agent/a", "--fail-on-denied"},
		{"agent/a", "--record", "x"},
		{"agent/a", "--workspace", "."},
		{"agent/a", "--workspace", "agent/x"},
		{"agent/a", "--workspace", "ws/a/b"},
		{"agent/a", "--timeout", "0s"},
		{"agent/a", "--input", "x"},
		{"agent/a", "-p", " "},
		{"agent/a", "--detach", "-o", "json"},
		{"agent/a", "agent/b"},
		{"agent/"},
		{"-f", "x.yaml", "--detach"},
		{"-f", "x.yaml", "--context", "far"},
		{"-f", "x.yaml", "-n", "web"},
		{"-f", "x.yaml", "--name", "x"},
	} {
		if code, stdout, stderr := command("", append([]string{"run"}, args...)...); code != 2 || stdout != "" || !strings.HasPrefix(stderr, "error: ") {
			t.Errorf("run %v: exit code %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
	if len(p.asked) > 0 {
		t.Errorf("the control plane was asked: %v", p.asked)
	}
}

// TestRunIsLookedForHereAndThere: what a run has said is looked for here first,
// who lives it there first, and a flag means there only.
func TestRunIsLookedForHereAndThere(t *testing.T) {
	answer := told(done, "hm", "the answer") + over("Succeeded", "Completed", 0)
	p := newPlane(t, answer, answer, answer)
	file := filepath.Join(t.TempDir(), "all.yaml")
	text := "apiVersion: agentctl.dev/v1alpha1\nkind: Agent\nmetadata: {name: a-1}\nspec: {modelRef: {name: m}}\n---\n" +
		"apiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: m}\nspec: {provider: scripted, scripted: {steps: [{say: said here}]}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if code, _, stderr := command("", "run", "-f", file); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	ids, err := runs.IDs(os.Getenv("AGENTCTL_STATE"))
	if err != nil || len(ids) != 1 {
		t.Fatalf("runs %v, %v", ids, err)
	}
	here := ids[0]
	for _, c := range []struct {
		reason string
		args   []string
		code   int
		want   string
		asks   bool
	}{
		{"here first", []string{"logs", here}, 0, "said here\n", false},
		{"by its beginning", []string{"logs", here[:len(here)-1]}, 0, "said here\n", true},
		{"the newest is here", []string{"logs", "@latest"}, 0, "said here\n", false},
		{"a name there comes before the beginning of one here", []string{"logs", "a-1"}, 0, "the answer\n", true},
		{"there first", []string{"attach", "a-1"}, 0, "the answer\n", true},
		{"here first, of all that are the newest", []string{"attach", "@latest"}, 0, "said here\n", false},
		{"a flag means there", []string{"logs", "@latest", "-n", "web"}, 0, "the answer\n", true},
		{"what is here is cancelled here", []string{"cancel", here}, 1, "", false},
		{"neither here nor there", []string{"events", "nobody"}, 1, "", true},
	} {
		p.asked = nil
		code, stdout, stderr := command("", c.args...)
		if code != c.code || stdout != c.want || len(p.asked) > 0 != c.asks {
			t.Errorf("%s: exit code %d, stdout %q, asked %v, stderr %q", c.reason, code, stdout, p.asked, stderr)
		}
	}
}
