package mcpserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// newVersion is the first version of the protocol in which a server asks in its results,
// and a client calls again with the answers.
const newVersion = "2026-07-28"

// asked reports whether the client shows questions to a person.
func asked(req *mcp.CallToolRequest) bool {
	can := req.ClientCapabilities()
	return can != nil && can.Elicitation != nil && (can.Elicitation.Form != nil || can.Elicitation.URL == nil)
}

// mostQuestion bounds a question. A longer one is not asked: a person must see all of it.
const mostQuestion = 32 << 10

var errLongQuestion = errors.New("the question is too long to be asked by the client")

// question is a question of yes or no. The person chooses by accepting or declining;
// the reason is optional.
func question(text string) *mcp.ElicitParams {
	return &mcp.ElicitParams{
		Mode: "form", Message: text,
		RequestedSchema: json.RawMessage(`{"type":"object","properties":{"reason":{"type":"string","title":"Reason","description":"Optional: why it is allowed or refused. The agent reads it."}}}`),
	}
}

// reply reads what the person chose. Whatever is not a choice is an error.
func reply(r *mcp.ElicitResult) (Reply, error) {
	why, _ := r.Content["reason"].(string)
	switch r.Action {
	case "accept":
		return Reply{Approved: true, Reason: cut(why, mostDescription)}, nil
	case "decline":
		return Reply{Reason: cut(why, mostDescription)}, nil
	}
	return Reply{}, fmt.Errorf("the client answered %q", r.Action)
}

// confirmer asks a client of an earlier version by a request of its own.
func confirmer(req *mcp.CallToolRequest) func(context.Context, string) (Reply, error) {
	return func(ctx context.Context, text string) (Reply, error) {
		if len(text) > mostQuestion {
			return Reply{}, errLongQuestion
		}
		r, err := req.Session.Elicit(ctx, question(text))
		if err != nil {
			return Reply{}, fmt.Errorf("ask the client: %w", err)
		}
		return reply(r)
	}
}

// roundTime is how long a call waits for its client to call again.
const roundTime = 15 * time.Minute

// rounds are the calls that continue when their clients call again with an answer.
type rounds struct {
	mu     sync.Mutex
	open   map[string]*round
	closed bool
}

// round is a call that runs over several requests of its client. It has a context of its
// own, which outlives each of them.
type round struct {
	tool   string
	asks   chan ask
	result chan *mcp.CallToolResult
	answer chan<- *mcp.ElicitResult // of the open question
	cancel context.CancelCauseFunc
}

type ask struct {
	text   string
	answer chan<- *mcp.ElicitResult
}

// confirmation is the id of our question in a result.
const confirmation = "approval"

var errNoRound = errors.New("no call waits for this answer: it was answered already, or took too long")

func newRounds() *rounds { return &rounds{open: map[string]*round{}} }

// call begins a call, or continues it with the answer that the request brings. It returns
// the result, or a question.
func (rs *rounds) call(ctx context.Context, t *Tool, c Call, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var r *round
	if state := req.Params.RequestState; state == "" {
		r = begin(ctx, t, c)
	} else if r = rs.again(state, t, req); r == nil {
		return failed(errNoRound), nil
	}
	select {
	case out := <-r.result:
		return out, nil
	case q := <-r.asks:
		r.answer = q.answer
		state, err := rs.keep(r)
		if err != nil {
			r.cancel(err)
			return failed(err), nil
		}
		return &mcp.CallToolResult{RequestState: state, InputRequests: mcp.InputRequestMap{confirmation: question(q.text)}}, nil
	case <-ctx.Done():
		r.cancel(context.Cause(ctx))
		return failed(context.Cause(ctx)), nil
	}
}

func begin(ctx context.Context, t *Tool, c Call) *round {
	r := &round{tool: t.Name, asks: make(chan ask), result: make(chan *mcp.CallToolResult, 1)}
	ctx, r.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	c.Confirm = r.confirm
	go func() { // ends with the call, which ends with its context
		defer r.cancel(nil)
		r.result <- result(t.Call(ctx, c))
	}()
	return r
}

// again finds the call that waits for the answer of a request; nil if there is none.
func (rs *rounds) again(state string, t *Tool, req *mcp.CallToolRequest) *round {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r := rs.open[state]
	if r == nil || r.tool != t.Name {
		return nil
	}
	delete(rs.open, state) // each question is answered once
	got, ok := req.Params.InputResponses[confirmation].(*mcp.ElicitResult)
	if !ok {
		got = &mcp.ElicitResult{Action: "cancel"}
	}
	r.answer <- got // has room
	return r
}

// keep waits for the client to call again. Until then the question may be answered
// elsewhere, and the call go on.
func (rs *rounds) keep(r *round) (state string, err error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	switch {
	case rs.closed:
		return "", errClosed
	case len(rs.open) >= mostCalls:
		return "", errMany
	}
	state = rand.Text()
	rs.open[state] = r
	time.AfterFunc(roundTime, func() { rs.forget(state) })
	return state, nil
}

func (rs *rounds) forget(state string) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r := rs.open[state]; r != nil {
		delete(rs.open, state)
		r.cancel(errNoRound)
	}
}

// end ends the calls whose clients have not called again.
func (rs *rounds) end() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.closed = true
	for state, r := range rs.open {
		delete(rs.open, state)
		r.cancel(errClosed)
	}
}

// confirm asks in the result of the current request.
func (r *round) confirm(ctx context.Context, text string) (Reply, error) {
	if len(text) > mostQuestion {
		return Reply{}, errLongQuestion
	}
	answer := make(chan *mcp.ElicitResult, 1)
	select {
	case r.asks <- ask{text, answer}:
	case <-ctx.Done():
		return Reply{}, context.Cause(ctx)
	}
	select {
	case got := <-answer:
		return reply(got)
	case <-ctx.Done():
		return Reply{}, context.Cause(ctx)
	}
}
