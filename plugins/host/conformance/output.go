package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/plugins/sdk/toolpb"
)

func bigOutput(ctx context.Context, t *trial) error {
	const most, more = 10 << 20, 1 << 20
	return t.with(ctx, func(p *host.Plugin) error {
		res, err := t.call(ctx, p, "probe_flood", fmt.Sprintf(`{"bytes":%d}`, most))
		if err != nil {
			return err
		}
		if res.IsError || len(res.Text) != most || res.Dropped != 0 {
			return fmt.Errorf("of %d bytes %d arrived and %d were dropped", most, len(res.Text), res.Dropped)
		}
		res, err = p.Call(ctx, host.CallRequest{Tool: "probe_flood", Args: fmt.Appendf(nil, `{"bytes":%d}`, more), Timeout: patience, MaxOutput: 1000}, nil)
		if err != nil {
			return err
		}
		if len(res.Text) != 1000 || res.Dropped != more-1000 {
			return fmt.Errorf("of %d bytes with max_output_bytes 1000 %d arrived and %d were dropped", more, len(res.Text), res.Dropped)
		}
		return nil
	})
}

func panics(ctx context.Context, t *trial) error {
	return t.with(ctx, func(p *host.Plugin) error {
		res, err := t.call(ctx, p, "probe_panic", `{}`)
		if err != nil {
			return err
		}
		if err := wantCode(res, "tool"); err != nil {
			return err
		}
		_, err = t.call(ctx, p, noSuchTool, `{}`)
		return err
	})
}

func pollution(ctx context.Context, t *trial) error {
	return t.with(ctx, func(p *host.Plugin) error {
		line := strings.Repeat("1|1|unix|/nowhere|grpc ", 10<<10) // 230 KB: more than a pipe holds
		res, err := t.call(ctx, p, "probe_print", `{"text":"`+line+`"}`)
		if err != nil {
			return err
		}
		if res.IsError || res.Text != "printed" {
			return fmt.Errorf("the result is %s", brief(res.Text))
		}
		_, err = t.call(ctx, p, noSuchTool, `{}`)
		return err
	})
}

func stdin(ctx context.Context, t *trial) error {
	return t.with(ctx, func(p *host.Plugin) error {
		res, err := p.Call(ctx, host.CallRequest{Tool: "probe_stdin", Args: []byte(`{}`), Timeout: patience}, nil)
		if err != nil {
			return err
		}
		if res.IsError || res.Text != "0" {
			return fmt.Errorf("the result is %s", brief(res.Text))
		}
		return nil
	})
}

// ownVariables are set by shells and interpreters themselves.
var ownVariables = []string{"_", "PWD", "OLDPWD", "SHLVL", "LC_CTYPE"}

func environment(ctx context.Context, t *trial) error {
	return t.with(ctx, func(p *host.Plugin) error {
		res, err := t.call(ctx, p, "probe_environ", `{}`)
		if err != nil {
			return err
		}
		var got []string
		if err := json.Unmarshal([]byte(res.Text), &got); err != nil || res.IsError {
			return fmt.Errorf("the result is %s", brief(res.Text))
		}
		var wrong []string
		seen := map[string]bool{}
		for _, kv := range got {
			name, _, _ := strings.Cut(kv, "=")
			seen[kv] = true
			switch {
			case name == toolpb.CookieKey, strings.HasPrefix(name, "PLUGIN_"):
				wrong = append(wrong, name+" of the handshake is there")
			case !slices.Contains(t.Env, kv) && !slices.Contains(ownVariables, name):
				wrong = append(wrong, name+" was not declared")
			}
		}
		for _, kv := range t.Env {
			if name, _, _ := strings.Cut(kv, "="); !seen[kv] && !slices.Contains(ownVariables, name) && !strings.Contains(kv, "\n") {
				wrong = append(wrong, name+" was declared and is not there")
			}
		}
		return together(wrong)
	})
}

func question(ctx context.Context, t *trial) error {
	return t.with(ctx, func(p *host.Plugin) error {
		ask := func(person func(context.Context, host.Question) (string, error)) (*host.CallResult, error) {
			return p.Call(ctx, host.CallRequest{Tool: "probe_ask", Args: []byte(`{"text":"who is there?"}`), Timeout: patience, Ask: person}, nil)
		}
		var asked string
		res, err := ask(func(_ context.Context, q host.Question) (string, error) { asked = q.Text; return "me", nil })
		if err != nil {
			return err
		}
		if res.IsError || asked != "who is there?" || res.Text != "me" {
			return fmt.Errorf("to %s the answer \"me\" became %s", brief(asked), brief(res.Text))
		}
		if res, err = ask(nil); err != nil {
			return err
		}
		return wantCode(res, "tool")
	})
}
