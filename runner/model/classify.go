package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxQuote bounds how much of a server's own words an error repeats.
const maxQuote = 400

// Cut ends words that were longer.
const Cut = "…"

// ProxyLogin is the hint where a proxy wants a login.
const ProxyLogin = "the proxy wants a login: HTTPS_PROXY (HTTP_PROXY for http:// addresses) takes http://user:password@host:port"

// retryableStatus lists the statuses that may pass. 520 to 523 are a gateway's
// words for an origin it cannot reach.
var retryableStatus = []int{408, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529}

// filterCodes are the words for a request whose content is refused.
var filterCodes = []string{
	"content_filter", "content_policy_violation", "image_content_policy_violation", "bio_policy", "misalignment_policy_violation",
}

// neverStatus lists the statuses whose words are not searched for a reason to
// try again: the request itself is wrong, and may quote anything.
var neverStatus = []int{400, 404, 422}

// Fault is what a server said when it refused: in a body, or in the middle of a
// stream.
type Fault struct {
	// Message for people.
	Message string
	// Code and Type are the server's own words for what happened.
	Code, Type string
	// Detail are further words, for programs.
	Detail string
	// Wait is how long the body asks to wait, 0 for nothing.
	Wait time.Duration
}

// ParseFault reads the error object of a JSON body in the shapes that
// compatible servers use: {"error": {...}}, {"error": "text"}, {"message": ...},
// {"detail": ...}. Anything else is a Fault whose message quotes the body.
func ParseFault(body []byte) Fault {
	var outer struct {
		Error                       json.RawMessage
		Message, Detail, Code, Type any
	}
	if json.Unmarshal(body, &outer) != nil {
		if one := onlyError(body); one != nil {
			return ParseFault(one)
		}
		return Fault{Message: Quote(body)}
	}
	if len(outer.Error) == 0 || string(outer.Error) == "null" {
		f := Fault{Message: word(outer.Message), Code: word(outer.Code), Type: word(outer.Type)}
		if f.Message == "" {
			f.Message = word(outer.Detail)
		}
		if f.Message == "" {
			f.Message = Quote(body)
		}
		return f
	}
	var inner struct{ Message, Code, Type, Status any }
	if json.Unmarshal(outer.Error, &inner) != nil {
		return Fault{Message: Quote(bytes.Trim(outer.Error, `"`))}
	}
	f := Fault{Message: Quote([]byte(word(inner.Message))), Code: word(inner.Code), Type: cmp.Or(word(inner.Type), word(inner.Status))}
	f.Detail, f.Wait = details(outer.Error)
	if f.Message == "" {
		f.Message = Quote(outer.Error)
	}
	return f
}

// Status classifies an answer with a status outside 2xx, or, with status 0, a
// fault that came inside a stream that began well.
func Status(status int, header http.Header, f Fault, now time.Time) *Error {
	e := &Error{Class: "error", Err: fmt.Errorf("the server answered: %s", f.words())}
	if status != 0 {
		e.Class = strconv.Itoa(status)
		if f.Code == e.Class {
			f.Code = "" // it has been said
		}
		e.Err = fmt.Errorf("the server answered %s: %s", strings.TrimSpace(e.Class+" "+http.StatusText(status)), f.words())
	} else if n, err := strconv.Atoi(f.Code); err == nil && n >= 400 && n < 600 {
		// Gateways put the status that came too late into the error's code.
		status = n
		e.Class = f.Code
	} else if n := f.status(); n != 0 {
		status = n
		e.Class = strconv.Itoa(n)
	}
	e.Kind, e.Hint = kindOf(status, header.Get("X-Should-Retry"), f)
	if wait, ok := RetryAfter(header, now); ok {
		e.Wait = &wait
	} else if f.Wait > 0 {
		e.Wait = &f.Wait
	}
	return e
}

