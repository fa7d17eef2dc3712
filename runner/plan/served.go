package plan

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// servedPrompt begins a run whose calls clients make.
const servedPrompt = "Run the calls of clients."

// servedTime ends a run whose calls clients make, unless a shorter time is given.
const servedTime = 7 * 24 * time.Hour

// forClients replaces the model of the plan by clients. What bounds a model that works
// alone does not apply to them: steps and the wall time of a task. Tokens and cost are
// those of the runs that calls start; a client has none. The limits of the tools,
// limits.maxParallelTools and the policies apply.
func (p *Plan) forClients() {
	p.Model = &v1alpha1.Model{
		ObjectMeta: metav1.ObjectMeta{Name: "client"},
		Spec:       v1alpha1.ModelSpec{Provider: "mcp", Pricing: &v1alpha1.Pricing{Input: "0", Output: "0"}},
	}
	p.Fallbacks, p.Summarizer = nil, nil
	p.Limits.MaxSteps = 0
	p.Limits.Timeout.Duration = servedTime
	if p.Agent.Spec.Approvals.OnAsk == v1alpha1.OnAskSuspend { // a client waits for the answer
		p.Agent.Spec.Approvals.OnAsk = v1alpha1.OnAskWait
	}
}
