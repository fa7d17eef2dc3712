package runapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/runs"
)

const (
	// maxReason bounds the text that comes with a decision.
	maxReason = 4096
	// decideAttempts is how often a decision is written if the object changes at the same
	// time.
	decideAttempts = 3
)

// decisionRequest is the body of a decision. The identity that decides is not in it: it
// comes from the request.
type decisionRequest struct {
	// Decision is approved or rejected. Required.
	Decision v1alpha1.ApprovalDecision `json:"decision"`
	// Scope of an approval. Default: Once.
	Scope v1alpha1.ApprovalScope `json:"scope,omitempty"`
	// Reason of a rejection, which the model reads.
	Reason string `json:"reason,omitempty"`
	// Answer to the question of a running call, required to approve it: a text, or one
	// of the options by its text or its number, or several of them with commas between
	// them where spec.multiple allows that.
	Answer *string `json:"answer,omitempty"`
	// EndRun ends the run with a rejection. Default: the run continues without the call.
	EndRun bool `json:"endRun,omitempty"`
}

// decision lets a call run, or refuses it. The decision is stored in the status of the
// Approval; the controller of Approvals passes it to the run.
func (s *Server) decision(w http.ResponseWriter, r *http.Request) error {
	d := &decisionRequest{}
	if err := s.decode(w, r, maxBody, d); err != nil {
		return err
	}
	a, err := s.decide(r.Context(), s.o.Caller(r.Context()), target(r), d)
	if err != nil {
		return err
	}
	decided := string(a.Status.Decision)
	if a.Status.Scope == v1alpha1.ScopeAlways {
		decided += " " + string(a.Status.Scope)
	}
	s.o.Audit(r.Context(), AuditedRun, a.Spec.RunRef.Name)
	s.o.Audit(r.Context(), AuditedDecision, decided)
	a.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.KindApproval))
	answer(w, http.StatusOK, a)
	return nil
}

// decide writes a decision into the status of an Approval, unless there is one already: of
// several concurrent decisions exactly one is written.
func (s *Server) decide(ctx context.Context, who Caller, key client.ObjectKey, d *decisionRequest) (*v1alpha1.Approval, error) {
	for attempt := 1; ; attempt++ {
		a := &v1alpha1.Approval{}
		if err := s.o.Reader.Get(ctx, key, a); err != nil {
			return nil, err
		}
		if err := s.decidable(ctx, who, a, d); err != nil {
			return nil, err
		}
		now := metav1.NewTime(s.o.Now())
		a.Status.Decision, a.Status.By, a.Status.Reason, a.Status.DecidedAt = d.Decision, who.Name, d.Reason, &now
		a.Status.EndRun = d.EndRun
		if d.Decision == v1alpha1.DecisionApproved && a.Spec.Question != "" {
			a.Status.Answer = d.answer(a)
		} else if d.Decision == v1alpha1.DecisionApproved {
			a.Status.Scope = v1alpha1.ScopeOnce
			if d.Scope == v1alpha1.ScopeAlways {
				a.Status.Scope = v1alpha1.ScopeAlways
			}
		}
		err := s.o.Client.Status().Update(ctx, a) // conditional: it fails if the object has changed since it was read
		if !apierrors.IsConflict(err) || attempt == decideAttempts {
			return a, err
		}
	}
}

// decidable refuses a decision that is invalid, that the caller may not make, or that
// comes too late.
func (s *Server) decidable(ctx context.Context, who Caller, a *v1alpha1.Approval, d *decisionRequest) error {
	owner := runOwner(a)
	// A run is identified by the runs of its token, never by the name of the identity: a
	// Run may have the name of a person.
	if who.Name == "" || slices.Contains(who.Runs, a.Namespace+"/"+a.Spec.RunRef.Name) {
		return apierrors.NewForbidden(resource("approvals"), a.Name, errorf("a run does not approve its own calls"))
	}
	if problems := d.problems(a); len(problems) > 0 {
		return apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind(v1alpha1.KindApproval).GroupKind(), a.Name, problems)
	}
	if x := a.Status; x.Decision != "" {
		return late(a, "it was %s already%s", x.Decision, by(x.By))
	}
	if at := a.Spec.ExpiresAt; at != nil && !s.o.Now().Before(at.Time) {
		return late(a, "it has expired")
	}
	run := &v1alpha1.Run{}
	err := s.o.Reader.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: a.Spec.RunRef.Name}, run)
	switch {
	case apierrors.IsNotFound(err), err == nil && string(run.UID) != owner:
		return late(a, "the run that asks is gone")
	case err != nil:
		return err
	case !run.DeletionTimestamp.IsZero():
		return late(a, "the run that asks is being deleted")
	case run.Status.Phase.Finished():
		return late(a, "the run that asks has ended: its phase is %s", run.Status.Phase)
	}
	return s.mayApprove(who, run, a, d)
}

