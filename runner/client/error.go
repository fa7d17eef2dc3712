package client

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Error is an error on the way to a control plane; Hint is the next step.
type Error struct {
	Err  error
	Hint string
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func (e *Error) hint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// fail adds what was being done to the error, and the cause where it is known.
func fail(cause error, format string, args ...any) *Error {
	text := fmt.Sprintf(format, args...)
	if cause == nil {
		return &Error{Err: errors.New(text)}
	}
	return &Error{Err: fmt.Errorf("%s: %w", text, cause)}
}

// StatusError is a server's refusal, with a text of this client.
type StatusError struct {
	// Code of the HTTP answer.
	Code int
	// Reason as the API spells it: NotFound, Conflict.
	Reason metav1.StatusReason
	// About is the object that was asked about.
	About Ref
	// Message is the text of the server.
	Message string
	// Causes are the fields it complains about.
	Causes []metav1.StatusCause
	// RetryAfter is how long to wait before the next request; 0: the server did
	// not say.
	RetryAfter time.Duration

	server string
	// sub is the subresource that was asked: events, cancel.
	sub string
	// space is the namespace that does not exist, where that is why.
	space string
}

// maxMessage bounds how much of a server's text is repeated.
const maxMessage = 2000

func (c *Client) status(r request, answer *http.Response, body []byte) error {
	e := &StatusError{Code: answer.StatusCode, About: r.about, RetryAfter: retryAfter(answer.Header), server: c.name(), sub: r.sub}
	var s metav1.Status
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if kind == asJSON && json.Unmarshal(body, &s) == nil && s.Kind == "Status" {
		e.Reason, e.Message = s.Reason, s.Message
		if s.Details != nil {
			e.Causes = s.Details.Causes
			if e.Reason == metav1.StatusReasonNotFound && s.Details.Kind == "namespaces" {
				e.Reason, e.space = "", s.Details.Name
			}
			// A path that is not served is NotFound as an object is, but has no name.
			if e.Reason == metav1.StatusReasonNotFound && s.Details.Name == "" && r.about.Name != "" {
				e.Reason = ""
			}
		}
	} else if e.Message = strings.TrimSpace(string(body)); len(e.Message) > 200 || strings.HasPrefix(e.Message, "<") {
		e.Message = "" // a page that is not of an API server
	}
	e.Message = bounded(e.Message)
	return e
}

// bounded is as much of a server's text as is repeated.
func bounded(words string) string {
	if len(words) <= maxMessage {
		return words
	}
	return strings.ToValidUTF8(words[:maxMessage], "") + "…"
}

func (e *StatusError) Error() string {
	return e.About.prefix() + e.text()
}

func (e *StatusError) text() string {
	switch {
	case e.Missing():
		return "not found"
	case e.space != "":
		return fmt.Sprintf("%s has no namespace %q", e.server, e.space)
	case e.Code == http.StatusNotFound && e.sub != "":
		return e.server + " does not serve " + e.About.plural() + "/" + e.sub
	case e.Code == http.StatusNotFound && e.About.Kind == KindEvent:
		return e.server + " does not serve events"
	case e.Code == http.StatusNotFound:
		return e.server + " does not serve " + group
	case e.Code == http.StatusUnauthorized:
		return e.server + " does not know this token or certificate"
	case e.Code == http.StatusForbidden:
		return e.forbidden()
	case e.exists():
		return "it exists already"
	case e.Code >= 300 && e.Code < 400:
		return fmt.Sprintf("%s sends us elsewhere (%d), and a token does not follow", e.server, e.Code)
	case e.Managed():
		return e.managed()
	case e.Code == http.StatusConflict && e.sub != "":
		// "Operation cannot be fulfilled on KIND "NAME": " repeats what the text
		// has already.
		if _, why, ok := strings.Cut(e.words(), `": `); ok && strings.HasPrefix(e.words(), "Operation cannot be fulfilled on ") {
			return why
		}
		return e.words()
	case e.Code == http.StatusConflict && e.Reason == metav1.StatusReasonConflict:
		return "somebody has changed it in the meantime"
	case e.Code == http.StatusUnprocessableEntity && len(e.Causes) > 0:
		return e.fields()
	case e.Code == http.StatusRequestEntityTooLarge:
		return "it is larger than what a control plane keeps"
	case e.Code == http.StatusTooManyRequests && e.sub != "" && e.Message != "":
		return e.server + " has too much to do: " + e.words()
	case e.Code == http.StatusTooManyRequests:
		return e.server + " has too much to do"
	}
	return fmt.Sprintf("%s answered %d: %s", e.server, e.Code, e.words())
}

func (e *StatusError) words() string {
	if e.Message == "" {
		return http.StatusText(e.Code)
	}
	return e.Message
}

// Missing reports that the object does not exist.
func (e *StatusError) Missing() bool {
	return e.Code == http.StatusNotFound && e.Reason == metav1.StatusReasonNotFound
}

// unserved distinguishes an object that does not exist from a subresource that
// is not served: for both a cluster answers that the object is not found.
func (c *Client) unserved(ctx context.Context, about Ref, err error) error {
	e, ok := errors.AsType[*StatusError](err)
	if !ok || !e.Missing() || e.sub == "" {
		return err
	}
	if _, look := c.Get(ctx, about); look == nil {
		e.Reason = ""
	}
	return err
}

// exists reports that there is an object of the name already.
func (e *StatusError) exists() bool {
	return e.Code == http.StatusConflict && e.Reason == metav1.StatusReasonAlreadyExists
}

// Managed reports that an apply would take fields away from another manager.
func (e *StatusError) Managed() bool {
	for _, c := range e.Causes {
		if c.Type == metav1.CauseTypeFieldManagerConflict {
			return true
		}
	}
	return false
}

// managed lists the fields by their managers: conflict with "kubectl" using
// agentctl.dev/v1alpha1.
func (e *StatusError) managed() string {
	var texts []string
	for _, c := range e.Causes {
		if c.Type != metav1.CauseTypeFieldManagerConflict {
			continue
		}
		who := c.Message
		if _, rest, ok := strings.Cut(c.Message, `"`); ok {
			who, _, _ = strings.Cut(rest, `"`)
		}
		texts = append(texts, fmt.Sprintf("%s is managed by %q", strings.TrimPrefix(c.Field, "."), who))
	}
	return strings.Join(texts, "; ")
}

func (e *StatusError) fields() string {
	texts := make([]string, 0, len(e.Causes))
	for _, c := range e.Causes {
		text := strings.TrimPrefix(c.Message, "Invalid value: ")
		if c.Field != "" && c.Field != "<nil>" {
			text = c.Field + ": " + text
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

// Hint is the next step.
func (e *StatusError) Hint() string {
	switch {
	case e.Missing():
		if e.About.Kind == "" {
			return ""
		}
		hint := "see what is there: agentctl get " + e.About.plural()
		if ns := e.About.Namespace; ns != "" && ns != metav1.NamespaceDefault {
			hint += " -n " + ns
		}
		return hint
	case e.space != "":
		return "kubectl create namespace " + e.space
	case e.Code == http.StatusNotFound && e.sub != "":
		return "runs are followed and steered where agentd serves them: choose another context (agentctl config get-contexts)"
	case e.Code == http.StatusNotFound:
		return "choose another context (agentctl config get-contexts), or apply the CustomResourceDefinitions there first"
	case e.Code == http.StatusUnauthorized:
		return "look at the user of the context: agentctl config view"
	case e.Code == http.StatusForbidden:
		if d, _, ok := Denied(e); ok {
			return d.Hint()
		}
		if strings.Contains(e.Message, refusal) {
			return "" // by a rule that applies to all roles
		}
		return "ask an admin of " + e.server
	case e.Managed():
		return "leave these fields out, or take them over with --force-conflicts"
	case e.Code == http.StatusConflict && e.Reason == metav1.StatusReasonConflict && e.sub == "":
		return "look at it anew and try again"
	case e.Code == http.StatusTooManyRequests, e.Code == http.StatusServiceUnavailable:
		return "try again in a while"
	}
	return ""
}

// Missing reports whether an error means that the object does not exist.
func Missing(err error) bool {
	e, ok := errors.AsType[*StatusError](err)
	return ok && e.Missing()
}

// Conflict reports whether an error means that the object has changed since it
// was read.
func Conflict(err error) bool {
	e, ok := errors.AsType[*StatusError](err)
	return ok && e.Reason == metav1.StatusReasonConflict
}

// Hint returns the next step that an error of this package carries, or "".
func Hint(err error) string {
	if e, ok := errors.AsType[*StatusError](err); ok {
		return e.Hint()
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Hint
	}
	return ""
}

// strange is an answer that cannot be used.
func (c *Client) strange(r request, format string, args ...any) error {
	return fail(nil, "%s%s is no control plane we understand: %s", r.about.prefix(), c.name(), fmt.Sprintf(format, args...))
}

// unreachable describes why there is no answer.
func (c *Client) unreachable(ctx context.Context, r request, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.DeadlineExceeded) {
		return cause // the caller ended it
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // the text has the address already
	}
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	about := r.about.prefix()
	e := fail(err, "%s%s cannot be reached", about, c.name())
	_, isUnknown := errors.AsType[x509.UnknownAuthorityError](err)
	timeout, isTimeout := errors.AsType[net.Error](err)
	switch {
	case isUnknown:
		return fail(nil, "%s%s shows a certificate that nobody we trust has signed", about, c.name()).hint("the context needs certificate-authority-data of that server; if it was set up anew, take its new kubeconfig")
	case errors.Is(err, syscall.ECONNREFUSED):
		return fail(syscall.ECONNREFUSED, "%s%s: nobody listens there", about, c.name()).hint("choose another context: agentctl config get-contexts")
	case errors.Is(err, context.DeadlineExceeded), isTimeout && timeout.Timeout():
		return fail(nil, "%s%s does not answer in time", about, c.name()).hint("choose another context: agentctl config get-contexts")
	}
	return e
}
