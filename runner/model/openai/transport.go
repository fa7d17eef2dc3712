package openai

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3/option"

	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/exchange"
)

const (
	responsesPath = "responses"
	// carrierPath is where the SDK's service sends what stands for our requests: the
	// cancel of an answer is the POST that has no parameters. Those of the others are
	// encoded before the body is replaced, deep enough to double the stack that a
	// conversation holds while it waits.
	carrierPath = responsesPath + "/" + carrierID + "/cancel"
	carrierID   = "-"
)

// transport returns the options of a service that sends to one endpoint. It is
// made as a literal with nothing but these: NewClient and DefaultClientOptions
// read OPENAI_* variables, and a key or an address that no manifest names must
// never be used.
func transport(x *exchange.Exchange) []option.RequestOption {
	return []option.RequestOption{option.WithBaseURL(x.BaseURL()), option.WithMaxRetries(0), option.WithHTTPClient(x.Client())}
}

// send hands the bytes of a request to the SDK. Of its services only the one of
// the responses API is linked, which carries chat completions as well: the
// package that holds the chat service holds two dozen others, is three times as
// large, and takes longer to initialise than everything else of this program.
func (c *Conversation) send(ctx context.Context, b exchange.Body) (*http.Response, error) {
	var resp *http.Response
	opts := []option.RequestOption{
		option.WithRequestBody("application/json", io.Reader(b.Reader())),
		option.WithResponseBodyInto(&resp),
		option.WithHeader("Accept", "text/event-stream"),
		option.WithMiddleware(func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
			c.route(r)
			return c.Pass(r, b, next)
		}),
	}
	if key := c.Key(); key != "" {
		opts = append(opts, option.WithAPIKey(key))
	}
	if _, err := c.service.Cancel(ctx, carrierID, opts...); err != nil {
		return nil, c.advise(err)
	}
	return resp, nil
}

// route gives a request the path of its API.
func (c *Conversation) route(r *http.Request) {
	u := *r.URL
	u.Path = strings.TrimSuffix(u.Path, carrierPath) + c.api.path
	if u.RawPath != "" {
		u.RawPath = strings.TrimSuffix(u.RawPath, carrierPath) + c.api.path
	}
	r.URL = &u
}

// advise adds to a refusal which setting may have led to it: the API is another
// one, or the model is older than what it is asked for.
func (c *Conversation) advise(err error) error {
	failed, ok := errors.AsType[*model.Error](err)
	if !ok || failed.Kind != model.Never {
		return err
	}
	hint := c.api.hint(failed)
	if words := failed.Error(); strings.Contains(words, "json_schema") && strings.Contains(words, "not supported") {
		hint = "the model is not held to a schema there: set spec.parameters." + structured + ": false"
	}
	if hint == "" {
		return err
	}
	told := *failed
	told.Hint = hint
	return &told
}
