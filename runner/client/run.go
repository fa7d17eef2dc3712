package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// Prompt is the task for an agent: a Run, with defaults from the agent.
type Prompt struct {
	// Prompt is the first user message. Optional, as it is in a Run.
	Prompt string `json:"prompt,omitempty"`
	// Name of the Run; "": the server generates one that begins with the
	// agent's.
	Name string `json:"name,omitempty"`
	// Labels of the Run.
	Labels map[string]string `json:"labels,omitempty"`
	// Inputs for the agent.
	Inputs map[string]string `json:"inputs,omitempty"`
	// SkillRef names the skill whose plan is carried out. Optional.
	SkillRef *v1alpha1.Reference `json:"skillRef,omitempty"`
	// PolicyRefs name policies that narrow the run.
	PolicyRefs []v1alpha1.Reference `json:"policyRefs,omitempty"`
	// WorkspaceRef names a Workspace, or Workspace describes the files.
	WorkspaceRef *v1alpha1.Reference     `json:"workspaceRef,omitempty"`
	Workspace    *v1alpha1.WorkspaceSpec `json:"workspace,omitempty"`
	// Limits narrow those of the agent.
	Limits *v1alpha1.RunLimits `json:"limits,omitempty"`
	// TTLAfterFinished deletes the Run this long after its end.
	TTLAfterFinished *metav1.Duration `json:"ttlAfterFinished,omitempty"`
}

// PromptRun has an agent begin a run and returns the Run. It is not sent a
// second time when the connection breaks: the run may have begun.
func (c *Client) PromptRun(ctx context.Context, agent Ref, p Prompt) (Object, error) {
	agent.Kind = v1alpha1.KindAgent
	o, err := c.post(ctx, agent, "runs", p)
	if err != nil {
		return nil, begun(err, p.Name)
	}
	if o.Kind() != v1alpha1.KindRun || o.Name() == "" {
		return nil, c.strange(request{about: agent}, "its answer is no Run")
	}
	return o, nil
}

// begun turns an error of the beginning of a run into an error about the run,
// if that is what the server refuses.
func begun(err error, name string) error {
	e, ok := errors.AsType[*StatusError](err)
	if ok && name != "" && (e.exists() || e.Code == http.StatusUnprocessableEntity) {
		e.About.Kind, e.About.Name, e.sub = v1alpha1.KindRun, name, ""
	}
	return err
}

// Cancel requests the end of a run and returns the Run. A run that has ended
// already is a Conflict of the server.
func (c *Client) Cancel(ctx context.Context, run Ref) (Object, error) {
	run.Kind = v1alpha1.KindRun
	return c.post(ctx, run, "cancel", struct{}{})
}

// SendMessage leaves a message for a run and returns its id. The run reads it
// before its next request to the model.
func (c *Client) SendMessage(ctx context.Context, run Ref, text string) (id string, err error) {
	run.Kind = v1alpha1.KindRun
	o, err := c.post(ctx, run, "messages", map[string]string{"text": text})
	return o.Text("id"), err
}

// post sends something to a subresource of an object.
func (c *Client) post(ctx context.Context, ref Ref, sub string, what any) (Object, error) {
	body, err := json.Marshal(what)
	if err != nil {
		return nil, fail(err, "encode the %s of %s", sub, ref)
	}
	o, err := c.object(ctx, ref, request{method: http.MethodPost, sub: sub, contentType: asJSON, body: body})
	return o, c.unserved(ctx, ref, err)
}
