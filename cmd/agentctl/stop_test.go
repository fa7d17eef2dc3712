package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
)

// deafTree is a command of three processes that no signal but SIGKILL ends: one
// has a session of its own. It tells their ids on a line.
const deafTree = `trap '' TERM INT HUP; touch pids; ` +
	`setsid sh -c 'trap \"\" TERM INT HUP; echo $$ >>pids; while :; do sleep 1; done' & ` +
	`sh -c 'trap \"\" TERM INT HUP; echo $$ >>pids; while :; do sleep 1; done' & ` +
	`until [ $(wc -l <pids) = 2 ]; do sleep 0.02; done; echo $(cat pids) $$ begun; while :; do sleep 1; done`

// manifest declares an agent with bash and one rule, and a model.
func manifest(action, model string) string {
	return `apiVersion: agentctl.dev/v1alpha1
kind: Agent
metadata: {name: a}
spec: {modelRef: {name: m}, tools: [{name: bash}], policyRefs: [{name: p}], approvals: {onAsk: Wait, timeout: 10m}}
---
apiVersion: agentctl.dev/v1alpha1
kind: Policy
metadata: {name: p}
spec: {rules: [{name: r, match: {tools: [bash]}, action: ` + action + `}]}
---
apiVersion: agentctl.dev/v1alpha1
kind: Model
metadata: {name: m}
spec:
  ` + model + "\n"
}

func calling(commands ...string) string {
	var calls []string
	for _, c := range commands {
		calls = append(calls, `{tool: bash, args: {command: "`+c+`"}}`)
	}
	return "provider: scripted\n  scripted: {steps: [{calls: [" + strings.Join(calls, ", ") + "]}, {say: done}]}"
}

// live is an agentctl that runs, seen through the events on its stdout.
type live struct {
	cmd    *exec.Cmd
	events *bufio.Reader
	run    view.Run
	stderr said
	// tree are the processes of deafTree.
	tree []int
	// watch, if set, is told each event.
	watch func(event.Event)
	// seen is the text of the events so far.
	seen strings.Builder
}

// said is what a program has written to stderr.
type said struct {
	mu      sync.Mutex
	text    bytes.Buffer
	stopped chan struct{} // closed when the first signal has been noticed
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := strings.Contains(s.text.String(), "stopping")
	s.text.Write(b)
	if !before && strings.Contains(s.text.String(), "stopping") {
		close(s.stopped)
	}
	return len(b), nil
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// begin starts a run with the shipped tools in libexec.
func begin(t *testing.T, libexec, manifest string) *live {
	t.Helper()
	work := t.TempDir()
	file := filepath.Join(work, "agent.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	l := &live{cmd: exec.CommandContext(ctx, "agentctl", "run", "-f", file, "-p", "go", "--workspace", t.TempDir(), "-o", "jsonl")}
	l.cmd.Env = append(os.Environ(), "AGENTCTL_STATE="+filepath.Join(work, "state"), "AGENTCTL_LIBEXEC="+libexec, "AGENTCTL_OUTER_ISOLATION=container", "KEY=k")
	l.stderr.stopped = make(chan struct{})
	l.cmd.Stderr, l.cmd.WaitDelay = &l.stderr, time.Second
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	l.events = bufio.NewReader(out)
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return l
}

// until reads events up to the first that holds a text, or all of them.
func (l *live) until(t *testing.T, text string) {
	t.Helper()
	for {
		line, err := l.events.ReadString('\n')
		if err == io.EOF && text == "" {
			return
		}
		if err != nil {
			t.Fatalf("no event holds %q: %v\n%s%s", text, err, l.seen.String(), l.stderr.String())
		}
		l.seen.WriteString(line)
		var e event.Event
		if err := e.UnmarshalJSON([]byte(line)); err != nil {
			t.Fatal(err)
		}
		if err := l.run.Apply(e); err != nil {
			t.Fatal(err)
		}
		if l.watch != nil {
			l.watch(e)
		}
		if text != "" && strings.Contains(line, text) {
			return
		}
	}
}

func (l *live) signal(t *testing.T, s syscall.Signal) time.Time {
	t.Helper()
	if err := l.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	return time.Now()
}

// ends reads what is left and holds the end of a stopped run against the
// promises: exit code, and no state but a final one.
func (l *live) ends(t *testing.T, code int) {
	t.Helper()
	l.until(t, "")
	_ = l.cmd.Wait() // the code says it
	if got := l.cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("exit code %d, want %d\n%s", got, code, l.stderr.String())
	}
	if f := l.run.Finished; f == nil || l.run.Phase != view.Cancelled || f.ExitCode != code {
		t.Fatalf("the journal ends with %+v\n%s", f, l.stderr.String())
	}
	for _, m := range l.run.Messages {
		if m.Open() {
			t.Errorf("message %s is open", m.ID)
		}
		for _, c := range m.Calls() {
			if c.State != message.StateCompleted && c.State != message.StateError {
				t.Errorf("call %s of %s is %s", c.CallID, c.Tool, c.State)
			}
		}
	}
}

var toldPids = regexp.MustCompile(`"text":"(\d+) (\d+) (\d+) begun`)

// pids are the process ids that deafTree has told, as this test sees them.
func (l *live) pids(t *testing.T) (pids []int) {
	t.Helper()
	told := toldPids.FindStringSubmatch(l.seen.String())
	if told == nil {
		t.Fatalf("the command told no ids:\n%s", l.seen.String())
	}
	for _, text := range told[1:] {
		pid, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return outside(t, l.cmd.Process.Pid, pids)
}

// outside turns process ids as a program under root sees them, perhaps in a
// namespace of its own, into those of this test.
func outside(t *testing.T, root int, inner []int) []int {
	t.Helper()
	parents, names := map[int]int{}, map[int]int{}
	files, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // it has just ended
		}
		var pid, parent int
		for line := range strings.Lines(string(b)) {
			switch fields := strings.Fields(line); fields[0] {
			case "Pid:":
				pid, _ = strconv.Atoi(fields[1])
			case "PPid:":
				parent, _ = strconv.Atoi(fields[1])
			case "NSpid:":
				names[pid], _ = strconv.Atoi(fields[len(fields)-1])
			}
		}
		parents[pid] = parent
	}
	var found []int
	for _, want := range inner {
		pid := want // reparented to the host's init, if it is in no namespace
		for p, name := range names {
			above := p
			for above > 1 && above != root {
				above = parents[above]
			}
			if name == want && above == root {
				pid = p
			}
		}
		if names[pid] == want {
			found = append(found, pid)
		}
	}
	if len(found) != len(inner) {
		t.Fatalf("of the processes %v under %d there are %v", inner, root, found)
	}
	return found
}

