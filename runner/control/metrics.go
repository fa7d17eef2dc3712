package control

import (
	"github.com/prometheus/client_golang/prometheus"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// metrics are figures about the runs that this process executes, from their events. Their
// labels have closed sets of values, so that no manifest can make the page grow.
type metrics struct {
	ended     *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	tokens    *prometheus.CounterVec
	cost      prometheus.Counter
	requests  *prometheus.CounterVec
	decisions *prometheus.CounterVec
	calls     *prometheus.CounterVec
}

func newMetrics() *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return &metrics{
		ended: counter("agentctl_runs_ended_total", "Runs that have ended or were suspended, with those of subagents.", "phase", "reason"),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "agentctl_run_duration_seconds", Help: "Time that processes have worked on runs that ended or were suspended.",
			Buckets: []float64{1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600, 4 * 3600, 24 * 3600},
		}, []string{"phase"}),
		tokens:    counter("agentctl_tokens_total", "Tokens as the providers count them.", "type"),
		cost:      prometheus.NewCounter(prometheus.CounterOpts{Name: "agentctl_cost_usd_total", Help: "Cost of the answers whose price is known, in US dollars."}),
		requests:  counter("agentctl_model_requests_total", "Requests to models that were answered, and that failed and were sent again.", "outcome"),
		decisions: counter("agentctl_policy_decisions_total", "Answers of policies to calls of tools.", "decision"),
		calls:     counter("agentctl_tool_calls_total", "Calls of tools that have ended; error is a code, empty for none.", "error"),
	}
}

// event counts what an event says.
func (m *metrics) event(e event.Event) {
	switch d := e.Data.(type) {
	case event.RunFinished:
		m.ended.WithLabelValues(d.Phase, d.Reason).Inc()
		m.duration.WithLabelValues(d.Phase).Observe(float64(d.DurationMs) / 1000)
	case event.ModelResponse:
		m.answer(d.Tokens, d.Cost)
	case event.ContextCompaction:
		m.answer(d.Tokens, d.Cost)
	case event.ModelRetry:
		m.requests.WithLabelValues("retried").Inc()
	case event.PolicyDecision:
		m.decisions.WithLabelValues(string(d.Action)).Inc()
	case event.ToolResult:
		m.calls.WithLabelValues("").Inc()
	case event.ToolError:
		m.calls.WithLabelValues(string(d.Code)).Inc()
	}
}

func (m *metrics) answer(u message.Usage, cost *message.Cost) {
	m.requests.WithLabelValues("answered").Inc()
	for kind, n := range map[string]int64{"input": u.Input, "output": u.Output, "cache_read": u.CacheRead, "cache_write": u.CacheWrite} {
		if n > 0 {
			m.tokens.WithLabelValues(kind).Add(float64(n))
		}
	}
	if cost != nil && *cost > 0 {
		m.cost.Add(cost.Dollars())
	}
}

// all are the metrics of the events.
func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.ended, m.duration, m.tokens, m.cost, m.requests, m.decisions, m.calls}
}

var (
	runsNow   = prometheus.NewDesc("agentctl_runs", "Runs of objects by what becomes of them: queued for a worker, executed, of these waiting for a person, and parked while they wait.", []string{"state"}, nil)
	workersOf = prometheus.NewDesc("agentctl_workers", "Runs that can be executed at a time.", nil, nil)
)

// Describe implements prometheus.Collector.
func (w *Workers) Describe(to chan<- *prometheus.Desc) {
	for _, c := range w.metrics.all() {
		c.Describe(to)
	}
	to <- runsNow
	to <- workersOf
}

// Collect implements prometheus.Collector.
func (w *Workers) Collect(to chan<- prometheus.Metric) {
	for _, c := range w.metrics.all() {
		c.Collect(to)
	}
	w.mu.Lock()
	now := map[string]int{"queued": w.line.n + len(w.woken), "executed": w.living, "waiting": len(w.resting), "parked": w.asleep}
	limit := w.o.Limit
	w.mu.Unlock()
	for state, n := range now {
		to <- prometheus.MustNewConstMetric(runsNow, prometheus.GaugeValue, float64(n), state)
	}
	to <- prometheus.MustNewConstMetric(workersOf, prometheus.GaugeValue, float64(limit))
}

// Metrics are figures about the runs that the plane executes.
func (p *Plane) Metrics() prometheus.Collector { return p.workers }
