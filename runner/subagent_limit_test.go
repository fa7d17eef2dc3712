package runner

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/model/modeltest"
)

// meeting holds what comes until as many as it waits for are there.
type meeting struct {
	mu      sync.Mutex
	missing int
	all     chan struct{}
}

func newMeeting(n int) *meeting { return &meeting{missing: n, all: make(chan struct{})} }

func (m *meeting) join() {
	m.mu.Lock()
	if m.missing--; m.missing == 0 {
		close(m.all)
	}
	m.mu.Unlock()
	select {
	case <-m.all:
	case <-time.After(time.Minute): // what is missing shows in the results
	}
}

// TestAtMost64RunsBelowARun has as many subagents as may exist wait for each other, and then
// each start another one: these are refused, the others do their work.
func TestAtMost64RunsBelowARun(t *testing.T) {
	begun, refused := newMeeting(mostChildren), newMeeting(mostChildren)
	answer := func(request []byte) modeltest.Answer {
		switch {
		case bytes.Contains(request, []byte(`"one too many"`)):
			return modeltest.Answer{Text: "this run should not exist"}
		case !bytes.Contains(request, []byte(`"tool_calls"`)):
			begun.join()
			return modeltest.Answer{Calls: []modeltest.Call{{ID: "c1", Tool: "task", Args: `{"agent": "helper", "prompt": "one too many"}`}}}
		case !bytes.Contains(request, []byte("64 runs below this one are executed already")):
			return modeltest.Answer{Text: "was not refused"}
		}
		refused.join()
		return modeltest.Answer{Text: "worked alone"}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client is gone
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(modeltest.Chat.Stream(answer(request))) // a client that is gone shows in the results
	}))
	t.Cleanup(server.Close)
	tasks := strings.TrimSuffix(strings.Repeat("{tool: task, args: {agent: helper, prompt: work}}, ", mostChildren), ", ")
	helper := "apiVersion: agentctl.dev/v1alpha1\nkind: Agent\nmetadata: {name: helper}\nspec:\n  mode: Subagent\n  modelRef: {name: served}\n  subagents: [{name: helper}]\n"
	p := newPlace(t, agent("subagents: [{name: helper}]\nlimits: {maxParallelTools: 64}\nloopGuard: {identicalCalls: 0, cycles: 0, stalledSteps: 0}",
		"- calls: ["+tasks+"]\n- say: done\n", helper)+openaiModel("served", server.URL+modeltest.Chat.Base(), ""), nil)
	out := p.run(t)
	want(t, out, reason.Completed)
	for n := range mostChildren {
		if got := text(t, out, n); !strings.Contains(got, "worked alone") || call(t, out, n).Error != nil {
			t.Fatalf("subagent %d: %s", n, got)
		}
	}
}
