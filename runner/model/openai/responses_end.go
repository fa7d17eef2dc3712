package openai

import (
	"cmp"
	"errors"
	"slices"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/httpapi"
)

// response is what a stream ends with.
type response struct {
	status, cause string
	// fault is the error, nil if there is none.
	fault  []byte
	output [][]byte
}

// response reads a response and its usage.
func (a *replyAnswer) response(raw []byte) (*response, error) {
	c, r := &a.cur, &response{}
	c.Reset(raw)
	c.Object(func(key []byte) {
		switch string(key) {
		case "status":
			r.status = string(c.Text())
		case "error":
			if v := c.Raw(); string(v) != "null" {
				r.fault = v
			}
		case "incomplete_details":
			c.Object(func(key []byte) {
				if string(key) == "reason" {
					r.cause = string(c.Text())
					return
				}
				c.Skip()
			})
		case "output":
			c.Array(func() { r.output = append(r.output, c.Raw()) })
		case "usage":
			readUsage(c, &a.tally)
		default:
			c.Skip()
		}
	})
	return r, c.Err()
}

// end reads the response that the stream ends with.
func (a *replyAnswer) end(event string, raw []byte) error {
	r, err := a.response(raw)
	if err != nil {
		return err
	}
	switch {
	case r.status == "failed" || r.fault != nil:
		f := model.Fault{Message: "the response has failed, and the server does not say why"}
		if r.fault != nil {
			f = model.ParseFault(append(append([]byte(`{"error":`), r.fault...), '}'))
		}
		return httpapi.Refused(f)
	case r.status == "cancelled":
		return &model.Error{Kind: model.Retryable, Class: "stream", Err: errors.New("the response was cancelled on the server")}
	}
	for i, raw := range r.output {
		if err := a.late(int64(i), raw); err != nil {
			return err
		}
	}
	a.ended = cmp.Or(r.cause, r.status, event)
	if a.halfCall && replyEndings.Finish(a.ended).Whole() {
		a.ended = "a call that is incomplete"
	}
	return a.Err()
}

// late adds an item of the whole response that the stream has left out.
func (a *replyAnswer) late(index int64, raw []byte) error {
	if slices.Contains(a.done, index) {
		return nil
	}
	i, err := readItem(raw)
	if err != nil {
		return err
	}
	known := i.kind == "message" && a.TextSize() > 0 ||
		i.kind == "function_call" && slices.ContainsFunc(a.Calls, func(c *httpapi.Call) bool { return c.ID == i.call && len(c.Args) > 0 })
	if known {
		return nil
	}
	return a.itemEnds(index, raw)
}

// replyEndings are the ends of a response: why it is incomplete if the response
// has that, else its status. A failed or cancelled response is an error before
// this.
var replyEndings = httpapi.Endings{
	"completed":         {Finish: message.FinishStop},
	"max_output_tokens": {Finish: message.FinishLength},
	"max_tokens":        {Finish: message.FinishLength},
	"content_filter":    {Finish: message.FinishContentFilter},
}
