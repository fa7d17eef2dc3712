// Package floor is what any runner must at least pay: a conversation by plain net/http and os/exec.
//
// It is a program of its own (program), so that what the benchmark links to
// measure other things weighs nothing here.
package floor

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
)

// Prompt begins every conversation, of both sides.
const Prompt = "Append the numbers from one up, one command each."

// Message is the floor's idea of the wire format: only what the
// conversation needs.
type (
	Message struct {
		Role       string `json:"role"`
		Content    string `json:"content"`
		ToolCalls  []call `json:"tool_calls,omitempty"`
		ToolCallID string `json:"tool_call_id,omitempty"`
	}
	call struct {
		Index    int    `json:"index"`
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	}
)

// bashTool describes the one tool, so that both sides send about the same.
const bashTool = `[{"type":"function","function":{"name":"bash","description":"Run a command.","parameters":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}}}]`

// Run has the whole conversation that its arguments name: no journal, no policy, no isolation. It
// encodes the history anew for each request, as a plain program does.
func Run(ctx context.Context, args []string, stdout io.Writer) error {
	if len(args) == 3 && args[0] == "-many" {
		return runMany(ctx, args[1], args[2], stdout)
	}
	if len(args) != 2 {
		return errors.New("usage: floor URL FOLDER | floor -many NUMBER URL")
	}
	text, err := converse(ctx, args[0], args[1])
	if err == nil {
		_, err = fmt.Fprintln(stdout, text)
	}
	return err
}

// runMany has one conversation that warms everything up, then many at once.
func runMany(ctx context.Context, many, url string, stdout io.Writer) error {
	number, err := strconv.Atoi(many)
	if err != nil {
		return err
	}
	if _, err := converse(ctx, url, "."); err != nil {
		return err
	}
	debug.FreeOSMemory()
	res, err := http.DefaultClient.Get(url + "/idle") //nolint:noctx // the whole program is bounded
	if err != nil {
		return err
	}
	_ = res.Body.Close() // empty
	errs := make([]error, number)
	var group sync.WaitGroup
	for i := range number {
		group.Go(func() { _, errs[i] = converse(ctx, url, ".") })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, number, "ended")
	return err
}

// converse returns the final answer.
func converse(ctx context.Context, url, dir string) (string, error) {
	history := []Message{{Role: "user", Content: Prompt}}
	for {
		answer, err := ask(ctx, url, history)
		if err != nil {
			return "", err
		}
		history = append(history, answer)
		if len(answer.ToolCalls) == 0 {
			return answer.Content, nil
		}
		for _, call := range answer.ToolCalls {
			var in struct {
				Command string `json:"command"`
			}
			if err := json.Unmarshal([]byte(call.Function.Arguments), &in); err != nil {
				return "", fmt.Errorf("arguments of %s: %w", call.ID, err)
			}
			cmd := exec.CommandContext(ctx, shell(), "-c", in.Command)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if err != nil {
				return "", fmt.Errorf("%s: %w", in.Command, err)
			}
			history = append(history, Message{Role: "tool", ToolCallID: call.ID, Content: string(out)})
		}
	}
}

// shell is the shell that the bash tool uses: bash, or sh where there is none.
var shell = sync.OnceValue(func() string {
	for _, name := range []string{"bash", "sh"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return "/bin/sh"
})

func ask(ctx context.Context, url string, history []Message) (Message, error) {
	answer := Message{Role: "assistant"}
	body, err := json.Marshal(map[string]any{
		"model": "bench", "stream": true, "messages": history, "tools": json.RawMessage(bashTool),
	})
	if err != nil {
		return answer, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return answer, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer, err
	}
	defer res.Body.Close()
	var text strings.Builder
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		if err := answer.Add([]byte(data), &text); err != nil {
			return answer, err
		}
	}
	answer.Content = text.String()
	return answer, lines.Err()
}

// Add folds one chunk into the answer, whose text is collected apart.
func (m *Message) Add(data []byte, text *strings.Builder) error {
	var chunk struct {
		Choices []struct {
			Delta Message `json:"delta"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(data, &chunk); err != nil {
		return fmt.Errorf("chunk: %w", err)
	}
	for _, c := range chunk.Choices {
		text.WriteString(c.Delta.Content)
		for _, d := range c.Delta.ToolCalls {
			if d.ID != "" {
				m.ToolCalls = append(m.ToolCalls, d)
			} else if n := len(m.ToolCalls); n > 0 {
				m.ToolCalls[n-1].Function.Arguments += d.Function.Arguments
			}
		}
	}
	return nil
}
