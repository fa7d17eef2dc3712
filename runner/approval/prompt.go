package approval

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/message"
)

// lineLimit bounds an answer.
const lineLimit = 4096

// Terminal is where a person is asked. It has one reader for as long as it
// lives; a line that was typed before a question was shown is no answer to it.
type Terminal struct {
	in  io.Reader
	out io.Writer
	// flush throws away what was typed and not yet read; may be nil.
	flush func()

	start sync.Once
	lines chan string
	// closed ends the reader once its read returns.
	closed chan struct{}
	end    sync.Once
	ask    chan struct{} // holds one token: questions are asked one by one
}

// NewTerminal asks on out and reads answers from in. The reader ends with in;
// flush, if given, throws away what was typed before a question.
func NewTerminal(in io.Reader, out io.Writer, flush func()) *Terminal {
	t := &Terminal{in: in, out: out, flush: flush, lines: make(chan string), closed: make(chan struct{}), ask: make(chan struct{}, 1)}
	t.ask <- struct{}{}
	return t
}

// Close lets the reader go. A read of the terminal that is under way cannot be
// taken back: it ends with the input.
func (t *Terminal) Close() { t.end.Do(func() { close(t.closed) }) }

// read hands over lines for as long as there is input. A read cannot be taken
// back, so the goroutine outlives a question and ends with its input.
func (t *Terminal) read() {
	defer close(t.lines)
	r := bufio.NewReaderSize(t.in, lineLimit)
	for {
		raw, err := r.ReadSlice('\n')
		text := strings.TrimSpace(string(raw))
		if errors.Is(err, bufio.ErrBufferFull) {
			// A line that long is no answer.
			text = "?"
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = r.ReadSlice('\n')
			}
		}
		// A last line without its end was not finished: it is no answer either.
		if err != nil {
			return
		}
		select {
		case t.lines <- text:
		case <-t.closed:
			return
		}
	}
}

// drop forgets what was typed before the question.
func (t *Terminal) drop() {
	if t.flush != nil {
		t.flush()
	}
	for {
		select {
		case _, ok := <-t.lines:
			if !ok {
				return
			}
		default:
			return
		}
	}
}

// next waits for a line.
func (t *Terminal) next(ctx context.Context) (string, error) {
	t.start.Do(func() { go t.read() })
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case text, ok := <-t.lines:
		if !ok {
			return "", io.EOF
		}
		return text, nil
	}
}

// Prompt asks a person on a terminal.
type Prompt struct {
	terminal *Terminal
	timeout  time.Duration
	// memory of what was approved for always; nil remembers nothing.
	memory *Memory
}

var errLate = errors.New("nobody answered in time")

// Ask shows the whole call and waits for an answer until the deadline.
func (p *Prompt) Ask(ctx context.Context, q message.Question) (message.Answer, error) {
	t := p.terminal
	// Waiting for another question to be answered does not count.
	select {
	case <-ctx.Done():
		return message.Answer{}, context.Cause(ctx)
	case <-t.ask:
	}
	defer func() { t.ask <- struct{}{} }()
	if p.memory.Covers(q) { // by the answer to the question before
		return recalled(q), nil
	}
	inner, cancel := context.WithTimeoutCause(ctx, p.timeout, errLate)
	defer cancel()
	t.drop()
	if _, err := t.out.Write(p.question(q)); err != nil {
		return message.Answer{}, fmt.Errorf("ask about call %s: %w", q.Call.ID, err)
	}
	a, err := p.answer(inner, p.memory != nil && rememberable(q))
	elsewhere, ok := errors.AsType[elsewhereError](err)
	switch {
	case err == nil && a.Scope == message.Always:
		p.memory.add(q.Decision.Always)
		fmt.Fprint(t.out, "remembered for this run; to keep it, add this policy:\n"+Visible(Policy(q.Decision.Always), true))
		return a, nil
	case err == nil:
		return a, nil
	case ok:
		fmt.Fprintf(t.out, "\n%s by %s\n", elsewhere.answer.State, Visible(elsewhere.answer.By, false))
	case errors.Is(err, errLate):
		fmt.Fprintln(t.out, "\nno answer in time: the call is not run")
		return message.Answer{State: message.Expired, By: "terminal", Reason: "nobody answered in time"}, nil
	case errors.Is(err, io.EOF):
		return message.Answer{State: message.Unanswered, By: "terminal", Reason: "nobody is there to approve the call"}, nil
	}
	return message.Answer{}, fmt.Errorf("ask about call %s: %w", q.Call.ID, err)
}

