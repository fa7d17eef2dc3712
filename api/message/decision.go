package message

import "encoding/json"

// Action is what the policy says about a call.
type Action string

// The actions. The zero value is none of them and counts as deny.
const (
	Allow  Action = "allow"
	Ask    Action = "ask"
	Deny   Action = "deny"
	Redact Action = "redact"
)

// Decision is the policy's answer to one call. It is a pure function of the
// policies, the call and the recorded context, so it can be repeated.
type Decision struct {
	Action Action `json:"action"`
	// Rule that decided, as policy/rule; "default/byRisk" when none did.
	Rule string `json:"rule"`
	// Source of the rule of a refusal or a question, as file:line; "" where it is
	// not known: a default, or a policy of a control plane.
	Source string `json:"source,omitempty"`
	// Message for the model and for people, in one or two sentences.
	Message string `json:"message,omitempty"`
	// Risk of the tool: R0 to R3.
	Risk string `json:"risk,omitempty"`
	// Args replace the call's arguments after a redaction; nil leaves them.
	Args json.RawMessage `json:"args,omitempty"`
	// Warnings of policies that do not enforce.
	Warnings []string `json:"warnings,omitempty"`
	// Facts about the call that a person who is asked should see.
	Facts json.RawMessage `json:"facts,omitempty"`
	// Hash binds an approval to exactly this call: sha256 over the tool's digest
	// and the canonical arguments.
	Hash string `json:"hash,omitempty"`
	// Always is what an approval for always would allow from now on; empty when
	// the call can only be approved once, and Once says why.
	Always []Grant `json:"always,omitempty"`
	Once   string  `json:"once,omitempty"`
	// Outside are the paths outside the workspace that the call may use when it
	// runs: those that a policy allows by name and, when a person is asked, all
	// that the call names.
	Outside []OutsidePath `json:"outside,omitempty"`
	// Alters is set when the call may change where a path leads or which files there are,
	// Depends when that could change what the policy decides about the call. Neither is
	// recorded: a call that may still run is judged again.
	Alters  bool `json:"-"`
	Depends bool `json:"-"`
	// Binding bounds the call when it runs; nil leaves it to its isolation alone.
	Binding *Binding `json:"binding,omitempty"`
}

// Essence is what an approval of the call relies on, as one text: the call, the
// rule that asks and what the call was found to do. Two decisions that differ in
// it are two questions.
func (d *Decision) Essence() string {
	var facts map[string]json.RawMessage
	if json.Unmarshal(d.Facts, &facts) != nil {
		facts = map[string]json.RawMessage{"unread": nil}
	}
	delete(facts, "audit") // said of the call, not what it does
	b, err := json.Marshal(struct {
		Hash, Rule, Risk string
		Facts            map[string]json.RawMessage
		Outside          []OutsidePath `json:",omitempty"`
	}{d.Hash, d.Rule, d.Risk, facts, d.Outside})
	if err != nil {
		return ""
	}
	return string(b)
}

// Grant is one entry of a remembered approval, over what a call was found to do:
// either an entry of a permission list, or a rule about one tool.
type Grant struct {
	// Permission and Pattern as a policy's permissions list has them.
	Permission string `json:"permission,omitempty"`
	Pattern    string `json:"pattern,omitempty"`
	// Dir is the folder in which a command runs, relative to the workspace; "" is
	// the workspace itself.
	Dir string `json:"dir,omitempty"`
	// Within is what a command may change, as a pattern of paths such as src/*; ""
	// is nothing.
	Within string `json:"within,omitempty"`
	// Tool and When as a policy's rules have them.
	Tool string `json:"tool,omitempty"`
	When string `json:"when,omitempty"`
}

// Scope is how far an approval reaches.
type Scope string

// The scopes of an approval. "" is Once.
const (
	Once   Scope = "Once"
	Always Scope = "Always"
)

// ApprovalState is how a question to a person ended.
type ApprovalState string

// The ends of a question. "" means that there was no question.
const (
	Approved   ApprovalState = "approved"
	Rejected   ApprovalState = "rejected"
	Expired    ApprovalState = "expired"
	Unanswered ApprovalState = "unanswered"
)

// Question is a call that a person is asked about.
type Question struct {
	Call     ToolCall `json:"call"`
	Decision Decision `json:"decision"`
	// Unknown says that the call was interrupted and may have happened already;
	// the question is whether to run it again.
	Unknown bool `json:"unknown,omitempty"`
	// ExpiresAt ends the wait for an answer, in milliseconds since 1970; 0 is
	// never.
	ExpiresAt int64 `json:"expiresAt,omitempty"`
}

// Answer is a person's, or a declaration's, answer to a question.
type Answer struct {
	State ApprovalState `json:"state"`
	// By says who answered, for example "terminal", "--approve all", "onAsk: Deny".
	By string `json:"by"`
	// Reason for the model; may be empty.
	Reason string `json:"reason,omitempty"`
	// Scope of an approval: Once, or Always for what Remember lists as well.
	Scope    Scope   `json:"scope,omitempty"`
	Remember []Grant `json:"remember,omitempty"`
	// Request is the id of the request that brought the answer from outside the
	// run's process; each counts once.
	Request string `json:"request,omitempty"`
	// ExpiresAt is the time, in milliseconds since 1970, until which an approval
	// may be used; 0 is any.
	ExpiresAt int64 `json:"expiresAt,omitempty"`
	// EndRun says that the person who rejected the call chose to end the run with it.
	EndRun bool `json:"endRun,omitempty"`
	// Suspend asks the run to stop here and wait to be resumed.
	Suspend bool `json:"suspend,omitempty"`
}
