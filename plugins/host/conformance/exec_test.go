package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentctl.dev/agentctl/plugins/host/conformance"
)

// proper is a program that does what it should, in no time.
func proper(ctx context.Context, args json.RawMessage, timeout time.Duration) (conformance.ExecReply, error) {
	var in struct{ Text, Slow *string }
	d := json.NewDecoder(strings.NewReader(string(args)))
	d.DisallowUnknownFields()
	if ok := d.Decode(&in) == nil; !ok || d.More() || in.Text == nil {
		return conformance.ExecReply{Output: "want a text", Failed: true, Code: "tool"}, nil
	}
	if in.Slow != nil {
		select {
		case <-time.After(timeout):
			return conformance.ExecReply{Failed: true, Code: "timeout"}, nil
		case <-ctx.Done():
			return conformance.ExecReply{}, ctx.Err()
		}
	}
	return conformance.ExecReply{Output: *in.Text}, nil
}

func execOptions(call func(context.Context, json.RawMessage, time.Duration) (conformance.ExecReply, error)) conformance.ExecOptions {
	return conformance.ExecOptions{
		Name: "test", Call: call, Good: []json.RawMessage{json.RawMessage(`{"text":"a"}`)}, Slow: []json.RawMessage{json.RawMessage(`{"text":"a","slow":"yes"}`)},
	}
}

func TestAProgramForEachCallKeepsEveryPromise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := conformance.RunExec(t.Context(), execOptions(proper))
		for _, c := range r.Checks {
			if c.Outcome != conformance.Passed {
				t.Errorf("%s: %s", c.Name, c.Problem)
			}
		}
		if r.Passed != 7 {
			t.Errorf("%d passed, want 7", r.Passed)
		}
	})
}

func TestBrokenPromisesOfAProgramForEachCallAreNoticed(t *testing.T) {
	hangs := func(ctx context.Context, _ json.RawMessage, timeout time.Duration) (conformance.ExecReply, error) {
		<-time.After(timeout + 2*time.Second) // it ignores SIGTERM
		if ctx.Err() != nil {
			return conformance.ExecReply{}, ctx.Err()
		}
		return conformance.ExecReply{Failed: true, Code: "timeout"}, nil
	}
	agrees := func(context.Context, json.RawMessage, time.Duration) (conformance.ExecReply, error) {
		return conformance.ExecReply{Output: "yes"}, nil
	}
	refuses := func(context.Context, json.RawMessage, time.Duration) (conformance.ExecReply, error) {
		return conformance.ExecReply{Output: "no", Failed: true, Code: "tool"}, nil
	}
	absent := func(context.Context, json.RawMessage, time.Duration) (conformance.ExecReply, error) {
		return conformance.ExecReply{}, errors.New("no such file")
	}
	slowOnly := func(ctx context.Context, args json.RawMessage, timeout time.Duration) (conformance.ExecReply, error) {
		if strings.Contains(string(args), "slow") {
			return hangs(ctx, args, timeout)
		}
		return proper(ctx, args, timeout)
	}
	for name, c := range map[string]struct {
		call func(context.Context, json.RawMessage, time.Duration) (conformance.ExecReply, error)
		want map[string]string
	}{
		"hangs":   {hangs, map[string]string{"start": "did not end"}},
		"absent":  {absent, map[string]string{"start": "no such file"}},
		"agrees":  {agrees, map[string]string{"bad arguments": `accepted the arguments ""`, "large request": "a field", "deadline": "before its time", "cancel": "before it could"}},
		"refuses": {refuses, map[string]string{"call": `failed: "no"`, "parallel calls": "one failed", "deadline": "before its time", "cancel": "before it could"}},
		"is deaf": {slowOnly, map[string]string{"deadline": "had to be killed", "cancel": "had to be killed"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := map[string]string{}
				for _, check := range conformance.RunExec(t.Context(), execOptions(c.call)).Checks {
					if check.Outcome == conformance.Failed {
						got[check.Name] = check.Problem
					}
				}
				for check, want := range c.want {
					if !strings.Contains(got[check], want) {
						t.Errorf("%s: %q, want %q", check, got[check], want)
					}
					delete(got, check)
				}
				if len(got) > 0 {
					t.Errorf("failed as well: %v", got)
				}
			})
		})
	}
}