func (p *Prompt) answer(ctx context.Context, always bool) (message.Answer, error) {
	for {
		text, err := p.terminal.next(ctx)
		if err != nil {
			return message.Answer{}, err
		}
		word, rest, _ := strings.Cut(text, " ")
		switch strings.ToLower(word) {
		case "y", "yes":
			if rest == "" {
				return message.Answer{State: message.Approved, By: "terminal"}, nil
			}
		case "a", "always":
			if rest == "" && always {
				return message.Answer{State: message.Approved, By: "terminal", Scope: message.Always}, nil
			}
		case "", "n", "no":
			if rest == "" {
				return message.Answer{State: message.Rejected, By: "terminal"}, nil
			}
		case "r":
			reason := strings.TrimSpace(rest)
			if reason == "" {
				fmt.Fprint(p.terminal.out, "reason, for the model to read: ")
				if reason, err = p.terminal.next(ctx); err != nil {
					return message.Answer{}, err
				}
			}
			return message.Answer{State: message.Rejected, By: "terminal", Reason: reason}, nil
		}
		if always {
			fmt.Fprint(p.terminal.out, "answer y, a, n or r: ")
		} else {
			fmt.Fprint(p.terminal.out, "answer y, n or r: ")
		}
	}
}

// question shows everything about a call, and what can be answered.
func (p *Prompt) question(q message.Question) []byte {
	var b bytes.Buffer
	b.WriteByte('\n')
	describe(&b, "Allow this call of", "?", q)
	always := ""
	if p.memory != nil && rememberable(q) {
		always = "   [a] always, in this run"
	}
	fmt.Fprintf(&b, "[y] once%s   [n] no, the default   [r] no, with a reason   (within %s): ", always, p.timeout)
	return b.Bytes()
}

// Describe shows everything about a call that waits for an answer; nothing is
// cut, and nothing in it can pass for words of ours.
func Describe(q message.Question) []byte {
	var b bytes.Buffer
	describe(&b, "call of", "", q)
	return b.Bytes()
}

func describe(b *bytes.Buffer, before, after string, q message.Question) {
	d := q.Decision
	fmt.Fprintf(b, "%s %s%s", before, Visible(q.Call.Tool, false), after)
	if d.Risk != "" {
		fmt.Fprintf(b, "   risk %s%s", Visible(d.Risk, false), riskText(d.Risk))
	}
	b.WriteByte('\n')
	args := q.Call.Args
	if len(d.Args) > 0 {
		args = d.Args
	}
	writeFields(b, args)
	if d.Message != "" {
		writeField(b, "why", d.Message)
	}
	if d.Rule != "" {
		writeField(b, "rule", d.Rule)
	}
	if len(d.Facts) > 0 && string(d.Facts) != "{}" {
		b.WriteString("  facts\n")
		writeFacts(b, d.Facts)
	}
	if d.Hash != "" {
		writeField(b, "hash", d.Hash)
	}
	switch {
	case rememberable(q):
		writeField(b, "always", Summary(d.Always))
	case d.Once != "":
		writeField(b, "only once", d.Once)
	}
}

func riskText(risk string) string {
	switch risk {
	case "R0":
		return ", reads"
	case "R1":
		return ", writes in the workspace"
	case "R2":
		return ", runs programs or reaches outside"
	case "R3":
		return ", cannot be undone"
	}
	return ""
}

// writeFields shows each argument by itself, texts as they are.
func writeFields(b *bytes.Buffer, raw json.RawMessage) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		writeField(b, "arguments", string(raw))
		return
	}
	names := make([]string, 0, len(fields))
	for n := range fields {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		var text string
		if json.Unmarshal(fields[n], &text) != nil {
			text = plain(fields[n])
		}
		label := n
		if !ordinary().MatchString(n) || slices.Contains(ours, n) {
			label = fmt.Sprintf("argument %q", Visible(n, false))
		}
		writeField(b, label, text)
	}
}

// ours are the labels of our own lines, which no argument may pass for.
var ours = []string{"why", "rule", "facts", "hash", "arguments", "always", "only once"}

var ordinary = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)
})

// plain writes a value without the escapes that JSON does not need: a person
// reads what the tool will read.
func plain(raw json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return string(raw)
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return string(raw)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// writeField shows a value of the call.
func writeField(b *bytes.Buffer, name, value string) { writeIndented(b, "  ", name, value) }
