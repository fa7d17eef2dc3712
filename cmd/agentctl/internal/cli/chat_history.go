package cli

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"agentctl.dev/agentctl/cmd/agentctl/internal/lineedit"
	"agentctl.dev/agentctl/runner/statedir"
)

// historyFile is where the lines of chats are kept.
func historyFile(state string) string { return filepath.Join(state, "chat_history") }

// keptLine is a line of which a part was pasted: it is as little a command when it comes back.
type keptLine struct {
	Text   string          `json:"text"`
	Pasted []lineedit.Span `json:"pasted"`
}

// readHistory reads lines: each is a JSON string, or a keptLine. Others are left out.
func readHistory(text []byte) (lines []lineedit.Line) {
	for raw := range strings.Lines(string(text)) {
		var typed string
		var kept keptLine
		switch {
		case json.Unmarshal([]byte(raw), &typed) == nil && typed != "":
			lines = append(lines, lineedit.Line{Text: typed})
		case json.Unmarshal([]byte(raw), &kept) == nil && kept.Text != "" && len(kept.Pasted) > 0:
			lines = append(lines, lineedit.Line(kept))
		}
	}
	return lines
}

// add keeps a line, if it is not the newest already.
func (h *history) add(line lineedit.Line) {
	if n := len(h.lines); n > 0 && h.lines[n-1].Same(line) {
		return
	}
	h.lines = append(h.lines, line)
	h.write(line)
}

// maxKept bounds a line that is kept: whole files are pasted as well.
const maxKept = 16 << 10

func (h *history) write(line lineedit.Line) {
	var entry any = line.Text
	if len(line.Pasted) > 0 {
		entry = keptLine(line)
	}
	text, err := json.Marshal(entry)
	if err != nil || h.file == nil || len(text) > maxKept {
		return
	}
	_, _ = h.file.Write(append(text, '\n')) // a chat goes on without its history
}

func (h *history) close() {
	if h.file != nil {
		_ = h.file.Close() // as above
	}
}

// history are the lines of earlier chats.
type history struct {
	file  *os.File
	lines []lineedit.Line
}

// The limits of what is kept: lines, and bytes of the file.
const (
	maxHistory      = 1000
	maxHistoryBytes = 4 << 20
)

// openHistory reads what was kept. What cannot be read is an error that ends no chat.
func openHistory(state string) (*history, error) {
	h := &history{}
	if err := os.MkdirAll(state, 0o700); err != nil {
		return h, err
	}
	path := historyFile(state)
	text, err := statedir.ReadFile(path, maxHistoryBytes)
	if err == nil {
		h.lines = readHistory(text)
	}
	flags := os.O_CREATE | os.O_APPEND | os.O_WRONLY
	if errors.Is(err, statedir.ErrTooLarge) || len(h.lines) > maxHistory {
		h.lines = h.lines[max(0, len(h.lines)-maxHistory/2):]
		flags |= os.O_TRUNC
	}
	f, err := statedir.OpenFile(path, flags)
	if err != nil {
		return h, err
	}
	h.file = f
	if flags&os.O_TRUNC != 0 {
		for _, l := range h.lines {
			h.write(l)
		}
	}
	return h, f.Chmod(0o600)
}
