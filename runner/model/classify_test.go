package model

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestParseFault(t *testing.T) {
	cases := map[string]struct {
		body string
		want Fault
	}{
		"openai":         {`{"error":{"message":"no","type":"t","code":"c"}}`, Fault{Message: "no", Code: "c", Type: "t"}},
		"numeric code":   {`{"error":{"message":"no","code":502}}`, Fault{Message: "no", Code: "502", Type: ""}},
		"text":           {`{"error":"no"}`, Fault{Message: "no", Code: "", Type: ""}},
		"flat":           {`{"object":"error","message":"no","code":400}`, Fault{Message: "no", Code: "400", Type: ""}},
		"detail":         {`{"detail":[{"loc":["body"],"msg":"no"}]}`, Fault{Message: `[{"loc":["body"],"msg":"no"}]`, Code: "", Type: ""}},
		"null error":     {`{"error":null,"message":"no"}`, Fault{Message: "no", Code: "", Type: ""}},
		"no message":     {`{"error":{"odd":1}}`, Fault{Message: `{"odd":1}`, Code: "", Type: ""}},
		"page":           {"<html>\n<b>no</b>\x1b[31m</html>", Fault{Message: "<html> <b>no</b></html>", Code: "", Type: ""}},
		"empty":          {"", Fault{}},
		"list":           {`[1]`, Fault{Message: "[1]", Code: "", Type: ""}},
		"message object": {`{"error":{"message":{"a":1}}}`, Fault{Message: `{"a":1}`, Code: "", Type: ""}},
	}
	for name, c := range cases {
		if got := ParseFault([]byte(c.body)); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if got := ParseFault([]byte(strings.Repeat("x", 10_000))); len(got.Message) > 2*maxQuote {
		t.Errorf("a long body is quoted in full: %d bytes", len(got.Message))
	}
}

func FuzzParseFault(f *testing.F) {
	for _, s := range []string{`{"error":{"message":"no","code":1}}`, `{"error":[]}`, `{"detail":{}}`, "\xff\x00<"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		fault := ParseFault(body)
		e := Status(0, nil, fault, time.Time{})
		if len(fault.Message) > 0 && strings.Contains(fault.Message, "\x00") && !strings.Contains(string(body), "u0000") {
			t.Errorf("control character in %q", fault.Message)
		}
		if e.Error() == "" || e.Reason() == "" {
			t.Errorf("empty error for %q", body)
		}
	})
}

func TestRetryAfterForms(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	cases := map[string]struct {
		ms, after string
		want      time.Duration
		ok        bool
	}{
		"none":           {"", "", 0, false},
		"milliseconds":   {"250", "7", 250 * time.Millisecond, true},
		"seconds":        {"", "7", 7 * time.Second, true},
		"bad ms":         {"x", "7", 7 * time.Second, true},
		"zero":           {"", "0", 0, true},
		"date":           {"", now.Add(90 * time.Second).Format(http.TimeFormat), 90 * time.Second, true},
		"past date":      {"", now.Add(-time.Hour).Format(http.TimeFormat), 0, true},
		"negative":       {"", "-1", 0, false},
		"NaN":            {"", "NaN", 0, false},
		"infinite":       {"", "Inf", 1<<63 - 1, true},
		"beyond a float": {"", "1e999", 1<<63 - 1, true},
		"centuries":      {"", "99999999999999", 1<<63 - 1, true},
		"words":          {"", "soon", 0, false},
	}
	for name, c := range cases {
		h := http.Header{}
		if c.ms != "" {
			h.Set("retry-after-ms", c.ms)
		}
		if c.after != "" {
			h.Set("retry-after", c.after)
		}
		if got, ok := RetryAfter(h, now); got != c.want || ok != c.ok {
			t.Errorf("%s: %s %v, want %s %v", name, got, ok, c.want, c.ok)
		}
	}
}

func TestNetwork(t *testing.T) {
	cases := map[string]struct {
		err  error
		want Kind
		hint string
	}{
		"refused":     {&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, Retryable, ""},
		"reset":       {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, Retryable, ""},
		"closed":      {io.EOF, Retryable, ""},
		"dns busy":    {&net.DNSError{Err: "server misbehaving", IsTemporary: true}, Retryable, ""},
		"dns unknown": {&net.DNSError{Err: "no such host", IsNotFound: true}, Unavailable, "baseURL"},
		"ca":          {&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, Unavailable, "SSL_CERT_FILE"},
		"name":        {&tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{}, Host: "x"}}, Unavailable, "another host"},
		"no tls":      {tls.RecordHeaderError{Msg: "x"}, Never, "http://"},
		"no http":     {errors.New(`net/http: HTTP/1.x transport connection broken: malformed HTTP response "SSH"`), Never, "HTTP"},
	}
	for name, c := range cases {
		e := Network(c.err)
		if e.Kind != c.want || !strings.Contains(e.Hint, c.hint) || !errors.Is(e, c.err) {
			t.Errorf("%s: kind %d hint %q, want %d %q", name, e.Kind, e.Hint, c.want, c.hint)
		}
	}
}

