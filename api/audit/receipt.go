package audit

import (
	"encoding/json"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// The types of a receipt: an in-toto Statement v1 in a DSSE envelope.
const (
	PayloadType   = "application/vnd.in-toto+json"
	StatementType = "https://in-toto.io/Statement/v1"
	// PredicateType names what a Receipt says.
	PredicateType = "https://agentctl.dev/attestation/run/v1"
)

// Envelope is a signed receipt, as DSSE v1 has it.
type Envelope struct {
	// PayloadType is application/vnd.in-toto+json, Payload the Statement, in base64.
	PayloadType string      `json:"payloadType"`
	Payload     []byte      `json:"payload"`
	Signatures  []Signature `json:"signatures"`
}

// Signature is one of an envelope.
type Signature struct {
	// KeyID is the fingerprint of the public key, as ssh-keygen prints it; a hint only.
	KeyID string `json:"keyid,omitempty"`
	// Sig is the Ed25519 signature of the pre-authentication encoding, in base64.
	Sig []byte `json:"sig"`
}

// Statement is what is signed.
type Statement struct {
	Type string `json:"_type"`
	// Subject are the files that the run has added or modified; the head of its journal,
	// where there are none.
	Subject       []Subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     Receipt   `json:"predicate"`
}

// Subject is a file, relative to the source folder of the run.
type Subject struct {
	Name   string `json:"name"`
	Digest Digest `json:"digest"`
	// Annotations are change, added or modified, and, of a symbolic link, type: the digest is
	// then that of the path it leads to.
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Digest by the name of its algorithm.
type Digest struct {
	SHA256 string `json:"sha256"`
}

// Receipt is the predicate: what a run was, what was decided in it, and what it came to.
type Receipt struct {
	Run       ReceiptRun       `json:"run"`
	Manifests []ManifestDigest `json:"manifests"`
	PolicySet PolicySet        `json:"policySet"`
	Decisions ReceiptDecisions `json:"decisions"`
	// Approvals are the ends of all questions whether a call may run.
	Approvals []ReceiptApproval `json:"approvals"`
	// Models are those that have answered.
	Models []ReceiptModel `json:"models"`
	Tokens ReceiptTokens  `json:"tokens"`
	// Cost in US dollars as a decimal; null where it is not known.
	Cost *message.Cost `json:"cost"`
	// PriceBasis are the prices by which it was counted; those of a resume follow where they
	// differ.
	PriceBasis []event.ModelPrice `json:"priceBasis"`
	Changes    ReceiptChanges     `json:"changes"`
	Journal    JournalDigest      `json:"journal"`
	// AuditLog is what the log was at the end of the run; null for a run without one.
	AuditLog *LogDigest `json:"auditLog"`
	Exit     Exit       `json:"exit"`
	// Evidence is that of the agent's declaration, as run.finished has it; absent without one.
	Evidence json.RawMessage `json:"evidence,omitempty"`
}

// ReceiptRun names a run.
type ReceiptRun struct {
	ID     string  `json:"id"`
	Agent  string  `json:"agent"`
	Parent *Parent `json:"parent,omitempty"`
	// User is who began the run.
	User string `json:"user"`
	// Version of agentctl that began it, and Attempts the number of processes that have
	// executed it.
	Version  string `json:"version"`
	Attempts int    `json:"attempts"`
	// StartedAt and FinishedAt are UTC with milliseconds.
	StartedAt  string `json:"startedAt"`
	FinishedAt string `json:"finishedAt"`
	DurationMs int64  `json:"durationMs"`
	Steps      int    `json:"steps"`
	// Isolation is None, Sandbox or Container.
	Isolation string `json:"isolation"`
	// Strategy of the workspace, and the repository and commit where it was cloned.
	Strategy  string `json:"strategy"`
	GitURL    string `json:"gitURL,omitempty"`
	GitCommit string `json:"gitCommit,omitempty"`
}

// ManifestDigest is an object of the run as it was resolved: with its defaults, and absolute
// paths.
type ManifestDigest struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Digest Digest `json:"digest"`
}

// PolicySet is the digest over the policies that judged the calls: the SHA-256 of one line
// "sha256:<digest>  <name>" for each policy, in the order of their names, and then of one
// line "sha256:<digest>  ceiling" for each ceiling of the runs above.
type PolicySet struct {
	Digest   Digest   `json:"digest"`
	Policies []string `json:"policies"`
}

// ReceiptDecisions counts the calls that were judged, by the decision of the policy.
type ReceiptDecisions struct {
	Allow  int `json:"allow"`
	Ask    int `json:"ask"`
	Deny   int `json:"deny"`
	Redact int `json:"redact"`
	// Refused are the calls that did not run because of that; Omitted is how many more.
	Refused []RefusedCall `json:"refused"`
	Omitted int           `json:"omitted,omitempty"`
}

// RefusedCall is a call that a rule or a person refused, or that got no answer.
type RefusedCall struct {
	Call     string `json:"call"`
	Tool     string `json:"tool"`
	Decision string `json:"decision"`
	Rule     string `json:"rule"`
	// Source is the file and line of the rule.
	Source string `json:"source,omitempty"`
	Risk   string `json:"risk"`
}

// ReceiptApproval is the end of a question.
type ReceiptApproval struct {
	ID        string `json:"id"`
	Call      string `json:"call"`
	Tool      string `json:"tool"`
	State     string `json:"state"`
	By        string `json:"by"`
	Scope     string `json:"scope,omitempty"`
	Rule      string `json:"rule"`
	Risk      string `json:"risk"`
	DecidedAt string `json:"decidedAt"`
}

// ReceiptModel is a model that has answered.
type ReceiptModel struct {
	message.ModelRef
	Answers int           `json:"answers"`
	Tokens  ReceiptTokens `json:"tokens"`
}

// ReceiptTokens counts tokens by kind.
type ReceiptTokens struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	Reasoning  int64 `json:"reasoning"`
	CacheRead  int64 `json:"cacheRead"`
	CacheWrite int64 `json:"cacheWrite"`
}

// ReceiptChanges are the changed files that have no digest, and counts of all.
type ReceiptChanges struct {
	Added    int `json:"added"`
	Modified int `json:"modified"`
	Deleted  int `json:"deleted"`
	// DeletedFiles by name.
	DeletedFiles []string `json:"deletedFiles,omitempty"`
	// Omitted are files that are too many to be named.
	Omitted int `json:"omitted,omitempty"`
	// Error says why what the run changed is not completely known.
	Error string `json:"error,omitempty"`
	// Applied says that the run has applied them to the source folder itself.
	Applied bool `json:"applied"`
}

// JournalDigest identifies the journal up to the end of the run.
type JournalDigest struct {
	// Events is the number of the last event, Head the SHA-256 of its line.
	Events int64  `json:"events"`
	Head   Digest `json:"head"`
	// Damaged says that the end of the journal was damaged once, and events were lost, before
	// a resume continued it.
	Damaged bool `json:"damaged,omitempty"`
}

// LogDigest identifies the audit log up to the end of the run.
type LogDigest struct {
	Records int64  `json:"records"`
	Bytes   int64  `json:"bytes"`
	Digest  Digest `json:"digest"`
}

// Exit is how the run ended.
type Exit struct {
	Phase    string `json:"phase"`
	Reason   string `json:"reason"`
	ExitCode int    `json:"exitCode"`
}
