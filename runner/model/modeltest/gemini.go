package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

// Gemini is Google's generateContent API, streamed. Its function calls come
// whole, with an object as arguments.
var Gemini Wire = gemini{}

type gemini struct{}

func (gemini) Name() string { return "gemini" }
func (gemini) Base() string { return "" }

func (gemini) Key(h http.Header) string { return h.Get("X-Goog-Api-Key") }

var geminiPath = regexp.MustCompile(`^/v1beta/models/[A-Za-z0-9._-]+:streamGenerateContent$`)

func (gemini) Route(r Request) (int, error) {
	exists := geminiPath.MatchString(r.Path)
	if exists && r.Query != "alt=sse" {
		return http.StatusBadRequest, fmt.Errorf("the query is %q, not alt=sse", r.Query)
	}
	return route(r, exists)
}

func (w gemini) Stream(a Answer) []byte {
	var e events
	thinks := a.Reasoning != "" || a.Hidden
	for _, t := range a.texts(a.Reasoning) {
		w.part(&e, a, object{"text": t, "thought": true})
	}
	for _, t := range a.texts(a.Text) {
		w.part(&e, a, object{"text": t})
	}
	stop := "STOP"
	for i, c := range a.Calls {
		args := jsonObject(c.Args)
		if args == nil {
			// What the model wrote is not something that the API could send.
			stop = "MALFORMED_FUNCTION_CALL"
			continue
		}
		call := object{"name": c.Tool, "args": args}
		if c.ID != "" {
			call["id"] = c.ID
		}
		part := object{"functionCall": call}
		if thinks && i == 0 {
			part["thoughtSignature"] = signCall(c.Tool, args)
		}
		w.part(&e, a, part)
	}
	last := object{"text": ""}
	if thinks && len(a.Calls) == 0 {
		last["thoughtSignature"] = sign("text", "")
	}
	candidate := w.candidate(last)
	candidate["finishReason"] = a.finish(stop, stop)
	w.chunk(&e, a.Usage, candidate)
	return e.Bytes()
}

func (w gemini) part(e *events, a Answer, part object) {
	var sofar *Usage
	if a.Usage != nil {
		sofar = &Usage{Prompt: a.Usage.Prompt, Cached: a.Usage.Cached}
	}
	w.chunk(e, sofar, w.candidate(part))
}

func (gemini) candidate(part object) object {
	return object{"content": object{"role": "model", "parts": []any{part}}, "index": 0}
}

func (gemini) chunk(e *events, u *Usage, candidate object) {
	c := object{"candidates": []any{candidate}, "modelVersion": "test-model", "responseId": "0123456789abcdef"}
	if u != nil {
		usage := object{
			"promptTokenCount": u.Prompt, "candidatesTokenCount": u.Completion - u.Reasoning, "totalTokenCount": u.Prompt + u.Completion,
			"promptTokensDetails": []any{object{"modality": "TEXT", "tokenCount": u.Prompt}},
		}
		if u.Cached > 0 {
			usage["cachedContentTokenCount"] = u.Cached
		}
		if u.Reasoning > 0 {
			usage["thoughtsTokenCount"] = u.Reasoning
		}
		c["usageMetadata"] = usage
	}
	e.add("", c)
}

func (w gemini) Begun(text string) string {
	var e events
	w.chunk(&e, nil, w.candidate(object{"text": text}))
	return e.String()
}

func (gemini) Fault(status int, message, code string) string {
	return string(encode(googleError(status, message, code, nil)))
}

func googleError(status int, message, code string, details []any) object {
	if code == "" {
		code = googleCode(status)
	}
	e := object{"code": status, "message": message, "status": code}
	if details != nil {
		e["details"] = details
	}
	return object{"error": e}
}

func googleCode(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case http.StatusForbidden:
		return "PERMISSION_DENIED"
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusConflict:
		return "ABORTED"
	case http.StatusTooManyRequests:
		return "RESOURCE_EXHAUSTED"
	case http.StatusInternalServerError:
		return "INTERNAL"
	case http.StatusGatewayTimeout:
		return "DEADLINE_EXCEEDED"
	}
	if status >= 500 {
		return "UNAVAILABLE"
	}
	return "INVALID_ARGUMENT"
}

func (w gemini) InStream(status int, message, code string) string {
	return "data: " + w.Fault(status, message, code) + "\n\n"
}

func (w gemini) traits() traits {
	filtered := []string{"SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"}
	finishes := map[string]message.Finish{
		"STOP": message.FinishStop, "MAX_TOKENS": message.FinishLength, "OTHER": message.FinishUnknown,
		"TOO_MANY_TOOL_CALLS": message.FinishUnknown, "BECAUSE": message.FinishUnknown,
	}
	for _, word := range filtered {
		finishes[word] = message.FinishContentFilter
	}
	return traits{
		address: "baseURL", whole: true, signed: true, stop: "STOP", silent: `"mode":"NONE"`, failed: []string{`"error":`}, finishes: finishes,
		ping: event(object{"usageMetadata": object{"promptTokenCount": 5}}),
		unknown: []string{
			event(object{"surprise": object{"x": 1}, "responseId": "0123456789abcdef"}),
			event(object{"candidates": []any{object{"index": 0, "surprise": []any{1}}}}),
			event(object{"candidates": []any{w.candidate(object{"surprise": object{"x": 1}})}}),
		},
		asks: string(encode(googleError(429, "Quota exceeded. Please retry in 2s.", "", []any{
			object{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "2s"},
		}))),
		thoughts: w.thoughts, quirks: w.quirks, faults: w.faults,
	}
}

