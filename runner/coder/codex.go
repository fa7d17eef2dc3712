package coder

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// codex drives the program of Codex.
func codex() Driver {
	return Driver{
		Name: "codex", Program: "codex", Tested: "0.169.0", Install: "npm install -g @openai/codex@0.169.0",
		API: Responses,
		Version: func(out string) string {
			v, _ := strings.CutPrefix(strings.TrimSpace(out), "codex-cli ")
			return version().FindString(v)
		},
		Flags: []Flag{
			{Name: "-c", Value: regexp.MustCompile(`^(model_reasoning_effort="?(minimal|low|medium|high)"?|model_verbosity="?(low|medium|high)"?)$`)},
		},
		Start: startCodex, Read: func() Reader { return &codexEvents{} },
	}
}

// startCodex gives it a home of ours. In a sandbox it needs none of its own, which could not be
// built there: without one it asks its own to hold what it may write.
func startCodex(t Task) Start {
	mode := "workspace-write"
	switch {
	case t.Contained:
		mode = "danger-full-access"
	case t.ReadOnly:
		mode = "read-only"
	}
	args := []string{"exec", "--json", "-C", t.Dir, "-m", t.Model, "-s", mode, "--skip-git-repo-check", "--ignore-rules"}
	args = append(args, t.Args...)
	if t.Session != "" {
		args = append(args, "resume", t.Session)
	}
	args, stdin := ask(args, t.Prompt, "-")
	return Start{
		Args: args, Stdin: stdin,
		Env:   []string{"HOME=" + t.Home, "CODEX_HOME=" + t.Home + "/codex", "MODEL_TOKEN=" + t.Token},
		Files: map[string]string{"codex/config.toml": configCodex(t)},
	}
}

// configCodex is its configuration: the model at our server, asked with few retries, because
// what that refuses it refuses again.
func configCodex(t Task) string {
	window := ""
	if t.Window > 0 {
		window = fmt.Sprintf("model_context_window = %d\n", t.Window)
	}
	return `model_provider = "local"
check_for_update_on_startup = false
approval_policy = "never"
web_search = "disabled"
` + window + `
[analytics]
enabled = false

[model_providers.local]
name = "local"
base_url = ` + strconv.Quote(t.Endpoint+"/v1") + `
env_key = "MODEL_TOKEN"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
`
}

// codexEvents reads lines {type, ...}.
type codexEvents struct{ events }

// Line implements Reader.
func (r *codexEvents) Line(line []byte) string {
	var e struct {
		Type     string `json:"type"`
		ThreadID string `json:"thread_id"`
		Message  string `json:"message"`
		Error    struct {
			Message string `json:"message"`
		} `json:"error"`
		Item struct {
			Type     string `json:"type"`
			Text     string `json:"text"`
			Command  string `json:"command"`
			Status   string `json:"status"`
			ExitCode *int   `json:"exit_code"`
			Message  string `json:"message"`
			Changes  []struct {
				Path string `json:"path"`
			} `json:"changes"`
		} `json:"item"`
	}
	if !Event(line, &e) || e.Type == "" {
		return ""
	}
	s := &r.said
	s.Began = true
	switch e.Type {
	case "thread.started":
		s.Session = e.ThreadID
	case "turn.started":
		s.Done, s.Text = false, ""
	case "item.completed":
		switch e.Item.Type {
		case "agent_message":
			s.Text = e.Item.Text
		case "command_execution":
			s.Steps++
			s.Commands = Claim(s.Commands, e.Item.Command)
			s.Denied = s.Denied || e.Item.Status == "declined"
			return "bash " + Clip(e.Item.Command, 120)
		case "file_change":
			for _, c := range e.Item.Changes {
				s.Edits = Claim(s.Edits, c.Path)
			}
			return fmt.Sprintf("edit %d files", len(e.Item.Changes))
		case "error": // an unknown model, for example: it goes on
			return "error: " + Clip(e.Item.Message, 120)
		}
	case "turn.completed":
		s.Done = true
	case "turn.failed":
		s.Done, s.Error = false, e.Error.Message
	case "error": // also one that it recovers from: "Reconnecting 1/5"
		s.Error = e.Message
		return "error: " + Clip(e.Message, 120)
	}
	return ""
}
