// Package model is the contract of a conversation with a model, and what every provider shares: error classes, the one retry layer, the price of an answer.
package model

import (
	"context"
	"strings"

	"agentctl.dev/agentctl/api/message"
)

// Conversation is a conversation with a model, as the loop uses it. It is used by one run
// and one goroutine.
//
//	Next returns                        the loop then
//	output, nil                         has a complete answer, which may be empty
//	nil, reason CredentialRejected      ends the run: the provider refused the key
//	nil, reason ProviderUnavailable     ends the run, or turns to a fallback: the attempts are spent
//	nil, reason ContextExhausted        compacts once and asks again, or ends the run
//	nil, reason ContentFiltered         ends the run: the provider refused the request itself
//	nil, reason ModelError              ends the run: the endpoint gave no usable answer
//	nil, Cancelled or DeadlineExceeded  ends the run: ctx ended
//	nil, what emit returned             ends the run: the watcher stopped the stream
//
// Output and error are never both set and never both nil. Emit is called from the calling
// goroutine only. What was emitted before a DeltaRetry is void.
type Conversation interface {
	// Append adds a complete message: the user's, or the model's own with a
	// result in every tool part. It encodes that message and nothing else.
	Append(m *message.Message) error
	// Reset makes history the whole conversation: after pruning or a compaction.
	// What was asked before counts as asked.
	Reset(history []*message.Message) error
	// Next asks for the answer to everything appended so far, or to req.Aside
	// instead, which changes nothing of the conversation.
	Next(ctx context.Context, req message.Request, emit func(message.Delta) error) (*message.Output, error)
}

// Silence removes the calls from the answer to a request without tools: a server may call
// a tool that it was not offered.
func Silence(req message.Request, out *message.Output) {
	if !req.NoTools && req.Aside == nil {
		return
	}
	out.Calls = nil
	if out.Finish == message.FinishToolCalls {
		out.Finish = message.FinishStop
	}
}

// Problem is a mistake in the part of a Model manifest that only its provider
// understands.
type Problem struct {
	// Path of the field, for example spec.parameters.temperature.
	Path string
	// Message is the mistake and, after a semicolon or as Advice, what would be right.
	Message, Advice string
}

func (p Problem) String() string { return p.Path + ": " + p.Message }

// Split returns what is wrong and the advice.
func (p Problem) Split() (text, advice string) {
	if p.Advice != "" {
		return p.Message, p.Advice
	}
	text, advice, _ = strings.Cut(p.Message, "; ")
	return text, advice
}
