package model

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

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

// status is the HTTP status for a type of the messages API, which comes without one in the
// middle of a stream; 0 for any other type. Similar types of OpenAI are not mapped: they
// do not tell whether the fault is temporary.
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

// all is everything the server wrote about the fault, in lower case.
func (f Fault) all() string { return strings.ToLower(f.Code + "\n" + f.Type + "\n" + f.Message) }

func (f Fault) any(words ...string) bool {
	all := f.all()
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(all, w) })
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

// badKey reports whether the key is invalid: Google answers that with 400.
func (f Fault) badKey() bool { return strings.Contains(f.Detail, "API_KEY_INVALID") }

// perDay reports whether the quota is one that is reset the next day. The quotas of a
// minute are reset within the wait that the server asks for.
func (f Fault) perDay() bool { return strings.Contains(f.Detail, "PerDay") }
