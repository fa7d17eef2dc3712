package client

import (
	"context"
	"time"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// Decision is the decision on a call that waits for approval. The server knows
// who decides.
type Decision struct {
	// Decision is approved or rejected. Required.
	Decision v1alpha1.ApprovalDecision `json:"decision"`
	// Scope of an approval; "" is Once.
	Scope v1alpha1.ApprovalScope `json:"scope,omitempty"`
	// Reason of a rejection, which the model reads.
	Reason string `json:"reason,omitempty"`
	// Answer to the question of a running call: a text, or one of the options.
	Answer *string `json:"answer,omitempty"`
	// EndRun ends the run with a rejection.
	EndRun bool `json:"endRun,omitempty"`
}

// replacedTime is how long Decide waits for an Approval that takes the place of another.
const replacedTime = 5 * time.Second

// Decide requests a decision on the question of an Approval, which its binding names, and
// returns the Approval afterwards. An Approval that was decided already, or whose run has
// ended, is a Conflict.
//
// A run that continues in another process asks again with a later deadline: its Approval is
// deleted, and another one of the same name asks the same question. Decide waits for it.
func (c *Client) Decide(ctx context.Context, approval Ref, binding string, d Decision) (Object, error) {
	approval.Kind = v1alpha1.KindApproval
	decided, err := c.post(ctx, approval, "decision", d)
	if !Missing(err) {
		return decided, err
	}
	soon, cancel := context.WithTimeout(ctx, replacedTime)
	defer cancel()
	replaced := func(o Object) bool { return o != nil && o.Text("spec", "binding") == binding }
	if c.Await(soon, approval, replaced) != nil {
		return nil, err
	}
	return c.post(ctx, approval, "decision", d)
}
