package host

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"agentctl.dev/agentctl/plugins/sdk/toolpb"
)

// Question is what a call asks a person. All of it is a program's text, cleaned
// of what could move a terminal.
type Question struct {
	Text string
	// Options are the answers that are possible; none is any text.
	Options []string
}

// Message is something that was said in a run.
type Message struct {
	// Role is user, assistant or tool.
	Role string `json:"role"`
	Text string `json:"text"`
}

// Bounds of what a call may ask for. A program is not trusted: it must be able
// neither to wear a person out nor to fill the host's memory.
const (
	maxWishes     = 16
	maxQuestion   = 4 << 10
	maxOptions    = 16
	maxOption     = 200
	maxAnswer     = 4 << 10
	maxHistory    = 1 << 20
	maxSaid       = 32 << 10
	answerTimeout = 5 * time.Second
)

// wisher grants the wishes of one call.
type wisher struct {
	plugin *Plugin
	req    *CallRequest
	ticket uint64
	made   atomic.Int32
}

// grant answers a wish in the background; ctx ends with the call.
func (w *wisher) grant(ctx context.Context, ask *toolpb.Ask) {
	n := w.made.Add(1)
	if n > 2*maxWishes { // it does not read the refusals either
		return
	}
	w.plugin.calls.attend(func() {
		answer := &toolpb.AnswerRequest{Refusal: fmt.Sprintf("a call may ask %d times", maxWishes)}
		if n <= maxWishes {
			answer = w.answer(ctx, ask)
		}
		answer.Ticket, answer.Id = w.ticket, ask.GetId()
		if ctx.Err() != nil {
			return // the caller has left
		}
		rpc, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		// A program that cannot take the answer waits until its call's time is up.
		_, _ = w.plugin.client.Answer(rpc, answer)
	})
}

func (w *wisher) answer(ctx context.Context, ask *toolpb.Ask) *toolpb.AnswerRequest {
	var a toolpb.AnswerRequest
	var err error
	switch wish := ask.GetWish().(type) {
	case *toolpb.Ask_Question:
		a.Text, err = w.question(ctx, wish.Question)
	case *toolpb.Ask_History:
		a.HistoryJson, err = w.history(ctx, int(wish.History.GetMost()))
	default:
		err = fmt.Errorf("this agentctl does not know the wish")
	}
	if err != nil {
		a.Refusal = head(err.Error(), maxAnswer)
	}
	return &a
}

// question shows a person what the program wants to know.
func (w *wisher) question(ctx context.Context, asked *toolpb.Question) (string, error) {
	raw := asked.GetOptions()
	if w.req.Ask == nil {
		return "", fmt.Errorf("no person is there to be asked")
	}
	if len(asked.GetText()) > maxQuestion || len(raw) > maxOptions {
		return "", fmt.Errorf("a question has at most %d bytes and %d options", maxQuestion, maxOptions)
	}
	q := Question{Text: cleanLines(asked.GetText())}
	if strings.TrimSpace(q.Text) == "" {
		return "", fmt.Errorf("the question is empty")
	}
	for _, o := range raw {
		shown := strings.TrimSpace(clean(o))
		if shown == "" || len(o) > maxOption || slices.Contains(q.Options, shown) {
			return "", fmt.Errorf("an option is empty, longer than %d bytes or there twice", maxOption)
		}
		q.Options = append(q.Options, shown)
	}
	said, err := w.req.Ask(ctx, q)
	if err != nil {
		return "", err
	}
	if len(raw) == 0 {
		return head(said, maxAnswer), nil
	}
	if i := slices.Index(q.Options, said); i >= 0 {
		return raw[i], nil
	}
	return "", fmt.Errorf("the answer is none of the options")
}

// history is the newest that fits.
func (w *wisher) history(ctx context.Context, most int) ([]byte, error) {
	if w.req.History == nil {
		return nil, fmt.Errorf("the run gives no history")
	}
	said, err := w.req.History(ctx, max(most, 0))
	if err != nil {
		return nil, err
	}
	if most > 0 && len(said) > most {
		said = said[len(said)-most:]
	}
	from, size := len(said), 0
	for from > 0 && size+min(len(said[from-1].Text), maxSaid) <= maxHistory {
		from--
		size += min(len(said[from].Text), maxSaid)
	}
	kept := make([]Message, 0, len(said)-from)
	for _, m := range said[from:] {
		kept = append(kept, Message{Role: m.Role, Text: head(m.Text, maxSaid)})
	}
	return json.Marshal(kept)
}

// cleanLines cleans a text that may have several lines.
func cleanLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = clean(lines[i])
	}
	return strings.Join(lines, "\n")
}