func kindOf(status int, should string, f Fault) (Kind, string) {
	switch {
	case status == 401 || status == 403 || f.badKey():
		return Credential, "check the key that spec.apiKey names, and what it may use"
	case f.overflow(status):
		return Overflow, "lower context.compactAtPercent, set contextWindow, or use a model with a larger window"
	case f.filtered():
		return Filtered, ""
	case f.quota(status):
		return Unavailable, "the account's quota is used up: check its plan and billing"
	case should == "true":
		return Retryable, ""
	case should == "false" && (status == 429 || status >= 500):
		return Unavailable, ""
	case should == "false":
		return Never, ""
	case slices.Contains(retryableStatus, status):
		return Retryable, ""
	case status == 404 || status == 405 || status == 501:
		return Never, "is spec.baseURL right, and does the model exist there?"
	case status >= 500:
		return Unavailable, ""
	case status == 407:
		return Unavailable, ProxyLogin
	case status >= 300 && status < 400:
		return Never, "the endpoint redirects: give spec.baseURL the address it redirects to"
	case !slices.Contains(neverStatus, status) && f.busy():
		return Retryable, ""
	}
	return Never, ""
}

// status is the status that goes with a type of the messages API, which comes
// without one in the middle of a stream; 0 of any other type. The words of
// OpenAI that sound alike stand for less: they say what may be wrong, not whether
// it passes.
func (f Fault) status() int {
	switch f.Type {
	case "api_error":
		return http.StatusInternalServerError
	case "overloaded_error":
		return 529
	case "rate_limit_error":
		return http.StatusTooManyRequests
	case "timeout_error":
		return http.StatusGatewayTimeout
	case "authentication_error":
		return http.StatusUnauthorized
	case "permission_error":
		return http.StatusForbidden
	case "not_found_error":
		return http.StatusNotFound
	case "request_too_large":
		return http.StatusRequestEntityTooLarge
	case "billing_error":
		return http.StatusPaymentRequired
	}
	return 0
}

func (f Fault) words() string {
	s := f.Message
	if s == "" {
		s = "(no message)"
	}
	if f.Code != "" && !strings.Contains(s, f.Code) {
		s += " (" + f.Code + ")"
	}
	return s
}

func (f Fault) any(words ...string) bool {
	all := strings.ToLower(f.Code + "\n" + f.Type + "\n" + f.Message)
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(all, w) })
}

func (f Fault) overflow(status int) bool {
	if status == 413 || f.Code == "context_length_exceeded" || f.Type == "exceed_context_size_error" {
		return true
	}
	return (status == 400 || status == 422 || status == 0) &&
		f.any("context_length_exceeded", "maximum context length", "prompt is too long", "exceeds the available context size", "exceeds the context window", "exceed context limit",
			"exceeds the maximum number of tokens", "request payload size exceeds")
}

func (f Fault) filtered() bool {
	return slices.Contains(filterCodes, f.Code) || f.any("blocked by content filtering policy") ||
		f.Code == "invalid_prompt" && f.any("flagged", "usage policy")
}

func (f Fault) quota(status int) bool {
	return status == 402 || f.perDay() || f.any("insufficient_quota", "billing_hard_limit_reached", "insufficient balance", "credit balance is too low")
}

func (f Fault) busy() bool {
	return f.any("overloaded", "rate limit", "rate_limit", "ratelimit", "try again", "resource exhausted", "resource_exhausted", "capacity", "server_error", "temporarily unavailable")
}

// RetryAfter reads how long a server asks to wait: retry-after-ms, else
// retry-after in seconds, else as a date. A wait that cannot be counted is the
// longest there is, so that nobody begins it.
func RetryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	if d, ok := number(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d, true
	}
	v := h.Get("Retry-After")
	if d, ok := number(v, time.Second); ok {
		return d, true
	}
	t, err := http.ParseTime(v)
	if err != nil {
		return 0, false
	}
	return max(0, t.Sub(now)), true
}

func number(s string, unit time.Duration) (time.Duration, bool) {
	const longest = time.Duration(1<<63 - 1)
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	// The first comparison is false for NaN as well.
	if !(f >= 0) || (err != nil && f == 0) {
		return 0, false
	}
	if f >= float64(longest/unit) {
		return longest, true
	}
	return time.Duration(f * float64(unit)), true
}

// Quote returns the beginning of a server's words on one line, without control
// characters.
func Quote(b []byte) string {
	cut := len(b) > maxQuote
	if cut {
		b = b[:maxQuote]
	}
	s := strings.ToValidUTF8(string(b), "")
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) }), " ")
	if cut {
		s += Cut
	}
	return s
}

// word is a JSON scalar as text; servers write codes as numbers and as strings.
func word(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case nil:
		return ""
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return Quote(b)
}
