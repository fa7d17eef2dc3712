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
		"page":           {"<html>\n<b>no</b>\x1b[31m</html>", Fault{Message: "<html> <b>no</b> [31m</html>", Code: "", Type: ""}},
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
