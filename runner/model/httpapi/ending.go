package httpapi

import (
	"fmt"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model"
)

// Endings are the words with which the servers of one wire format end an answer.
// Only what is listed with FinishStop or FinishToolCalls is a whole answer; a word
// that is not listed is FinishUnknown, which never is one. So a new word of a
// server ends a run with an error instead of passing half an answer off as one.
type Endings map[string]Ending

// Ending is what one word means: how the model ended, or how the attempt failed.
type Ending struct {
	Finish message.Finish
	// Failed: the server broke off. The attempt failed, and what was streamed is void:
	// Retryable for a fault of the server, Malformed for an answer of the model that the
	// server could not read. The zero value is not a failure.
	Failed model.Kind
}

// Finish returns how the model ended.
func (e Endings) Finish(word string) message.Finish {
	if ending, ok := e[word]; ok && ending.Finish != "" {
		return ending.Finish
	}
	return message.FinishUnknown
}

// Failure returns the error of an attempt that a word ends, nil where the word
// ends an answer. Why is what the server adds to the word, or "".
func (e Endings) Failure(word, why string) error {
	kind := e[word].Failed
	if kind == model.Never {
		return nil
	}
	return &model.Error{Kind: kind, Class: "stream", Err: fmt.Errorf("the server broke off the answer with %s", quoted(word, why))}
}

// Output returns what was gathered of an answer that ended with a word, and warns
// of a word that is not known.
func (e Endings) Output(g *Gather, word, why string) *message.Output {
	out := g.Output(e.Finish(word))
	if _, known := e[word]; !known {
		out.Warnings = append(out.Warnings, "the model ended its answer with "+quoted(word, why)+", which is not known to end a whole answer")
	}
	return out
}

func quoted(word, why string) string {
	if word == "" {
		word = "no finish reason"
	}
	if why != "" {
		word += ": " + why
	}
	return model.Quote([]byte(word))
}

// Unfinished is the error for a server that ended its answer without a word for
// how the model ended. A gateway that lost its server does so, in the middle of
// the answer.
func Unfinished(what string) error {
	return cut(fmt.Errorf("the server sent %s without a finish reason before it: the answer may be half of one", what))
}
