package diagnose

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"agentctl.dev/agentctl/api/message"
)

// lspDiagnostic is a finding as the protocol has it: positions count from 0.
type lspDiagnostic struct {
	Range struct {
		Start struct{ Line, Character int }
	}
	Severity int
	Source   string
	Message  string
}

func (d *lspDiagnostic) finding(file string) message.Finding {
	f := message.Finding{File: file, Line: max(0, d.Range.Start.Line) + 1, Column: max(0, d.Range.Start.Character) + 1, Message: d.Message}
	if names := []string{"error", "warning", "info", "hint"}; d.Severity >= 1 && d.Severity <= len(names) {
		f.Severity = names[d.Severity-1]
	}
	if d.Source != "" {
		f.Message += " (" + d.Source + ")"
	}
	return f
}

// sizeOfOne is the memory, in bytes, of a finding without its texts.
const sizeOfOne = 64

// diagnostics are the findings of one file, the first mostOfOne.
type diagnostics []lspDiagnostic

// UnmarshalJSON implements json.Unmarshaler. A short text can hold very many findings: the
// rest of them is not read.
func (d *diagnostics) UnmarshalJSON(text []byte) error {
	in := json.NewDecoder(bytes.NewReader(text))
	begin, err := in.Token()
	if err != nil {
		return err
	}
	if begin == nil { // null
		*d = nil
		return nil
	}
	if begin != json.Delim('[') {
		return fmt.Errorf("the findings of a file are %v, and not a list", begin)
	}
	var all diagnostics
	for len(all) < mostOfOne && in.More() {
		var one lspDiagnostic
		if err := in.Decode(&one); err != nil {
			return err
		}
		all = append(all, one)
	}
	*d = all
	return nil
}

// shorten keeps of each text what a result can show. Secrets are removed from the whole
// text: half a secret is not known as one.
func (d diagnostics) shorten(text func(said string, most int) string) {
	for i := range d {
		d[i].Message = strings.Clone(text(d[i].Message, maxMessage))
		d[i].Source = strings.Clone(text(d[i].Source, maxMessage))
	}
}

// size is how much memory the findings take, in bytes.
func (d diagnostics) size() int {
	n := cap(d) * sizeOfOne
	for i := range d {
		n += len(d[i].Message) + len(d[i].Source)
	}
	return n
}
