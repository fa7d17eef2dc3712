package runapi

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// promptRequest is the body of a request for a run of an agent: its spec without the
// agent, which is in the path.
type promptRequest struct {
	// Name of the Run. Default: the agent's name with a random suffix.
	Name string `json:"name,omitempty"`
	// Labels of the Run.
	Labels map[string]string `json:"labels,omitempty"`

	v1alpha1.RunSpec
}

// prompt creates a Run of an agent. It only checks that the agent exists: the API server
// and the controllers check the rest.
func (s *Server) prompt(w http.ResponseWriter, r *http.Request) error {
	p := &promptRequest{}
	if err := s.decode(w, r, maxPrompt, p); err != nil {
		return err
	}
	if p.AgentRef.Name != "" {
		return refusal(http.StatusBadRequest, "agentRef: the agent is the one in the address")
	}
	if p.Workspace != nil && s.o.Caller(r.Context()).NoPaths {
		return refusal(http.StatusForbidden, "workspace: this role may not name files of the server: name a Workspace in workspaceRef, or leave it out for an empty folder")
	}
	agent := target(r)
	if err := s.o.Reader.Get(r.Context(), agent, &v1alpha1.Agent{}); err != nil {
		return err
	}
	run := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: agent.Namespace, Name: p.Name, Labels: p.Labels}, Spec: p.RunSpec}
	run.Spec.AgentRef.Name = agent.Name
	// This process creates the object, for the identity that asks.
	if who := s.o.Caller(r.Context()).Name; who != "" {
		run.Annotations = map[string]string{v1alpha1.AnnotationStartedBy: who}
	}
	if run.Name == "" {
		run.GenerateName = agent.Name + "-"
	}
	if err := s.o.Client.Create(r.Context(), run); err != nil {
		return err
	}
	s.o.Audit(r.Context(), AuditedRun, run.Name)
	answerRun(w, http.StatusCreated, run)
	return nil
}