// mayApprove refuses an approval by the identity that began the run. That identity may
// still reject the call.
func (s *Server) mayApprove(who Caller, run *v1alpha1.Run, a *v1alpha1.Approval, d *decisionRequest) error {
	starter := run.Annotations[v1alpha1.AnnotationStartedBy]
	if d.Decision != v1alpha1.DecisionApproved || starter != "" && starter != who.Name || s.o.SelfApproval() {
		return nil
	}
	why := fmt.Sprintf("%q began run %q", who.Name, run.Name)
	if starter == "" {
		why = fmt.Sprintf("it is not known who began run %q", run.Name)
	}
	return apierrors.NewForbidden(resource("approvals"), a.Name, errorf("an identity may not approve calls of a run that it began, and %s: "+
		"ask another approver, or start agentd with --self-approval", why))
}

// problems are the mistakes in a decision that do not depend on the caller.
func (d *decisionRequest) problems(a *v1alpha1.Approval) (all field.ErrorList) {
	approves := d.Decision == v1alpha1.DecisionApproved
	if !approves && d.Decision != v1alpha1.DecisionRejected {
		all = append(all, field.NotSupported(field.NewPath("decision"), d.Decision, []v1alpha1.ApprovalDecision{v1alpha1.DecisionApproved, v1alpha1.DecisionRejected}))
	}
	scope := field.NewPath("scope")
	switch d.Scope {
	case "", v1alpha1.ScopeOnce:
	case v1alpha1.ScopeAlways:
		if a.Spec.Question != "" {
			all = append(all, field.Invalid(scope, d.Scope, "a question cannot be approved for always"))
		} else if !approves {
			all = append(all, field.Invalid(scope, d.Scope, "only an approval can hold for always"))
		} else if a.Spec.Always == nil {
			all = append(all, field.Invalid(scope, d.Scope, "the call can only be approved once: "+a.Spec.Once))
		}
	default:
		all = append(all, field.NotSupported(scope, d.Scope, []v1alpha1.ApprovalScope{v1alpha1.ScopeOnce, v1alpha1.ScopeAlways}))
	}
	all = append(all, d.answerProblems(a)...)
	if approves && a.Spec.Args == nil && a.Spec.Question == "" {
		all = append(all, field.Forbidden(field.NewPath("decision"), "the call is larger than an object can show, and nobody approves what they cannot see: answer where the run is executed, with agentctl approve"))
	}
	if approves && d.EndRun {
		all = append(all, field.Invalid(field.NewPath("endRun"), d.EndRun, "only a rejection can end the run"))
	}
	if len(d.Reason) > maxReason || !utf8.ValidString(d.Reason) {
		all = append(all, field.Invalid(field.NewPath("reason"), "", "it has to be a text of at most 4096 bytes"))
	}
	return all
}

// answerProblems are the mistakes in the answer of a decision.
func (d *decisionRequest) answerProblems(a *v1alpha1.Approval) (all field.ErrorList) {
	path, question := field.NewPath("answer"), a.Spec.Question != ""
	switch {
	case !question && d.Answer != nil:
		all = append(all, field.Forbidden(path, "the call waits for an approval and does not ask a question"))
	case question && d.EndRun:
		all = append(all, field.Invalid(field.NewPath("endRun"), d.EndRun, "refusing to answer a question cannot end the run"))
	case question && d.Decision == v1alpha1.DecisionApproved && d.Answer == nil:
		all = append(all, field.Required(path, "the call asks a question"))
	case question && d.Answer != nil && d.Decision != v1alpha1.DecisionApproved:
		all = append(all, field.Forbidden(path, "only an approved question has an answer"))
	case question && d.Answer != nil:
		if _, err := runs.Choose(inquiry(a), *d.Answer); err != nil {
			all = append(all, field.Invalid(path, "", err.Error()))
		}
	}
	return all
}

// answer is the text of the answer: an option can be given by its number.
func (d *decisionRequest) answer(a *v1alpha1.Approval) string {
	text, _ := runs.Choose(inquiry(a), *d.Answer) // answerProblems has checked it
	return text
}

func inquiry(a *v1alpha1.Approval) message.Inquiry {
	return message.Inquiry{Text: a.Spec.Question, Options: a.Spec.Options, Multiple: a.Spec.Multiple}
}

// runOwner is the UID of the run that asks: a later run of the same name has another one.
func runOwner(a *v1alpha1.Approval) string {
	for _, o := range a.OwnerReferences {
		if o.Kind == v1alpha1.KindRun && o.Name == a.Spec.RunRef.Name {
			return string(o.UID)
		}
	}
	return ""
}

func late(a *v1alpha1.Approval, format string, args ...any) error {
	return apierrors.NewConflict(resource("approvals"), a.Name, errorf(format, args...))
}

func by(name string) string {
	if name == "" {
		return ""
	}
	return " by " + name
}
