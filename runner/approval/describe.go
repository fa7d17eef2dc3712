package approval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/safetext"
)

// Describe shows everything about a call that waits for an answer; nothing is
// cut, and nothing in it can pass for words of ours.
func Describe(q message.Question) []byte {
	var b bytes.Buffer
	describe(&b, "call of", "", q)
	return b.Bytes()
}

func describe(b *bytes.Buffer, before, after string, q message.Question) {
	d := q.Decision
	fmt.Fprintf(b, "%s %s%s", before, safetext.Visible(q.Call.Tool, 0), after)
	if d.Risk != "" {
		fmt.Fprintf(b, "   risk %s%s", safetext.Visible(d.Risk, 0), riskText(d.Risk))
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
			label = fmt.Sprintf("argument %q", safetext.Visible(n, 0))
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

// writeIndented shows a value. Each line of a longer one has a bar in front, so
// that a text cannot pass for a line of ours.
func writeIndented(b *bytes.Buffer, indent, name, value string) {
	name, value = safetext.Visible(name, 0), safetext.Visible(value, safetext.Lines)
	if !strings.Contains(value, "\n") {
		fmt.Fprintf(b, "%s%s: %s\n", indent, name, value)
		return
	}
	fmt.Fprintf(b, "%s%s:\n", indent, name)
	for l := range strings.SplitSeq(value, "\n") {
		fmt.Fprintf(b, "%s  | %s\n", indent, l)
	}
}
