package view

import (
	"fmt"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// Publication is an item that a call of the run has prepared, and what became of it.
type Publication struct {
	// Call is the id of the call.
	Call string
	message.Publication
	// Last is the newest event about it; nil: nobody has published it.
	Last *event.PublishItem
	// Attempts counts how often it was begun.
	Attempts int
}

// Published reports whether the target has the item.
func (p *Publication) Published() bool {
	return p.Last != nil && (p.Last.State == event.PublishSent || p.Last.State == event.PublishFound)
}

// publish notes what a person has done with an item.
func (r *Run) publish(e event.Event, d event.PublishItem) error {
	for i := range r.Publications {
		p := &r.Publications[i]
		if p.Call != e.Call {
			continue
		}
		if p.Last = &d; d.State == event.PublishBegun {
			p.Attempts++
		}
		return nil
	}
	return fmt.Errorf("call %s has prepared nothing", e.Call)
}

// PublishResult is an item in a Result.
type PublishResult struct {
	// Call is the id of the call that has prepared it.
	Call string `json:"call"`
	Name string `json:"name"`
	// Type is Comment, PullRequest or Webhook.
	Type  string `json:"type"`
	Title string `json:"title"`
	// Bytes of its text and data.
	Bytes int `json:"bytes"`
	// State is prepared, begun, sent, found or failed.
	State string `json:"state"`
	// URL of what was made; "" where there is none.
	URL string `json:"url"`
}

func (r *Run) publishResults() []PublishResult {
	all := []PublishResult{}
	for i := range r.Publications {
		p := &r.Publications[i]
		out := PublishResult{Call: p.Call, Name: p.Name, Type: p.Type, Title: p.Title, Bytes: len(p.Body) + len(p.Data), State: "prepared"}
		if p.Last != nil {
			out.State, out.URL = string(p.Last.State), p.Last.URL
		}
		all = append(all, out)
	}
	return all
}
