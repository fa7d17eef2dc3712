package message

import (
	"fmt"
	"strings"
)

// TodoStatus is how far an entry of a todo list is.
type TodoStatus string

// The states of an entry.
const (
	TodoPending    TodoStatus = "pending"
	TodoInProgress TodoStatus = "in_progress"
	TodoCompleted  TodoStatus = "completed"
	TodoCancelled  TodoStatus = "cancelled"
)

// Todo is an entry of the todo list that an agent keeps for a run.
type Todo struct {
	Content string     `json:"content"`
	Status  TodoStatus `json:"status"`
	// Priority is high, medium or low; "" is not said.
	Priority string `json:"priority,omitempty"`
}

// Todos is a todo list. Nil is none at all, and not the same as an empty list.
type Todos []Todo

// Text is the list as the model reads it, one line for each entry.
func (l Todos) Text() string {
	var b strings.Builder
	for i, t := range l {
		fmt.Fprintf(&b, "%d. [%s] %s", i+1, t.Status, t.Content)
		if t.Priority != "" {
			fmt.Fprintf(&b, " (%s)", t.Priority)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Summary counts the entries: 1 of 3 done.
func (l Todos) Summary() string {
	done := 0
	for _, t := range l {
		if t.Status == TodoCompleted || t.Status == TodoCancelled {
			done++
		}
	}
	return fmt.Sprintf("%d of %d done", done, len(l))
}