// stalling is a model server that begins an answer and then says nothing; one
// that begins none is busy.
func stalling(t *testing.T, begun string) string {
	t.Helper()
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the answer does not depend on it
		if begun == "" {
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", begun)
		w.(http.Flusher).Flush()
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	return "provider: openai\n  model: x\n  baseURL: " + server.URL + "/v1\n  apiKey: {valueFrom: {env: KEY}}\n  pricing: {input: \"1\", output: \"1\"}"
}

func TestFirstSignalKeepsWhatThereIs(t *testing.T) {
	libexec := buildTools(t)
	cases := map[string]struct {
		reason   string
		manifest string
		when     string // an event that holds this
		check    func(t *testing.T, l *live)
	}{
		"streaming": {
			"the text so far is the output of the run", manifest("allow", stalling(t, `{"role":"assistant","content":"half an ans"}`)), "half an ans",
			func(t *testing.T, l *live) {
				t.Helper()
				if got := l.run.Finished.Output; got != "half an ans" {
					t.Errorf("the output is %q", got)
				}
				if m := l.run.Message(); m.Error != message.Aborted || m.Text() != "half an ans" {
					t.Errorf("the message is %q, error %q", m.Text(), m.Error)
				}
			},
		},
		"a call is being written": {
			"it never runs, and has an end",
			manifest("allow", stalling(t, `{"role":"assistant","tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"bash","arguments":"{\"command\":\"ec"}}]}`)),
			`"type":"tool.input-delta"`,
			func(t *testing.T, l *live) {
				t.Helper()
				if m := l.run.Message(); m.Error != message.Aborted {
					t.Errorf("the message has error %q", m.Error)
				}
			},
		},
		"a tool runs": {
			"its output so far is its result", manifest("allow", calling("echo begun; sleep 600")), "begun\\n",
			func(t *testing.T, l *live) {
				t.Helper()
				l.cancelled(t, 0, "begun\n")
			},
		},
		"a deaf tool runs": {
			"it is killed with all it has started", manifest("allow", calling(deafTree)), " begun\\n",
			func(t *testing.T, l *live) {
				t.Helper()
				l.cancelled(t, 0, "begun\n")
				awaitGone(t, l.tree)
			},
		},
		"tools run and wait": {
			"every call has an end", manifest("allow", calling("echo begun; sleep 600", "sleep 601", "sleep 602")), "begun\\n",
			func(t *testing.T, l *live) {
				t.Helper()
				for i := range 3 {
					l.cancelled(t, i, "")
				}
			},
		},
		"a person is asked": {
			"nobody answers any more", manifest("ask", calling("echo begun")), `"type":"approval.requested"`,
			func(t *testing.T, l *live) {
				t.Helper()
				l.cancelled(t, 0, "")
			},
		},
		"a request is retried": {
			"the wait ends", manifest("allow", stalling(t, "")), `"type":"model.retry"`, func(*testing.T, *live) {},
		},
	}
	for name, c := range cases {
		for s, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
			t.Run(name+"/"+s.String(), func(t *testing.T) {
				t.Parallel()
				l := begin(t, libexec, c.manifest)
				l.until(t, c.when)
				if toldPids.MatchString(l.seen.String()) {
					l.tree = l.pids(t)
				}
				l.signal(t, s)
				l.ends(t, code)
				c.check(t, l)
				if t.Failed() {
					t.Log(c.reason)
				}
			})
		}
	}
}

