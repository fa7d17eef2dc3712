package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"agentctl.dev/agentctl/runner"
)

func TestTheLimitsOfRetentionAreRead(t *testing.T) {
	for name, c := range map[string]struct {
		r    retention
		age  time.Duration
		keep int
		size int64
		ok   bool
	}{
		"days":     {retention{olderThan: "30d", keep: -1}, 30 * 24 * time.Hour, -1, -1, true},
		"hours":    {retention{olderThan: "12h", keep: 7}, 12 * time.Hour, 7, -1, true},
		"size":     {retention{maxSize: "10Gi", keep: -1}, 0, -1, 10 << 30, true},
		"no time":  {retention{olderThan: "soon", keep: -1}, 0, 0, 0, false},
		"negative": {retention{olderThan: "-1h", keep: -1}, 0, 0, 0, false},
		"no size":  {retention{maxSize: "much", keep: -1}, 0, 0, 0, false},
	} {
		o, err := c.r.options("/state")
		if (err == nil) != c.ok || err == nil && (o.OlderThan != c.age || o.Keep != c.keep || o.MaxSize != c.size) {
			t.Errorf("%s: got %+v, %v", name, o, err)
		}
	}
	if o, err := (&retention{keep: -1}).options("/state"); o != nil || err != nil {
		t.Errorf("without limits: %+v, %v", o, err)
	}
}

func TestRunsThatAreNotToBeKeptAreDeleted(t *testing.T) {
	state := t.TempDir()
	const manifests = "apiVersion: agentctl.dev/v1alpha1\nkind: Agent\nmetadata: {name: a}\nspec: {modelRef: {name: m}, instructions: x}\n---\n" +
		"apiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: m}\nspec: {provider: scripted, model: s, scripted: {steps: [{say: done}]}}\n"
	path := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(path, []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := runner.Run(t.Context(), runner.RunOptions{Paths: []string{path}, State: state, Approve: "never", AllowUnsandboxed: true}); err != nil {
			t.Fatal(err)
		}
	}
	o, err := (&retention{keep: 1}).options(state)
	if err != nil {
		t.Fatal(err)
	}
	prune(t.Context(), o, slog.New(slog.DiscardHandler), time.Now())
	left, err := filepath.Glob(filepath.Join(state, "runs", "*", "events*.jsonl"))
	if err != nil || len(left) != 1 {
		t.Errorf("left are %v, %v", left, err)
	}
}
