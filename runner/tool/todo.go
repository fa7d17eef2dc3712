package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"agentctl.dev/agentctl/api/message"
)

// The todo list is part of the run: it is folded from the results of these calls, so
// that a resume, a replay and every reader of the run have it.

// todoWrites answers calls that replace the todo list.
func todoWrites() HostTool { return HostTool{Tool: "todowrite", Answer: writeTodos} }

// todoReads answers calls that read it.
func todoReads() HostTool { return HostTool{Tool: "todoread", Answer: readTodos} }

// writeTodos keeps a whole new list, and shows it as it is now.
func writeTodos(_ context.Context, h Host, call message.ToolCall) (*message.ToolResult, error) {
	var args struct {
		Todos message.Todos `json:"todos"`
	}
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return nil, err
	}
	if wrong := checkTodos(args.Todos); wrong != "" {
		return h.Result(Reply{Output: wrong + "; the list is as it was", Failed: true, Code: message.CodeTool})
	}
	result, err := h.Result(todosReply(args.Todos))
	if err != nil {
		return nil, err
	}
	result.Todos = append(message.Todos{}, args.Todos...)
	return result, nil
}

func readTodos(_ context.Context, h Host, _ message.ToolCall) (*message.ToolResult, error) {
	return h.Result(todosReply(h.Todos()))
}

func todosReply(list message.Todos) Reply {
	if len(list) == 0 {
		return Reply{Output: "(the todo list is empty)", Title: "empty"}
	}
	return Reply{Output: list.Text(), Title: list.Summary()}
}

// checkTodos returns what is wrong with a list besides its schema, "" if nothing is.
func checkTodos(list message.Todos) string {
	var working []string
	for i, t := range list {
		if strings.TrimSpace(t.Content) == "" {
			return fmt.Sprintf("entry %d has no content", i+1)
		}
		if t.Status == message.TodoInProgress {
			working = append(working, fmt.Sprintf("%d", i+1))
		}
	}
	if len(working) > 1 {
		return fmt.Sprintf("entries %s are in_progress: at most one may be", strings.Join(working, ", "))
	}
	return ""
}
