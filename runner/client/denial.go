package client

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
)

// Denial is what an identity may not do. Two are equal when one grant of the
// administrator would end both.
type Denial struct {
	// User and Verb as the server spells them.
	User, Verb string
	// Namespace it is about; "" is all of them.
	Namespace string
	// Role is the user's role as the server names it, or another reason that it
	// gives; "": nothing.
	Role, Why string
	// Decision is set when it is about a decision on an approval.
	Decision bool

	server string
}

// denials matches the text in which an API server reports who may not do what.
var denials = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`User "((?:[^"\\]|\\.)*)" cannot (\S+) resource "([^"]+)" in API group "[^"]*" (?:in the namespace "([^"]*)"|at the cluster scope)(?:: (.*))?$`)
})

// role is the form in which agentd gives the reason.
var role = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^role (\S+) may not do this$`) })

// refusal is the text of a server between an object and the reason why it is
// forbidden.
const refusal = " is forbidden: "

// Denied reads an error that an identity may not do something; what is the
// resource that it may not do it with.
func Denied(err error) (d Denial, what string, ok bool) {
	e, is := errors.AsType[*StatusError](err)
	if !is || e.Code != http.StatusForbidden {
		return d, "", false
	}
	m := denials().FindStringSubmatch(e.Message)
	if m == nil {
		return d, "", false
	}
	d = Denial{User: m[1], Verb: m[2], Namespace: m[4], Why: m[5], Decision: m[3] == "approvals/decision", server: e.server}
	if r := role().FindStringSubmatch(d.Why); r != nil {
		d.Role, d.Why = r[1], ""
	}
	return d, m[3], true
}

// Text describes who may not do what with which resources.
func (d Denial) Text(resources []string) string {
	who := fmt.Sprintf("user %q", d.User)
	if d.Role != "" {
		who += " (role " + d.Role + ")"
	}
	text := who + " may not " + d.Verb + " " + strings.Join(resources, ", ")
	if d.Namespace != "" {
		text += fmt.Sprintf(" in namespace %q", d.Namespace)
	}
	if d.Why != "" {
		text += ": " + d.Why
	}
	return text
}

// Hint names whom to ask for which permission.
func (d Denial) Hint() string {
	if d.Role == "" {
		return "ask an admin of " + d.server + " for it; what is granted: kubectl auth can-i --list"
	}
	want := "ROLE"
	switch {
	case d.Decision:
		want = "approver"
	case d.Role == "viewer":
		want = "user"
	}
	return "ask an admin of " + d.server + " for another role: agentd token rotate --role " + want + " " + d.User
}

// forbidden is the text of a refusal, in short.
func (e *StatusError) forbidden() string {
	if d, what, ok := Denied(e); ok {
		return d.Text([]string{what})
	}
	if _, why, ok := strings.Cut(e.words(), refusal); ok {
		return "the server refuses it: " + why
	}
	return "this identity may not do that: " + e.words()
}
