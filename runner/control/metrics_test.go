package control

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// figures are the metrics of workers by name and label.
func figures(t *testing.T, w *Workers) map[string]float64 {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(w); err != nil {
		t.Fatal(err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetName() + "=" + l.GetValue()
			}
			switch {
			case m.GetCounter() != nil:
				all[name] = m.GetCounter().GetValue()
			case m.GetGauge() != nil:
				all[name] = m.GetGauge().GetValue()
			default:
				all[name+" count"], all[name+" sum"] = float64(m.GetHistogram().GetSampleCount()), m.GetHistogram().GetSampleSum()
			}
		}
	}
	return all
}

func TestMetricsCountWhatEventsSay(t *testing.T) {
	w := NewWorkers(WorkerOptions{State: t.TempDir(), Limit: 7})
	defer func() {
		if err := w.Stop(stopPatience); err != nil {
			t.Error(err)
		}
	}()
	half := message.Cost(500_000_000_000)
	i := &item{work: Work{ID: "fixer-1"}}
	top, below := w.metrics.event, w.watchBelow(i)
	for _, d := range []event.Payload{
		event.ModelRetry{},
		event.ModelResponse{Tokens: message.Usage{Input: 10, Output: 5, CacheRead: 100}, Cost: &half},
		event.ModelResponse{},
		event.PolicyDecision{Decision: message.Decision{Action: message.Allow}},
		event.PolicyDecision{Decision: message.Decision{Action: message.Deny}},
		event.ToolResult{},
		event.ToolError{ToolResult: message.ToolResult{Code: message.CodeDenied}},
		event.RunFinished{Phase: "Failed", Reason: "MaxSteps", DurationMs: 1500},
	} {
		top(event.Event{Run: "fixer-1", Data: d})
	}
	below(event.Event{Run: "helper-1", Data: event.ContextCompaction{Tokens: message.Usage{Output: 2}, Cost: &half}})
	below(event.Event{Run: "helper-1", Data: event.RunFinished{Phase: "Succeeded", Reason: "Completed", DurationMs: 500}})
	want := map[string]float64{
		"agentctl_cost_usd_total": 1, "agentctl_model_requests_total outcome=answered": 3, "agentctl_model_requests_total outcome=retried": 1,
		"agentctl_policy_decisions_total decision=allow": 1, "agentctl_policy_decisions_total decision=deny": 1,
		"agentctl_run_duration_seconds phase=Failed count": 1, "agentctl_run_duration_seconds phase=Failed sum": 1.5,
		"agentctl_run_duration_seconds phase=Succeeded count": 1, "agentctl_run_duration_seconds phase=Succeeded sum": 0.5,
		"agentctl_runs state=executed": 0, "agentctl_runs state=parked": 0, "agentctl_runs state=queued": 0, "agentctl_runs state=waiting": 0,
		"agentctl_runs_ended_total phase=Failed reason=MaxSteps": 1, "agentctl_runs_ended_total phase=Succeeded reason=Completed": 1,
		"agentctl_tokens_total type=cache_read": 100, "agentctl_tokens_total type=input": 10, "agentctl_tokens_total type=output": 7,
		"agentctl_tool_calls_total error=": 1, "agentctl_tool_calls_total error=denied": 1, "agentctl_workers": 7,
	}
	if diff := cmp.Diff(want, figures(t, w)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMetricsShowTheQueue(t *testing.T) {
	w := NewWorkers(WorkerOptions{State: t.TempDir(), Limit: 1, Room: func() error { return errors.New("the disk is full") }})
	defer func() {
		if err := w.Stop(stopPatience); err != nil {
			t.Error(err)
		}
	}()
	w.Start(Work{ID: "one"})
	w.Start(Work{ID: "two"})
	if n := figures(t, w)["agentctl_runs state=queued"]; n != 2 {
		t.Errorf("%g runs are queued, want 2", n)
	}
}
