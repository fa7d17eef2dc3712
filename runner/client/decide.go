package client

import (
	"context"

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

// Decide requests a decision on an Approval and returns the Approval
// afterwards. An Approval that was decided already, or whose run has ended, is
// a Conflict.
func (c *Client) Decide(ctx context.Context, approval Ref, d Decision) (Object, error) {
	approval.Kind = v1alpha1.KindApproval
	return c.post(ctx, approval, "decision", d)
}
