// Package shellfacts reports what shell commands do from their text alone, for programs that ask line by line.
package shellfacts

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"agentctl.dev/agentctl/runner/policy/shell"
)

// maxLine bounds a line that holds a shell command. The analyser gives up on
// much less; the rest is room for escapes.
const maxLine = 1 << 20

// Facts is what is known about a shell command from its text alone.
type Facts struct {
	// Commands are the names of the simple commands that can run, outer before
	// inner; "?" cannot be resolved.
	Commands []string `json:"commands"`
	// Writes and Reads are paths as written, with ~ for the home folder, relative
	// ones joined to a literal cd before them, and patterns kept; "?" is unknown.
	Writes []string `json:"writes"`
	Reads  []string `json:"reads"`
	// Network is true if a command can open a connection.
	Network bool `json:"network"`
	// Dynamic is true if some of the commands or paths are known only at run time.
	Dynamic bool `json:"dynamic"`
	// Opaque is true if it is known which program a command runs, but not what that does.
	Opaque bool `json:"opaque"`
	// Details are the facts as rules read them.
	Details shell.Facts `json:"details"`
}

// factsOf analyses a shell command. It runs and opens nothing.
func factsOf(command string) Facts {
	f := shell.Parse(command, "")
	// An empty list is a list, for readers in other languages.
	f.Commands = append([]shell.Command{}, f.Commands...)
	f.Writes, f.Reads = append([]string{}, f.Writes...), append([]string{}, f.Reads...)
	out := Facts{
		Commands: make([]string, len(f.Commands)), Writes: f.Writes, Reads: f.Reads,
		Network: f.Network, Dynamic: f.Dynamic, Opaque: f.Opaque, Details: f,
	}
	for i, c := range f.Commands {
		out.Commands[i] = c.Name
	}
	return out
}

// Line is what came of one line of input: facts, or the error that kept
// the line from being read.
type Line struct {
	Facts
	Err error
}

// MarshalJSON writes the facts, or {error, dynamic: true}: what cannot be read
// may be anything.
func (l Line) MarshalJSON() ([]byte, error) {
	var v any = l.Facts
	if l.Err != nil {
		v = struct {
			Error   string `json:"error"`
			Dynamic bool   `json:"dynamic"`
		}{l.Err.Error(), true}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // a redirection stays readable
	err := enc.Encode(v)
	return b.Bytes(), err
}

// Read reads JSON strings, one a line, and emits the facts of each of these shell
// commands, in order. Idle is called before Read waits for more input, so that a caller
// which buffers can flush. A line that is not a JSON string yields an error line; an error
// is one of r, of emit, or the end of the context.
func Read(ctx context.Context, r io.Reader, emit func(Line) error, idle func() error) error {
	in := bufio.NewReaderSize(r, 64<<10)
	for ctx.Err() == nil {
		if waiting, _ := in.Peek(in.Buffered()); bytes.IndexByte(waiting, '\n') < 0 {
			if err := idle(); err != nil {
				return err
			}
		}
		line, long, err := readLine(in)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read the commands: %w", err)
		}
		end := err != nil
		if end && len(line) == 0 && !long {
			return idle()
		}
		if err := emit(answer(line, long)); err != nil {
			return err
		}
		if end {
			return idle()
		}
	}
	return context.Cause(ctx)
}

// readLine reads up to the next line feed. Of a line that is too long it keeps
// nothing.
func readLine(in *bufio.Reader) (line []byte, long bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxLine; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSuffix(line, []byte("\n")), long, err
		}
	}
}

func answer(line []byte, long bool) Line {
	text := bytes.TrimSpace(line)
	switch {
	case long:
		return Line{Err: fmt.Errorf("the line is longer than %d bytes", maxLine)}
	case len(text) == 0:
		return Line{Err: errors.New("the line is empty, not a JSON string")}
	case text[0] != '"':
		return Line{Err: errors.New("the line is not a JSON string")}
	case !utf8.Valid(text):
		// A decoder would replace what it cannot read, and we would judge another
		// command than the one that runs.
		return Line{Err: errors.New("the line is not UTF-8 text")}
	}
	var command string
	if err := json.Unmarshal(text, &command); err != nil {
		return Line{Err: fmt.Errorf("the line is not a JSON string: %w", err)}
	}
	return Line{Facts: factsOf(command)}
}
