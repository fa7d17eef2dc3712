package coder

import (
	"cmp"
	"regexp"
	"strings"
)

// claude drives the program of Claude Code.
func claude() Driver {
	return Driver{
		Name: "claude", Program: "claude", Tested: "2.1.197", Install: "npm install -g @anthropic-ai/claude-code@2.1.197",
		API: Messages,
		Version: func(out string) string {
			v, _, _ := strings.Cut(strings.TrimSpace(out), " ")
			return version().FindString(v)
		},
		Flags: []Flag{
			{Name: "--max-turns", Value: regexp.MustCompile(`^[1-9][0-9]{0,2}$`)},
			{Name: "--effort", Value: regexp.MustCompile(`^(low|medium|high)$`)},
		},
		Start: startClaude, Read: func() Reader { return &claudeEvents{} },
	}
}

// startClaude names the tools that it may use: it would ask for all others, and nobody answers.
// Its mode without questions is refused to root, so it is not used.
func startClaude(t Task) Start {
	tools, mode := "Read,Glob,Grep,Edit,Write,Bash", "acceptEdits"
	if t.ReadOnly {
		tools, mode = "Read,Glob,Grep", "default"
	}
	args := []string{
		"-p", "--output-format", "stream-json", "--verbose", "--model", t.Model, "--strict-mcp-config", "--setting-sources", "user",
		"--permission-mode", mode, "--tools", tools, "--allowedTools", tools,
	}
	if t.Session != "" {
		args = append(args, "-r", t.Session)
	}
	args, stdin := ask(append(args, t.Args...), t.Prompt)
	return Start{Args: args, Stdin: stdin, Env: []string{
		"HOME=" + t.Home, "CLAUDE_CONFIG_DIR=" + t.Home + "/claude", "ANTHROPIC_BASE_URL=" + t.Endpoint, "ANTHROPIC_API_KEY=" + t.Token,
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1",
	}}
}

// claudeEvents reads lines {type, ...}.
type claudeEvents struct{ events }

// Line implements Reader.
func (r *claudeEvents) Line(line []byte) string {
	var e struct {
		Type      string `json:"type"`
		Subtype   string `json:"subtype"`
		SessionID string `json:"session_id"`
		IsError   bool   `json:"is_error"`
		Result    string `json:"result"`
		Turns     int    `json:"num_turns"`
		Denials   []any  `json:"permission_denials"`
		Message   struct {
			Content []struct {
				Type  string         `json:"type"`
				Name  string         `json:"name"`
				Input map[string]any `json:"input"`
			} `json:"content"`
		} `json:"message"`
	}
	if !Event(line, &e) || e.Type == "" {
		return ""
	}
	s := &r.said
	s.Began = true
	s.Session = cmp.Or(e.SessionID, s.Session)
	var did []string
	switch e.Type {
	case "assistant":
		s.Steps++
		for _, c := range e.Message.Content {
			if c.Type == "tool_use" {
				did = append(did, r.used(c.Name, c.Input))
			}
		}
	case "result":
		s.Done, s.Text, s.Denied = e.Subtype == "success" && !e.IsError, e.Result, s.Denied || len(e.Denials) > 0
		if e.Turns > 0 {
			s.Steps = e.Turns
		}
		if !s.Done {
			s.Text, s.Error = "", cmp.Or(e.Result, e.Subtype)
		}
	}
	return strings.Join(did, "; ")
}

// used takes a tool call of its model.
func (r *claudeEvents) used(tool string, input map[string]any) string {
	s := &r.said
	what := argument(input, "file_path")
	switch tool {
	case "Bash":
		what = argument(input, "command")
		s.Commands = Claim(s.Commands, what)
	case "Edit", "Write":
		s.Edits = Claim(s.Edits, what)
	}
	return toolProgress(strings.ToLower(tool), what)
}
