package message

// Inquiry is a question that a running call asks a person. The text comes from a
// program.
type Inquiry struct {
	// ID of the question within its call.
	ID string `json:"id"`
	// Text of the question.
	Text string `json:"text"`
	// Options are the possible answers; without options any text is an answer.
	Options []string `json:"options,omitempty"`
	// Multiple allows several options; the answer then has one of them on each line.
	Multiple bool `json:"multiple,omitempty"`
	// ExpiresAt ends the wait for an answer, in milliseconds since 1970; 0: the run
	// does not wait, because no person can be asked.
	ExpiresAt int64 `json:"expiresAt,omitempty"`
}

// ReplyState is how an Inquiry ended.
type ReplyState string

// The ends of an Inquiry.
const (
	// ReplyAnswered: the tool has the answer.
	ReplyAnswered ReplyState = "answered"
	// ReplyRefused: a person refused to answer.
	ReplyRefused ReplyState = "refused"
	// ReplyExpired: no answer came in time.
	ReplyExpired ReplyState = "expired"
	// ReplyUnanswered: no person could be asked.
	ReplyUnanswered ReplyState = "unanswered"
)

// Reply is the end of an Inquiry.
type Reply struct {
	// ID of the question.
	ID string `json:"id"`
	// State is answered, refused, expired or unanswered.
	State ReplyState `json:"state"`
	// Answer that the tool was given: a text, or one of the options, or several of
	// them, one on each line.
	Answer string `json:"answer,omitempty"`
	// By is who answered or refused, or why no person could be asked.
	By string `json:"by"`
	// Via is where a person answered: terminal, or inbox for another process or a
	// control plane; "" when no person did.
	Via string `json:"via,omitempty"`
	// Reason of a refusal, or why there is no answer, for the tool.
	Reason string `json:"reason,omitempty"`
	// Request is the id of the request that brought the answer from outside the
	// run's process; each counts once.
	Request string `json:"request,omitempty"`
}
