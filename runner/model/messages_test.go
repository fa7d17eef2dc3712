package model

import (
	"testing"
	"time"
)

// The messages API says what happened in the type of an error: beside a status,
// and alone in the middle of a stream.
func TestFaultsOfTheMessagesAPI(t *testing.T) {
	fault := func(kind, message string) Fault {
		return ParseFault([]byte(`{"type":"error","error":{"type":"` + kind + `","message":"` + message + `"},"request_id":"req_1"}`))
	}
	cases := map[string]struct {
		reason string
		status int
		fault  Fault
		want   Kind
		class  string
	}{
		"overloaded":           {"a crowd goes away", 529, fault("overloaded_error", "Overloaded"), Retryable, "529"},
		"overloaded, streamed": {"the type stands for the status", 0, fault("overloaded_error", "Overloaded"), Retryable, "529"},
		"rate limit, streamed": {"so does this one", 0, fault("rate_limit_error", "x"), Retryable, "429"},
		"trouble, streamed":    {"their own trouble passes", 0, fault("api_error", "Internal server error"), Retryable, "500"},
		"time-out, streamed":   {"a time-out passes", 0, fault("timeout_error", "x"), Retryable, "504"},
		"key, streamed":        {"a key is never right the second time", 0, fault("authentication_error", "x"), Credential, "401"},
		"permission, streamed": {"nor is a permission", 0, fault("permission_error", "x"), Credential, "403"},
		"no model, streamed":   {"a model that is not there does not come", 0, fault("not_found_error", "x"), Never, "404"},
		"too large, streamed":  {"a request that is too large can be made smaller", 0, fault("request_too_large", "x"), Overflow, "413"},
		"billing, streamed":    {"money is not back in a minute", 0, fault("billing_error", "x"), Unavailable, "402"},
		"bad request":          {"the request stays wrong", 400, fault("invalid_request_error", "messages: wrong"), Never, "400"},
		"bad request, quoting": {"whatever it quotes", 400, fault("invalid_request_error", "overloaded, rate limit"), Never, "400"},
		"prompt too long":      {"a prompt can be made shorter", 400, fault("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"), Overflow, "400"},
		"room for the output":  {"what is left for the answer counts too", 400, fault("invalid_request_error", "input length and `max_tokens` exceed context limit: 1 + 2 > 2"), Overflow, "400"},
		"too long, streamed":   {"in the middle of a stream as well", 0, fault("invalid_request_error", "prompt is too long"), Overflow, "error"},
		"filter":               {"refused content stays refused", 400, fault("invalid_request_error", "Output blocked by content filtering policy"), Filtered, "400"},
		"credit":               {"an empty account is no bad request", 400, fault("invalid_request_error", "Your credit balance is too low to access the API."), Unavailable, "400"},
		"code over type":       {"a gateway's status says more", 0, Fault{Code: "503", Type: "not_found_error"}, Retryable, "503"},
		"status over type":     {"the status that came is the one that holds", 503, Fault{Type: "not_found_error"}, Retryable, "503"},
	}
	for name, c := range cases {
		if got := Status(c.status, nil, c.fault, time.Time{}); got.Kind != c.want || got.Class != c.class {
			t.Errorf("%s: %s: kind %d, class %s, want %d, %s: %v", name, c.reason, got.Kind, got.Class, c.want, c.class, got)
		}
	}
}
