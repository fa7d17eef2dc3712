// Package modeltest holds what every provider must do, as tests to run against it, and a local server that speaks every wire format with all its faults.
//
// Four things differ between the formats, and the suite with them:
//
//	chat       signs no reasoning: what goes back is what was shown
//	gemini     sends arguments as one object: they are never split, broken or cut, and
//	           come back in another spelling
//	gemini     counts nothing written to a cache
//	gemini     may ask to wait in the body of a refusal; the others do in headers only
package modeltest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model"
)

// Setup is what a provider is opened with.
type Setup struct {
	BaseURL, APIKey string
	Prompt          message.Prompt
	Retry           model.Retry
	FirstByte, Idle time.Duration
	// Transport instead of the network; nil is the provider's own.
	Transport http.RoundTripper
}

// Open opens a conversation of the provider under test.
type Open func(t testing.TB, s Setup) model.Conversation

// patience ends a case that hangs.
const patience = time.Minute

// Key is the key the suite gives to the provider.
const Key = "sk-test-0123456789abcdef"

// Run holds a provider that speaks a wire format against the contract of
// model.Conversation.
func Run(t *testing.T, wire Wire, open Open) {
	t.Helper()
	Talks(t, wire, open)
	Bytes(t, wire, open)
	s := suite{wire, open}
	t.Run("EnvironmentOfTheSDKIsIgnored", s.environment)
	t.Run("SlashBehindTheAddressIsNone", s.slash)
	t.Run("RedirectIsNotFollowed", s.redirect)
}

// Talks is the part of Run that also applies to the layers around a provider.
func Talks(t *testing.T, wire Wire, open Open) {
	t.Helper()
	s := suite{wire, open}
	Basics(t, s.answering)
	t.Run("Answer", s.answer)
	t.Run("FinishWordsAreMapped", s.finishes)
	t.Run("UsageIsCounted", s.usage)
	t.Run("ReasoningGoesBackToTheSameModelOnly", s.reasoning)
	t.Run("UnknownEventsAreIgnored", s.unknown)
	t.Run("ServersThatDiffer", s.quirks)
	t.Run("MediaAreShown", s.media)
	t.Run("SchemaOfTheAnswerIsKept", s.contract)
	t.Run("OneConnectionForAllTurns", s.connection)
	t.Run("HistoryOnlyGrows", s.history)
	t.Run("ClosingRequestHasNoTools", s.closing)
	t.Run("AsideLeavesTheConversationAsItIs", s.aside)
	t.Run("ResetReplacesTheHistory", s.reset)
	t.Run("FaultsEndInTheirReason", s.faults)
	t.Run("StallIsRetried", s.stall)
	t.Run("KeepAlivesAreNoProgress", s.keepAlives)
	t.Run("RetryAfterIsWaited", s.retryAfter)
	t.Run("WaitInTheBodyIsWaited", s.asksInTheBody)
	t.Run("CancelEndsTheStream", s.cancel)
	t.Run("EmitErrorEndsTheStream", s.emitError)
}

// Bytes is the part of Run about the wire, split and cut at every byte.
func Bytes(t *testing.T, wire Wire, open Open) {
	t.Helper()
	s := suite{wire, open}
	t.Run("ArgumentsSplitAtEveryByte", s.everySplit)
	t.Run("CutAtEveryByte", s.everyCut)
	t.Run("WhateverIsSaidComesAsItIs", s.random)
	t.Run("EventsOutOfOrderAreNoMistakeOfOurs", s.disorder)
}

// Serve starts a server of a wire format that gives the steps in order, until the
// test ends.
func Serve(t testing.TB, w Wire, steps ...Step) *Server {
	t.Helper()
	server, err := Options{Wire: w}.Serve(steps...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}

type suite struct {
	wire Wire
	open Open
}

func (s suite) answer(t *testing.T) {
	k := s.talk(t, full.Step())
	k.wants(t, wantFull())
	r := k.Requests()[0]
	if got := s.wire.Key(r.Header); got != Key {
		t.Errorf("the request carries the key %q", got)
	}
	holds := 0
	for _, values := range r.Header {
		holds += strings.Count(strings.Join(values, " "), Key)
	}
	var plain bytes.Buffer
	if err := json.Compact(&plain, r.Body); err != nil || plain.Len() != len(r.Body) {
		t.Errorf("the request is not JSON, or has white space that every one would carry: %v: %s", err, r.Body)
	}
	if holds != 1 || strings.Contains(r.Path+"?"+r.Query+string(r.Body), Key) {
		t.Errorf("the key stands in %d headers, in the address %s?%s or in the body, where logs keep it", holds, r.Path, r.Query)
	}
}

// answering begins a conversation with a server that gives the answers.
func (s suite) answering(t testing.TB, answers ...Answer) model.Conversation {
	t.Helper()
	steps := make([]Step, len(answers))
	for i, a := range answers {
		steps[i] = a.Step()
	}
	return s.open(t, Setup{BaseURL: Serve(t, s.wire, steps...).URL, APIKey: Key})
}