// thoughts are answers that are signed in other places than the first call.
func (w gemini) thoughts() map[string]string {
	stream := func(parts ...object) string {
		var e events
		for _, p := range parts {
			w.chunk(&e, nil, w.candidate(p))
		}
		last := w.candidate(object{"text": ""})
		last["finishReason"] = "STOP"
		w.chunk(&e, nil, last)
		return e.String()
	}
	call := func(x int, signed bool) object {
		args := encode(object{"x": x})
		p := object{"functionCall": object{"name": "bash", "args": json.RawMessage(args)}}
		if signed {
			p["thoughtSignature"] = signCall("bash", args)
		}
		return p
	}
	signed := func(text string) object { return object{"text": text, "thoughtSignature": sign("text", "")} }
	return map[string]string{
		"text without a call": stream(object{"text": "I "}, signed("look.")),
		"a part of its own":   stream(object{"text": "I look."}, signed("")),
		"text and call":       stream(signed("I look."), call(1, true), call(2, false)),
		"both calls":          stream(call(1, true), call(2, true)),
		"thought and call":    stream(object{"text": "Hm.", "thought": true}, call(1, true)),
	}
}

func (w gemini) faults() map[string]fault {
	begun := w.Begun("half")
	long := "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
	blocked := func(why string) string {
		return event(object{"promptFeedback": object{"blockReason": why}, "usageMetadata": object{"promptTokenCount": 5}, "modelVersion": "test-model"})
	}
	perDay := googleError(429, "You exceeded your current quota, please check your plan and billing details.", "", []any{
		object{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": []any{object{
			"quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests",
			"quotaId":     "GenerateRequestsPerDayPerProjectPerModel-FreeTier", "quotaValue": "250",
		}}},
	})
	badKey := googleError(400, "API key not valid. Please pass a valid API key.", "", []any{
		object{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"},
	})
	return map[string]fault{
		"malformed call":         {Answer{Text: "half", Finish: "MALFORMED_FUNCTION_CALL"}.Step(), reason.ModelError, 3, "MALFORMED"},
		"unexpected call":        {Answer{Calls: []Call{{ID: "a", Tool: "bash", Args: "{}"}}, Finish: "UNEXPECTED_TOOL_CALL"}.Step(), reason.ModelError, 3, "UNEXPECTED"},
		"400 for a bad key":      {Refuse(400, nil, string(encode(badKey))), reason.CredentialRejected, 1, "API key not valid"},
		"overflow":               {Refuse(400, nil, w.Fault(400, long, "")), reason.ContextExhausted, 1, ""},
		"content filter":         {Events(blocked("SAFETY")), reason.ContentFiltered, 1, "SAFETY"},
		"forbidden prompt":       {Events(blocked("PROHIBITED_CONTENT")), reason.ContentFiltered, 1, "PROHIBITED_CONTENT"},
		"quota":                  {Refuse(429, nil, string(encode(perDay))), reason.ProviderUnavailable, 1, "billing"},
		"resource exhausted":     {Refuse(429, nil, w.Fault(429, "Resource has been exhausted (e.g. check quota).", "")), reason.ProviderUnavailable, 3, "exhausted"},
		"overloaded":             {Refuse(503, nil, w.Fault(503, "The model is overloaded. Please try again later.", "")), reason.ProviderUnavailable, 3, "overloaded"},
		"500 in the stream":      {Events(begun + w.InStream(500, "An internal error has occurred.", "")), reason.ProviderUnavailable, 3, "internal error"},
		"429 in the stream":      {Events(begun + w.InStream(429, "Resource has been exhausted", "")), reason.ProviderUnavailable, 3, "exhausted"},
		"a list of chunks":       {Refuse(200, nil, "["+string(encode(googleError(400, "it broke", "", nil)))+"]"), reason.ModelError, 1, "it broke"},
		"NUL bytes":              {Events("data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\x00b\"}]}}]}\n\n"), reason.ModelError, 1, "character"},
		"truncated event":        {Events(begun + "data: {\"candidates\":[{\"cont\n\n"), reason.ModelError, 1, ""},
		"deep nesting":           {Events("data: {\"candidates\":" + strings.Repeat("[", 100000) + "\n\n"), reason.ModelError, 1, ""},
		"finish without a word":  {Events(begun + "data: {\"candidates\":[{\"finishReason\":\"\"}]}\n\n"), reason.ProviderUnavailable, 3, "ended"},
		"no candidates at all":   {Events("data: {\"candidates\":[],\"responseId\":\"x\"}\n\n"), reason.ProviderUnavailable, 3, "ended"},
		"arguments are a string": {Events("data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"bash\",\"args\":\"{}\"}}]},\"finishReason\":\"STOP\"}]}\n\n"), reason.ModelError, 1, "args"},
	}
}