// cancelled wants a call to have ended as cancelled, with some output.
func (l *live) cancelled(t *testing.T, n int, output string) {
	t.Helper()
	r := l.run.Message().Calls()[n].Result
	if r == nil || r.Code != message.CodeCancelled || !strings.Contains(r.Text, output) {
		t.Errorf("call %d ended as %+v", n, r)
	}
}

// gone wants processes to have ended.
func gone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if !ended(pid) {
			t.Errorf("process %d lives on", pid)
			_ = syscall.Kill(pid, syscall.SIGKILL) // nobody else will
		}
	}
}

// deafGrace is how long after a TERM a command lives that is deaf to it.
const deafGrace = 2 * time.Second

func TestSecondSignalKillsTheTreeAtOnce(t *testing.T) {
	libexec := buildTools(t)
	t.Run("in a sandbox", func(t *testing.T) { killsTheTree(t, libexec) })
	t.Run("without one", func(t *testing.T) { killsTheTree(t, withoutSandbox(t, libexec)) })
}

// killsTheTree kills a command that would get the time to end by itself. On a busy
// machine one kill may take as long: then it is tried again.
func killsTheTree(t *testing.T, libexec string) {
	t.Helper()
	for range 5 {
		took := secondSignal(t, libexec)
		t.Logf("the tree was gone %s after the second signal", took)
		if took < deafGrace/2 { // on a machine that is not busy it takes 30 ms
			return
		}
	}
	t.Error("it was given the time to end by itself")
}

// secondSignal returns how long after the second signal a command and all it has started
// were gone.
func secondSignal(t *testing.T, libexec string) time.Duration {
	t.Helper()
	l := begin(t, libexec, manifest("allow", calling(deafTree)))
	l.until(t, "begun\\n")
	pids := l.pids(t)
	l.signal(t, syscall.SIGINT)
	<-l.stderr.stopped // two signals of a kind may become one
	second := l.signal(t, syscall.SIGINT)
	awaitGone(t, pids)
	took := time.Since(second)
	l.ends(t, 130)
	l.cancelled(t, 0, "begun\n")
	return took
}

// A reader that has stopped reading holds back neither the run nor its end.
func TestSecondSignalWaitsForNoReader(t *testing.T) {
	libexec := buildTools(t)
	l := begin(t, libexec, manifest("allow", calling("seq 1 20000", "seq 2 20000", "seq 3 20000", "seq 4 20000", "echo begun; sleep 600")))
	dir := filepath.Join(filepath.Dir(l.cmd.Args[3]), "state", "runs")
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.Now().Add(patience)
	for journal := ""; strings.Count(journal, `"type":"tool.result"`) < 4; <-tick.C {
		files, err := filepath.Glob(filepath.Join(dir, "*", "events-*.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			journal = string(b)
		}
		if time.Now().After(late) {
			t.Fatal("the run waits for its reader")
		}
	}
	l.signal(t, syscall.SIGINT)
	<-l.stderr.stopped
	second := l.signal(t, syscall.SIGINT)
	if _, err := l.cmd.Process.Wait(); err != nil {
		t.Fatal(err)
	}
	// One second is for words that nobody may read; who is not in a hurry waits ten.
	if took := time.Since(second); took > 8*time.Second {
		t.Errorf("the end took %s", took)
	}
}
