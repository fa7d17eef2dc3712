package model

import (
	"net/http"
	"testing"
	"time"
)

func TestFaultsOfGoogle(t *testing.T) {
	const perDay = `{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"m","quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier","quotaValue":"250"}]}`
	const perMinute = `{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateContentInputTokensPerModelPerMinute-FreeTier"}]}`
	const delay = `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}`
	cases := map[string]struct {
		reason string
		status int
		body   string
		want   Kind
		wait   time.Duration
		class  string
	}{
		"bad key":         {"a key that is none comes as a bad request", 400, `{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"@type":"x","reason":"API_KEY_INVALID","domain":"googleapis.com"}]}}`, Credential, 0, "400"},
		"bad argument":    {"any other bad request is one", 400, `{"error":{"code":400,"message":"Invalid value","status":"INVALID_ARGUMENT","details":[{"@type":"x","fieldViolations":[{"field":"contents"}]}]}}`, Never, 0, "400"},
		"no key":          {"without a key nothing is permitted", 403, `{"error":{"code":403,"message":"unregistered callers","status":"PERMISSION_DENIED"}}`, Credential, 0, "403"},
		"per minute":      {"the quota of a minute comes back, and the server says when", 429, `{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED","details":[` + perMinute + `,` + delay + `]}}`, Retryable, 34500 * time.Millisecond, "429"},
		"per day":         {"the quota of a day is not waited for, whatever the server asks", 429, `{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED","details":[` + perMinute + `,` + perDay + `,` + delay + `]}}`, Unavailable, 34500 * time.Millisecond, "429"},
		"no details":      {"without a word about the quota it may pass", 429, `{"error":{"code":429,"message":"Resource has been exhausted","status":"RESOURCE_EXHAUSTED"}}`, Retryable, 0, "429"},
		"too long":        {"too many tokens are a conversation that is too long", 400, `{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`, Overflow, 0, "400"},
		"too large":       {"so are too many bytes", 400, `{"error":{"code":400,"message":"Request payload size exceeds the limit: 20971520 bytes.","status":"INVALID_ARGUMENT"}}`, Overflow, 0, "400"},
		"overloaded":      {"an overload passes", 503, `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`, Retryable, 0, "503"},
		"in the stream":   {"the status is in the error where it came too late", 0, `{"error":{"code":500,"message":"An internal error has occurred.","status":"INTERNAL"}}`, Retryable, 0, "500"},
		"key in a stream": {"the key too", 0, `{"error":{"code":400,"message":"API key expired","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`, Credential, 0, "400"},
		"in a list":       {"who asks for no events gets a list", 400, `[{"error":{"code":400,"message":"API key not valid.","details":[{"reason":"API_KEY_INVALID"}]}}]`, Credential, 0, "400"},
		"other details":   {"details of another shape are nobody's", 429, `{"error":{"message":"slow down","details":"none"}}`, Retryable, 0, "429"},
		"odd delay":       {"a wait that is none is not waited", 429, `{"error":{"message":"slow down","details":[{"retryDelay":"-3s"},{"retryDelay":"soon"}]}}`, Retryable, 0, "429"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := Status(c.status, http.Header{}, ParseFault([]byte(c.body)), time.Time{})
			if e.Kind != c.want || e.Class != c.class {
				t.Errorf("%s: kind %d class %s, want %d %s: %v", c.reason, e.Kind, e.Class, c.want, c.class, e)
			}
			if got := waitOf(e); got != c.wait {
				t.Errorf("%s: waits %s, want %s", c.reason, got, c.wait)
			}
		})
	}
}

func waitOf(e *Error) time.Duration {
	if e.Wait == nil {
		return 0
	}
	return *e.Wait
}

func TestTheHeaderSaysTheWaitBeforeTheBody(t *testing.T) {
	e := Status(429, http.Header{"Retry-After": {"2"}}, Fault{Message: "slow down", Wait: time.Minute}, time.Time{})
	if got := waitOf(e); got != 2*time.Second {
		t.Errorf("waits %s", got)
	}
}

func TestAStatusIsSaidOnce(t *testing.T) {
	for want, f := range map[string]Fault{
		"the server answered 429 Too Many Requests: slow down":       {Message: "slow down", Code: "429"},
		"the server answered 429 Too Many Requests: slow down (why)": {Message: "slow down", Code: "why"},
	} {
		if got := Status(429, nil, f, time.Time{}).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
