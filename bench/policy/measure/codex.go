package measure

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// codexServers are "codex app-server" processes, one for each policy, since its rules are
// those of a folder.
type codexServers struct {
	b       *bench
	path    string
	running map[string]*codexServer
}

func (c *codexServers) name() string { return codex }

func (b *bench) startCodex(_ context.Context, installed string) (*codexServers, error) {
	found, err := filepath.Glob(filepath.Join(installed, "node_modules", "@openai", "codex-linux-*", "vendor", "*", "bin", "codex"))
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("find the program of @openai/codex in %s: %d found: %w", installed, len(found), err)
	}
	return &codexServers{b: b, path: found[0], running: map[string]*codexServer{}}, nil
}

func (c *codexServers) close() error {
	var err error
	for _, s := range c.running {
		err = errors.Join(err, s.in.Close(), s.program.close())
	}
	return err
}

func (c *codexServers) decide(ctx context.Context, policy, workspace, command string) (string, error) {
	if !slices.Contains(listed, policy) {
		policy = "own"
	}
	s, ok := c.running[policy]
	if !ok {
		var err error
		if s, err = c.start(ctx, policy); err != nil {
			return "", fmt.Errorf("start Codex: %w", err)
		}
	}
	c.b.model.ask(command)
	late := time.AfterFunc(patience, s.program.cancel)
	asked, err := s.turn(workspace)
	late.Stop()
	if err != nil {
		return "", fmt.Errorf("Codex: %w: %s", err, s.program.why()) //nolint:staticcheck // a name
	}
	result := c.b.model.result()
	switch {
	case asked:
		return "ask", nil
	case strings.Contains(result, stubText):
		return "allow", nil
	case strings.Contains(result, "rejected: policy forbids"):
		return "deny", nil
	}
	return unclear, nil
}

// codexServer is one app-server, which speaks JSON-RPC, a message a line.
type codexServer struct {
	program *shielded
	in      io.WriteCloser
	out     *bufio.Reader
	last    int
}

// start starts the app-server of a policy.
func (c *codexServers) start(ctx context.Context, policy string) (*codexServer, error) {
	home := filepath.Join(c.b.dir, "codex-"+policy)
	if err := os.MkdirAll(filepath.Join(home, "rules"), 0o700); err != nil {
		return nil, err
	}
	// Its default settings; a command that no rule names runs in its sandbox.
	config := fmt.Sprintf("model = \"m\"\nmodel_provider = \"local\"\napproval_policy = \"on-request\"\nsandbox_mode = \"workspace-write\"\n[model_providers.local]\nname = \"local\"\nbase_url = %q\nwire_api = \"responses\"\nrequest_max_retries = 0\nstream_max_retries = 0\n", c.b.model.url)
	rules := ""
	if policy != "own" {
		l, err := c.b.readList(policy)
		if err != nil {
			return nil, err
		}
		rules = codexRules(l)
	}
	for name, text := range map[string]string{"config.toml": config, "rules/default.rules": rules} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	program, err := c.b.shield(ctx, "codex-"+policy, []string{"HOME=" + home, "CODEX_HOME=" + home, "SHELL=/bin/bash"}, c.path, "app-server")
	if err != nil {
		return nil, err
	}
	in, err := program.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, pipe, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	program.cmd.Stdout = pipe
	err = program.start()
	if err = errors.Join(err, pipe.Close()); err != nil {
		return nil, err
	}
	s := &codexServer{program: program, in: in, out: bufio.NewReader(out)}
	c.running[policy] = s
	if _, err := s.call("initialize", map[string]any{"clientInfo": map[string]string{"name": "bench", "title": "bench", "version": "1"}}); err != nil {
		return nil, fmt.Errorf("%w: %s", err, program.why())
	}
	return s, s.send(map[string]any{"method": "initialized"})
}

// codexRules is a list as rules of Codex, which are prefixes of a command. It has no rule
// for every command, and none for files.
func codexRules(l list) string {
	decisions := map[string]string{"allow": "allow", "ask": "prompt", "deny": "forbidden"}
	var all strings.Builder
	for _, p := range l.permissions {
		words := strings.Fields(strings.TrimSuffix(p.Pattern, "*"))
		if p.Permission != "bash" || len(words) == 0 {
			continue
		}
		fmt.Fprintf(&all, "prefix_rule(pattern=%s, decision=%q)\n", encoded(words), decisions[p.Action])
	}
	return all.String()
}

// rpc is a message of the app-server: an answer, a request or a notification.
type rpc struct {
	ID     *int
	Method string
	Result json.RawMessage
	Error  *struct{ Message string }
}

func (s *codexServer) send(message map[string]any) error {
	_, err := io.WriteString(s.in, encoded(message)+"\n")
	return err
}

func (s *codexServer) read() (rpc, error) {
	line, err := s.out.ReadBytes('\n')
	if err != nil {
		return rpc{}, err
	}
	var m rpc
	return m, json.Unmarshal(line, &m)
}

// call sends a request and returns its result.
func (s *codexServer) call(method string, params any) (json.RawMessage, error) {
	s.last++
	if err := s.send(map[string]any{"id": s.last, "method": method, "params": params}); err != nil {
		return nil, err
	}
	for {
		m, err := s.read()
		if err != nil {
			return nil, err
		}
		if m.Method != "" || m.ID == nil || *m.ID != s.last {
			continue
		}
		if m.Error != nil {
			return nil, fmt.Errorf("%s: %s", method, m.Error.Message)
		}
		return m.Result, nil
	}
}

// turn has the model make its call in a thread of its own. A question is declined.
func (s *codexServer) turn(workspace string) (asked bool, err error) {
	result, err := s.call("thread/start", map[string]any{"cwd": workspace})
	if err != nil {
		return false, err
	}
	var started struct{ Thread struct{ ID string } }
	if err := json.Unmarshal(result, &started); err != nil {
		return false, err
	}
	s.last++
	begin := map[string]any{"threadId": started.Thread.ID, "input": []any{map[string]string{"type": "text", "text": "run it"}}}
	if err := s.send(map[string]any{"id": s.last, "method": "turn/start", "params": begin}); err != nil {
		return false, err
	}
	for {
		m, err := s.read()
		switch {
		case err != nil:
			return asked, err
		case m.Error != nil:
			return asked, errors.New(m.Error.Message)
		case m.Method == "turn/completed":
			return asked, nil
		case m.Method != "" && m.ID != nil:
			asked = true
			if err := s.send(map[string]any{"id": *m.ID, "result": map[string]string{"decision": "decline"}}); err != nil {
				return asked, err
			}
		}
	}
}
