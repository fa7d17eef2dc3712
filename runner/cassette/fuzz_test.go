package cassette

import (
	"bytes"
	"errors"
	"testing"
)

// FuzzRead reads anything: what is taken for a cassette is written as it was read,
// and can be lived; everything else is damage.
func FuzzRead(f *testing.F) {
	file := text(f, small())
	f.Add(file)
	f.Add(file[:200])
	f.Add([]byte("{\"cassette\":\"agentctl.dev/v1\"}\n"))
	f.Add(forge(f, `{"cassette":"agentctl.dev/v1","run":"r"}`, `{"plan":1}`, `{"facts":{}}`,
		`{"seq":1,"time":"2026-03-04T05:06:07Z","type":"run.started","run":"r","data":{}}`, `{"end":{"lines":LINES,"head":"HEAD"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Read("x", bytes.NewReader(b))
		if err != nil {
			if _, ok := errors.AsType[*DamageError](err); !ok {
				t.Fatalf("not damage: %v", err)
			}
			return
		}
		Requests(c.Life())
		again, err := Read("x", bytes.NewReader(text(t, c)))
		if err != nil || len(again.Events) != len(c.Events) {
			t.Fatalf("written again it is %v", err)
		}
	})
}

// FuzzLife lives whatever events a forger puts into a cassette.
func FuzzLife(f *testing.F) {
	f.Add([]byte{0, 3, 6, 12, 20, 1, 3, 6})
	f.Fuzz(func(t *testing.T, script []byte) {
		c := small()
		c.Events = c.Events[:1]
		for _, b := range script {
			c.Events = append(c.Events, anything(b))
		}
		for _, r := range Requests(c.Life()) {
			if r.Output != nil && r.Message == "" {
				continue
			}
			for _, e := range r.Events {
				if e.Message != r.Message {
					t.Fatalf("request %s has %s", r.Message, e.Message)
				}
			}
		}
	})
}
