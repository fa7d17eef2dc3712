// Package webhook sends items to a URL.
package webhook

import (
	"context"
	"net/http"

	"agentctl.dev/agentctl/runner/publish/delivery"
)

type sender struct{ client *delivery.Client }

// New returns what sends items with a client. A URL cannot be asked whether it has an item:
// what receives it recognises one that is sent twice by its key.
func New(c *delivery.Client) delivery.Sender { return sender{c} }

// Find implements delivery.Sender.
func (sender) Find(context.Context, *delivery.Item) (string, bool, error) { return "", false, nil }

// Send implements delivery.Sender.
func (s sender) Send(ctx context.Context, it *delivery.Item) (string, error) {
	return "", s.client.Do(ctx, delivery.Request{
		Method: http.MethodPost, Body: it.Payload, Header: map[string]string{"Idempotency-Key": it.Key},
	})
}
