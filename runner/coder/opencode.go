package coder

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// opencode drives the program of OpenCode.
func opencode() Driver {
	return Driver{
		Name: "opencode", Program: "opencode", Tested: "1.18.33", Install: "npm install -g opencode-ai@1.18.33",
		API:     Chat,
		Version: func(out string) string { return version().FindString(strings.TrimSpace(out)) },
		Flags: []Flag{
			{Name: "--variant", Value: regexp.MustCompile(`^[a-z]{1,20}$`)},
			{Name: "--agent", Value: regexp.MustCompile(`^(build|plan)$`)},
			{Name: "--title", Value: regexp.MustCompile(`^[^-\x00][^\x00]{0,99}$`)},
			{Name: "--thinking"},
		},
		Start: startOpencode, Read: func() Reader { return &opencodeEvents{} },
	}
}

// withoutPackages are files in its folder of configuration that say that nothing is to be
// installed there. It would fetch the package for plugins with npm at each start, which no
// sandbox allows, and run none.
func withoutPackages() map[string]string {
	return map[string]string{
		"config/opencode/node_modules/README.md": "Nothing is installed here.\n",
		"config/opencode/package-lock.json":      `{"lockfileVersion":3,"packages":{"":{"dependencies":{"@opencode-ai/plugin":"*"}}}}`,
	}
}

// startOpencode gives it a configuration of ours and nothing of the folder's: the folder .opencode
// of a repository would install packages and run plugins.
func startOpencode(t Task) Start {
	args := []string{"run", "--format", "json", "--pure", "--dir", t.Dir, "-m", "local/model"}
	if t.Session != "" {
		args = append(args, "-s", t.Session)
	}
	if !slices.Contains(t.Args, "--title") { // it would ask its model for one
		args = append(args, "--title", "agentctl")
	}
	args, stdin := ask(append(args, t.Args...), t.Prompt)
	return Start{Args: args, Stdin: stdin, Files: withoutPackages(), Env: []string{
		"HOME=" + t.Home, "XDG_CONFIG_HOME=" + t.Home + "/config", "XDG_DATA_HOME=" + t.Home + "/data",
		"XDG_STATE_HOME=" + t.Home + "/state", "XDG_CACHE_HOME=" + t.Home + "/cache",
		"OPENCODE_CONFIG_CONTENT=" + configOpencode(t), "OPENCODE_DISABLE_PROJECT_CONFIG=1", "OPENCODE_DISABLE_AUTOUPDATE=1",
		"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_SHARE=1",
	}}
}

// configOpencode is its configuration: the model at our server, and all that the sandbox allows
// anyway, because a question would have nobody to answer it.
func configOpencode(t Task) string {
	permission := map[string]string{"*": "allow", "external_directory": "deny", "webfetch": "deny", "websearch": "deny", "question": "deny"}
	if t.ReadOnly {
		permission["edit"], permission["bash"] = "deny", "deny"
	}
	model := map[string]any{"name": t.Model, "tool_call": true}
	if t.Window > 0 {
		model["limit"] = map[string]int64{"context": t.Window, "output": max(t.Output, 1000)}
	}
	b, _ := json.Marshal(map[string]any{ // strings and numbers only
		"model": "local/model", "small_model": "local/model", "share": "disabled", "autoupdate": false, "permission": permission,
		"provider": map[string]any{"local": map[string]any{
			"npm": "@ai-sdk/openai-compatible", "options": map[string]string{"baseURL": t.Endpoint + "/v1", "apiKey": t.Token},
			"models": map[string]any{"model": model},
		}},
	})
	return string(b)
}

// opencodeEvents reads lines {type, timestamp, sessionID, part}.
type opencodeEvents struct {
	events
	// text is the newest text of the step.
	text string
}

// Line implements Reader.
func (r *opencodeEvents) Line(line []byte) string {
	var e struct {
		Type      string `json:"type"`
		SessionID string `json:"sessionID"`
		Part      struct {
			Text      string `json:"text"`
			Synthetic bool   `json:"synthetic"`
			Reason    string `json:"reason"`
			Tool      string `json:"tool"`
			State     struct {
				Status string         `json:"status"`
				Title  string         `json:"title"`
				Input  map[string]any `json:"input"`
				Error  string         `json:"error"`
			} `json:"state"`
		} `json:"part"`
		Error struct {
			Name string `json:"name"`
			Data struct {
				Message string `json:"message"`
			} `json:"data"`
		} `json:"error"`
	}
	if !Event(line, &e) || e.Type == "" {
		return ""
	}
	s := &r.said
	s.Began = true
	s.Session = cmp.Or(e.SessionID, s.Session)
	switch e.Type {
	case "step_start":
		s.Steps++
		s.Done, s.Text, r.text = false, "", ""
	case "text":
		if !e.Part.Synthetic {
			r.text = e.Part.Text
		}
	case "tool_use":
		return r.used(e.Part.Tool, e.Part.State.Title, e.Part.State.Error, e.Part.State.Input)
	case "step_finish":
		if e.Part.Reason == "stop" {
			s.Done, s.Text = true, r.text
		}
	case "error":
		s.Error = e.Error.Name
		if m := e.Error.Data.Message; m != "" {
			s.Error += ": " + m
		}
		return "error: " + s.Error
	}
	return ""
}

// used takes a tool call of its model.
func (r *opencodeEvents) used(tool, title, failed string, input map[string]any) string {
	s := &r.said
	what := title
	switch tool {
	case "bash":
		what = argument(input, "command")
		s.Commands = Claim(s.Commands, what)
	case "edit", "write":
		what = argument(input, "filePath")
		s.Edits = Claim(s.Edits, what)
	}
	if strings.Contains(failed, "rejected permission") || strings.Contains(failed, "prevents you from using") {
		s.Denied = true
	}
	if failed != "" {
		what += " (failed)"
	}
	return toolProgress(tool, what)
}
