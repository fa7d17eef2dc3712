package sdk

import (
	"context"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestProbesDoWhatTheySay: docs/plugins.md describes them for other languages.
func TestProbesDoWhatTheySay(t *testing.T) {
	t.Setenv("PROBED", "yes")
	expect := map[string]struct{ args, text, written string }{
		"probe_echo":    {`{"text":"é"}`, "é", ""},
		"probe_wait":    {`{"ms":1}`, "rested", "begun\n"},
		"probe_flood":   {`{"bytes":20}`, "", "0123456789abcde\n0123"},
		"probe_panic":   {`{}`, "the tool panicked: this is a probe", ""},
		"probe_print":   {`{"text":"printed by a probe"}`, "printed", ""},
		"probe_environ": {`{}`, `"PROBED=yes"`, ""},
		"probe_stdin":   {`{}`, "0", ""},
		"probe_spawn":   {`{}`, "", ""},
		"probe_ask":     {`{"text":"who?"}`, "me", ""},
	}
	for _, p := range probes() {
		want, ok := expect[p.Name()]
		if !ok {
			t.Errorf("nothing is expected of %s", p.Name())
		}
		delete(expect, p.Name())
		call := &Call{AskFunc: func(context.Context, string, []string) (string, error) { return "me", nil }}
		res, err := p.Run(t.Context(), call, json.RawMessage(want.args))
		if err != nil {
			t.Fatalf("%s: %v", p.Name(), err)
		}
		if !strings.Contains(res.Text, want.text) || call.Written() != want.written {
			t.Errorf("%s: %q, wrote %q, want %q and %q", p.Name(), res.Text, call.Written(), want.text, want.written)
		}
		if p.Name() == "probe_spawn" {
			pid, err := strconv.Atoi(res.Text)
			if err != nil {
				t.Fatal(err)
			}
			child, err := os.FindProcess(pid)
			if err != nil {
				t.Fatal(err)
			}
			if err := child.Kill(); err != nil {
				t.Errorf("its program does not run: %v", err)
			}
		}
		if res, err := p.Run(t.Context(), call, json.RawMessage(`{"no such field":1}`)); err != nil || res.Code != CodeSchema {
			t.Errorf("%s with other arguments: %+v, %v", p.Name(), res, err)
		}
	}
	if len(expect) > 0 {
		t.Errorf("missing: %v", expect)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, p := range probes() {
		if p.Name() != "probe_wait" {
			continue
		}
		if res, err := p.Run(ctx, nil, json.RawMessage(`{"ms":60000}`)); err != nil || res.Code != CodeCancelled {
			t.Errorf("a cancelled wait: %+v, %v", res, err)
		}
	}
}
