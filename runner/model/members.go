package model

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"agentctl.dev/agentctl/runner/model/jsonpass"
)

// Members are members of a request, in the order on the wire.
type Members []Member

// Member is a name and its value.
type Member struct {
	Name  string
	Value json.RawMessage
}

func (m *Members) add(name string, value json.RawMessage) {
	var compact bytes.Buffer
	if json.Compact(&compact, value) == nil {
		value = compact.Bytes()
	}
	*m = append(*m, Member{name, value})
}

// Encode writes the members, each with a comma behind it.
func (m Members) Encode(b []byte) []byte {
	for _, p := range m {
		b = append(append(jsonpass.AppendString(b, p.Name), ':'), p.Value...)
		b = append(b, ',')
	}
	return b
}

// Capped returns the members with no limit of the output above most. Limits are
// the names a server may have for it: the one that is there is kept, for a server
// may not know another; without one it is the first.
func (m Members) Capped(most int64, limits ...string) Members {
	if most <= 0 {
		return m
	}
	out, known := make(Members, 0, len(m)+1), false
	limit := json.RawMessage(strconv.FormatInt(most, 10))
	for _, p := range m {
		if slices.Contains(limits, p.Name) {
			known = true
			// A limit below 1 is some servers' word for none.
			if n, err := strconv.ParseInt(string(p.Value), 10, 64); err != nil || n > most || n < 1 {
				p.Value = limit
			}
		}
		out = append(out, p)
	}
	if !known {
		out.add(limits[0], limit)
	}
	return out
}