func TestStatusInAStream(t *testing.T) {
	cases := map[string]struct {
		fault Fault
		want  Kind
	}{
		"rate limit":  {Fault{Message: "Rate limit reached"}, Retryable},
		"server":      {Fault{Message: "The server had an error", Type: "server_error"}, Retryable},
		"code 503":    {Fault{Message: "x", Code: "503"}, Retryable},
		"code 401":    {Fault{Message: "x", Code: "401"}, Credential},
		"quota":       {Fault{Message: "try again", Code: "insufficient_quota"}, Unavailable},
		"balance":     {Fault{Message: "Insufficient Balance", Code: "402"}, Unavailable},
		"overflow":    {Fault{Message: "maximum context length is 10"}, Overflow},
		"model error": {Fault{Message: "bad request"}, Never},
		"no words":    {Fault{}, Never},
	}
	for name, c := range cases {
		if e := Status(0, nil, c.fault, time.Time{}); e.Kind != c.want {
			t.Errorf("%s: kind %d, want %d (%v)", name, e.Kind, c.want, e)
		}
	}
}

// The words of OpenAI's APIs, in a refusal and inside a stream.
func TestFaultsOfOpenAI(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		status int
		fault  Fault
		want   Kind
	}{
		"server":           {"the server is to blame, and may recover", 0, Fault{Code: "server_error", Message: "An error occurred while processing your request."}, Retryable},
		"rate limit":       {"a limit of a minute passes", 0, Fault{Code: "rate_limit_exceeded", Message: "Rate limit reached for gpt-5"}, Retryable},
		"overflow":         {"a compaction helps", 0, Fault{Code: "context_length_exceeded", Message: "Your input exceeds the context window of this model."}, Overflow},
		"quota":            {"money does not come back by itself", 0, Fault{Code: "insufficient_quota", Message: "You exceeded your current quota"}, Unavailable},
		"flagged":          {"the prompt itself is refused", 400, Fault{Code: "invalid_prompt", Message: "Invalid prompt: your prompt was flagged as potentially violating our usage policy."}, Filtered},
		"invalid":          {"the same code, and nobody has flagged anything", 400, Fault{Code: "invalid_prompt", Message: "input is empty"}, Never},
		"filter":           {"the gateway's filter", 400, Fault{Code: "content_filter", Message: "The response was filtered"}, Filtered},
		"policy of images": {"a filter for pictures", 0, Fault{Code: "image_content_policy_violation", Message: "no"}, Filtered},
		"policy":           {"a filter of its own", 0, Fault{Code: "bio_policy", Message: "no"}, Filtered},
		"image":            {"a picture that is none stays none", 0, Fault{Code: "invalid_image", Message: "no"}, Never},
	} {
		if e := Status(c.status, nil, c.fault, time.Time{}); e.Kind != c.want {
			t.Errorf("%s: kind %d, want %d: %s (%v)", name, e.Kind, c.want, c.reason, e)
		}
	}
}

// The messages API describes a fault by the type of an error: with a status, and alone in
// the middle of a stream.
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

// A gateway reports an error, with the original error inside it.
func TestFaultsBehindAGateway(t *testing.T) {
	const said = `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\\"error\\":{\\"message\\":\\"This model's maximum context length is 8192 tokens.\\"}}","provider_name":"x"}}}`
	if e := Status(400, nil, ParseFault([]byte(said)), time.Time{}); e.Kind != Overflow || !strings.Contains(e.Error(), "maximum context length") {
		t.Errorf("kind %d: %v", e.Kind, e)
	}
	for _, other := range []string{`{"error":{"message":"no","metadata":"text"}}`, `{"error":{"message":"no","metadata":{"raw":{"a":1}}}}`, `{"error":{"message":"no","metadata":null}}`} {
		if f := ParseFault([]byte(other)); f.Message != "no" {
			t.Errorf("%s: message %q", other, f.Message)
		}
	}
}
