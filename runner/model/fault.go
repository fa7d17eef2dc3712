package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

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
	if raw := relayed(outer.Error); raw != "" && f.Message != "" {
		f.Message += ": " + Quote([]byte(raw))
	}
	if f.Message == "" {
		f.Message = Quote(outer.Error)
	}
	return f
}

// details reads the machine-readable part of an error of Google's APIs: the reasons, the
// quotas that are used up, and how long to wait.
func details(raw []byte) (words string, wait time.Duration) {
	var e struct {
		Details []struct {
			Reason     string
			RetryDelay string
			Violations []struct{ QuotaID string }
		}
	}
	if json.Unmarshal(raw, &e) != nil {
		return "", 0 // a list of another shape is another server's
	}
	var all []string
	for _, d := range e.Details {
		if d.Reason != "" {
			all = append(all, d.Reason)
		}
		for _, v := range d.Violations {
			all = append(all, v.QuotaID)
		}
		if n, err := time.ParseDuration(d.RetryDelay); err == nil {
			wait = max(wait, n)
		}
	}
	return strings.Join(all, " "), wait
}

// relayed is what the server behind a gateway said: OpenRouter's own words are
// always that there was an error.
func relayed(raw []byte) string {
	var e struct{ Metadata struct{ Raw string } }
	if json.Unmarshal(raw, &e) != nil {
		return "" // metadata of another shape is another server's
	}
	return e.Metadata.Raw
}

// onlyError returns the error in a list with nothing else, which is how Google answers
// requests for a stream; nil for any other body.
func onlyError(body []byte) json.RawMessage {
	var list []struct{ Error json.RawMessage }
	var whole []json.RawMessage
	if json.Unmarshal(body, &list) != nil || len(list) != 1 || list[0].Error == nil || json.Unmarshal(body, &whole) != nil {
		return nil
	}
	return whole[0]
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

// maxQuote bounds how much of a server's own words an error repeats.
const maxQuote = 400

// Cut ends words that were longer.
const Cut = "…"

// sequences are what a terminal obeys. They are taken out as a whole: what is left
// of one would be in the middle of a key that the server repeats, and hide it from
// the search for secrets.
var sequences = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("\x1b(\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b\n]*(\x07|\x1b\\\\)?|[ -/]*[0-~])")
})

// Quote returns the beginning of a server's words on one line, without escape
// sequences and control characters.
func Quote(b []byte) string {
	if bytes.IndexByte(b, 0x1b) >= 0 {
		b = sequences().ReplaceAll(b[:min(len(b), 16*maxQuote)], nil)
	}
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
