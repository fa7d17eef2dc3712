// Package event holds the events of a run: one envelope with exactly one payload.
//
// A run's journal is a sequence of events, one JSON object a line. The terminal,
// the web page, reports, resume and replay all read these same events through
// the fold in package view.
package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Event is one line of a journal.
type Event struct {
	// Seq counts the events of a run from 1 without gaps.
	Seq  int64
	Time time.Time
	Run  string
	// Message, Part and Call are the ids the event speaks of; "" where none.
	Message string
	Part    string
	Call    string
	// Data is the payload; its type is the event's type.
	Data Payload
	// Prev is the hash of the line before, as sha256:<hex>; "" on the first.
	Prev string
}

// Payload is the content of an event. The set of types is closed: a type this
// version does not know is read as Unknown.
type Payload interface{ Type() Type }

// Type returns the type of the payload.
func (e Event) Type() Type {
	if e.Data == nil {
		return ""
	}
	return e.Data.Type()
}

// TimeFormat is how times are written: UTC with milliseconds.
const TimeFormat = "2006-01-02T15:04:05.000Z"

// AppendJSON appends the event as one line of JSON without a final newline.
func (e Event) AppendJSON(dst []byte) ([]byte, error) {
	dst = append(dst, `{"seq":`...)
	dst = strconv.AppendInt(dst, e.Seq, 10)
	dst = append(dst, `,"time":"`...)
	dst = e.Time.UTC().AppendFormat(dst, TimeFormat)
	dst = append(dst, `","type":"`...)
	dst = append(dst, e.Type()...)
	dst = append(dst, `","run":`...)
	dst = appendString(dst, e.Run)
	for _, id := range [...]struct{ key, value string }{{"message", e.Message}, {"part", e.Part}, {"call", e.Call}} {
		if id.value != "" {
			dst = append(append(append(dst, `,"`...), id.key...), `":`...)
			dst = appendString(dst, id.value)
		}
	}
	if u, ok := e.Data.(Unknown); ok {
		dst = append(append(dst, `,"data":`...), u.Raw...)
	} else if e.Data != nil {
		var err error
		if dst, err = appendPayload(append(dst, `,"data":`...), e.Data); err != nil {
			return nil, fmt.Errorf("event %s: %w", e.Type(), err)
		}
	}
	if e.Prev != "" {
		dst = append(append(append(dst, `,"prev":"`...), e.Prev...), '"')
	}
	return append(dst, '}'), nil
}

// MarshalJSON writes the event as AppendJSON does.
func (e Event) MarshalJSON() ([]byte, error) { return e.AppendJSON(nil) }

// UnmarshalJSON reads an event; a payload of an unknown type is kept as it is.
func (e *Event) UnmarshalJSON(b []byte) error {
	var w struct {
		Seq     int64           `json:"seq"`
		Time    time.Time       `json:"time"`
		Type    Type            `json:"type"`
		Run     string          `json:"run"`
		Message string          `json:"message"`
		Part    string          `json:"part"`
		Call    string          `json:"call"`
		Data    json.RawMessage `json:"data"`
		Prev    string          `json:"prev"`
	}
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	data, err := decode(w.Type, w.Data)
	if err != nil {
		return fmt.Errorf("event %d of type %s: %w", w.Seq, w.Type, err)
	}
	*e = Event{w.Seq, w.Time, w.Run, w.Message, w.Part, w.Call, data, w.Prev}
	return nil
}

func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			b, _ := json.Marshal(s) // a string always marshals
			return append(dst, b...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}

// appendPayload leaves <, > and & as they are: a journal is read by people.
func appendPayload(dst []byte, p Payload) ([]byte, error) {
	buf := bytes.NewBuffer(dst)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(p); err != nil {
		return nil, err
	}
	b := buf.Bytes()
	return b[:len(b)-1], nil
}
