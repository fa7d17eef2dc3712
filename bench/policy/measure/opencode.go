package measure

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// openCodeServer is "opencode serve" with an agent for each policy.
type openCodeServer struct {
	program *shielded
	model   *model
	url     string
	agents  []string
}

func (o *openCodeServer) name() string { return openCode }

// startOpenCode writes the configuration and waits until the server answers.
func (b *bench) startOpenCode(ctx context.Context, installed string) (*openCodeServer, error) {
	o := &openCodeServer{model: b.model}
	home := filepath.Join(b.dir, "opencode")
	config := filepath.Join(home, ".config", "opencode")
	if err := os.MkdirAll(config, 0o700); err != nil {
		return nil, err
	}
	var agents []string
	for _, policy := range listed {
		l, err := b.readList(policy)
		if err != nil {
			return nil, err
		}
		agents = append(agents, fmt.Sprintf("%q: {\"mode\": \"primary\", \"prompt\": \"x\", \"permission\": %s}", policy, openCodePermissions(l)))
		o.agents = append(o.agents, policy)
	}
	text := fmt.Sprintf(`{"autoupdate": false, "share": "disabled", "snapshot": false, "model": "local/m", "small_model": "local/m",
"provider": {"local": {"npm": "@ai-sdk/openai-compatible", "name": "local", "options": {"baseURL": %q, "apiKey": "none"}, "models": {"m": {"name": "m", "tool_call": true, "limit": {"context": 1000000, "output": 1000}}}}},
"agent": {%s}}`, b.model.url, strings.Join(agents, ",\n"))
	if err := os.WriteFile(filepath.Join(config, "opencode.json"), []byte(text), 0o600); err != nil {
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	o.url = "http://127.0.0.1:" + port
	// opencode-ai is a script that starts the program of this package.
	path := filepath.Join(installed, "node_modules", "opencode-linux-x64", "bin", "opencode")
	env := []string{"HOME=" + home, "SHELL=/bin/bash", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1"}
	if o.program, err = b.shield(ctx, "opencode", env, path, "serve", "--pure", "--hostname", "127.0.0.1", "--port", port); err != nil {
		return nil, err
	}
	if err := o.program.start(); err != nil {
		return nil, fmt.Errorf("start OpenCode: %w", err)
	}
	if err := o.ready(ctx); err != nil {
		return nil, errors.Join(err, o.close())
	}
	return o, nil
}

// listed are the policies of shell-attacks that are permission lists. The others are
// shipped with agentctl; OpenCode and Codex judge by their own settings in their place.
var listed = []string{"readme", "dev", "wide", "lists"}

// openCodePermissions is a list as OpenCode writes it: the last entry that matches wins,
// so the order of keys counts.
func openCodePermissions(l list) string {
	groups := map[string][]string{}
	var order []string
	for _, p := range l.permissions {
		if p.Permission == "*" {
			order = append(order, fmt.Sprintf("\"*\": %q", p.Action))
			continue
		}
		groups[p.Permission] = append(groups[p.Permission], fmt.Sprintf("%q: %q", p.Pattern, p.Action))
	}
	for _, name := range []string{"bash", "read", "edit"} {
		if len(groups[name]) > 0 {
			order = append(order, fmt.Sprintf("%q: {%s}", name, strings.Join(groups[name], ", ")))
		}
	}
	if l.inside {
		order = append(order, `"external_directory": "deny"`)
	}
	return "{" + strings.Join(order, ", ") + "}"
}

func freePort(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

// interval between two questions to a server.
const interval = 20 * time.Millisecond

// ready waits until the server answers.
func (o *openCodeServer) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		// A request that comes while it starts may never be answered.
		once, stop := context.WithTimeout(ctx, 2*time.Second)
		err := request(once, "GET", o.url+"/permission", nil, nil)
		stop()
		if err == nil {
			return nil
		}
		select {
		case <-o.program.done:
			return fmt.Errorf("start OpenCode: %w: %s", o.program.err, o.program.why())
		case <-ctx.Done():
			return fmt.Errorf("wait for OpenCode: %w: %s", err, o.program.why())
		case <-tick.C:
		}
	}
}

func (o *openCodeServer) close() error { return o.program.close() }

// decide has the model call bash in a session of its own. A question is rejected.
func (o *openCodeServer) decide(ctx context.Context, policy, workspace, command string) (string, error) {
	o.model.ask(command)
	at := "?directory=" + workspace
	var session struct{ ID string }
	if err := request(ctx, "POST", o.url+"/session"+at, map[string]string{"title": "x"}, &session); err != nil {
		return "", err
	}
	body := map[string]any{"model": map[string]string{"providerID": "local", "modelID": "m"}, "parts": []any{map[string]string{"type": "text", "text": "run it"}}}
	if slices.Contains(o.agents, policy) {
		body["agent"] = policy
	}
	answer := make(chan error, 1)
	go func() { answer <- request(ctx, "POST", o.url+"/session/"+session.ID+"/message"+at, body, nil) }()
	asked, err := o.reject(ctx, at, session.ID, answer)
	if err != nil {
		return "", fmt.Errorf("OpenCode: %w: %s", err, o.program.why())
	}
	if asked {
		return "ask", nil
	}
	return o.outcome(ctx, at, session.ID)
}

// reject rejects each question of a session until its message is answered.
func (o *openCodeServer) reject(ctx context.Context, at, session string, answer <-chan error) (asked bool, err error) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case err := <-answer:
			return asked, err
		case <-tick.C:
		}
		var pending []struct{ ID, SessionID string }
		err := request(ctx, "GET", o.url+"/permission"+at, nil, &pending)
		for _, p := range pending {
			if err == nil && p.SessionID == session {
				asked = true
				err = request(ctx, "POST", o.url+"/permission/"+p.ID+"/reply"+at, map[string]string{"reply": "reject"}, nil)
			}
		}
		if err != nil {
			return asked, errors.Join(err, <-answer)
		}
	}
}

// outcome reads what came of the call of a session.
func (o *openCodeServer) outcome(ctx context.Context, at, session string) (string, error) {
	var messages []struct {
		Parts []struct {
			Type  string
			State struct{ Status, Error, Output string }
		}
	}
	if err := request(ctx, "GET", o.url+"/session/"+session+"/message"+at, nil, &messages); err != nil {
		return "", err
	}
	for _, m := range messages {
		for _, p := range m.Parts {
			switch {
			case p.Type != "tool":
			case p.State.Status == "completed" && strings.Contains(p.State.Output, stubText):
				return "allow", nil
			case strings.Contains(p.State.Error, "a rule which prevents"):
				return "deny", nil
			}
		}
	}
	return unclear, nil
}
