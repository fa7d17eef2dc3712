package loop

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"agentctl.dev/agentctl/api/message"
)

// quoteLimit is how many characters of a result, of arguments and of the task a
// summary is made of.
const quoteLimit = 2000

// The messages of people take at most 1/toldPart of a record.
const toldPart = 4

// told returns the newest of what people have said to the run. It precedes the
// record: nothing in the record is an instruction.
func told(messages []*message.Message, limit int64) (lines []string) {
	for _, m := range slices.Backward(messages) {
		if !byPeople(m) {
			continue
		}
		line := "- " + quote(m.Text()) + "\n"
		if limit -= int64(len(line)); limit < 0 {
			break
		}
		lines = append(lines, line)
	}
	slices.Reverse(lines)
	return lines
}

// entry is a line of the record that is summarised.
type entry struct {
	head, text string
	result     bool
}

func (e *entry) size() int64 { return int64(len(e.head) + len(e.text) + 1) }

// record writes the text that a summary will replace, in at most so many bytes:
// the oldest results are dropped first, then the oldest of the rest. The id,
// which nothing in the record can know, marks where it begins and ends.
func record(c *cut, id string, limit int64) string {
	entries := entriesOf(c.drop)
	var b strings.Builder
	fmt.Fprintf(&b, "The task of the agent:\n%s\n\n", quote(c.first.Text()))
	if c.earlier != nil {
		fmt.Fprintf(&b, "Earlier notes:\n%s\n\n", c.earlier.Text())
	}
	if told := told(c.drop, limit/toldPart); len(told) > 0 {
		fmt.Fprintf(&b, "What people have told the agent since, in their words:\n%s\n", strings.Join(told, ""))
	}
	left := shorten(entries, limit-int64(b.Len()))
	fmt.Fprintf(&b, "BEGIN OF THE RECORD %s\n", id)
	if out := len(entries) - len(left); out > 0 {
		fmt.Fprintf(&b, "[the %d oldest entries are left out]\n", out)
	}
	for i := range left {
		b.WriteString(left[i].head)
		b.WriteString(left[i].text)
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "END OF THE RECORD %s\n\nWrite the notes now.", id)
	return b.String()
}

// shorten leaves out the texts of the oldest results, then the oldest entries,
// until the rest fits.
func shorten(entries []entry, limit int64) []entry {
	var total int64
	for i := range entries {
		total += entries[i].size()
	}
	for i := range entries {
		if total <= limit {
			return entries
		}
		if e := &entries[i]; e.result {
			total -= e.size()
			e.text = "[left out]"
			total += e.size()
		}
	}
	for len(entries) > 1 && total > limit {
		total -= entries[0].size()
		entries = entries[1:]
	}
	return entries
}

func entriesOf(messages []*message.Message) (entries []entry) {
	for _, m := range messages {
		for i := range m.Parts {
			switch p := &m.Parts[i]; {
			case p.Ignored:
			case p.Type == message.PartText && p.Text != "":
				text := p.Text
				if byPeople(m) { // people may paste whole files
					text = quote(text)
				}
				entries = append(entries, entry{head: "[" + speaker(m, p) + "] ", text: text})
			case p.File != nil:
				entries = append(entries, entry{head: "[" + speaker(m, p) + "] ", text: sentence("[file %s %s]", p.File.Filename, p.File.Mime)})
			case p.Tool != nil:
				entries = append(entries, callEntries(p.Tool)...)
			}
		}
	}
	return entries
}

func speaker(m *message.Message, p *message.Part) string {
	switch {
	case m.Role == message.RoleAssistant:
		return "agent"
	case p.Synthetic:
		return "runner"
	}
	return "user"
}

// callEntries are the call and what came of it.
func callEntries(c *message.ToolPart) []entry {
	entries := []entry{{head: sentence("[call %s] ", c.Tool), text: quote(c.Raw)}}
	switch {
	case c.Result == nil:
		return entries
	case c.Compacted != 0:
		return append(entries, entry{head: sentence("[result of %s] ", c.Tool), text: sentence("[left out; it can be read as blob:%s]", c.Result.Blob)})
	}
	head := sentence("[result of %s] ", c.Tool)
	if c.Result.Failed() {
		head = sentence("[result of %s: failed, %s] ", c.Tool, c.Result.Code)
	}
	entries = append(entries, entry{head: head, text: quote(c.Result.Text), result: true})
	for _, f := range c.Result.Attachments {
		entries = append(entries, entry{head: sentence("[attached by %s] ", c.Tool), text: sentence("%s (%s); read %s to see it again", f.Filename, f.Mime, f.URL)})
	}
	return entries
}

// quote cuts a long text in its middle: the head shows what it is, and errors
// come last.
func quote(text string) string {
	n := utf8.RuneCountInString(text)
	if n <= quoteLimit {
		return text
	}
	return firstRunes(text, quoteLimit/2) + sentence("\n[… %d characters left out …]\n", n-quoteLimit) + lastRunes(text, quoteLimit/2)
}

func firstRunes(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}

func lastRunes(text string, n int) string {
	i := len(text)
	for ; n > 0 && i > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(text[:i])
		i -= size
	}
	return text[i:]
}
