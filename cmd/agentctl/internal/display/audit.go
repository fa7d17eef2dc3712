package display

import (
	"fmt"
	"strings"

	"agentctl.dev/agentctl/api/audit"
	verify "agentctl.dev/agentctl/runner/audit"
)

// verdicts are those of several runs, for programs.
type verdicts struct {
	OK    bool              `json:"ok"`
	Items []*verify.Verdict `json:"items"`
}

// WriteVerdict writes what a verification found: one object, or a list with several.
func WriteVerdict(s *Screen, format string, all []*verify.Verdict) error {
	if format == FormatJSON {
		if len(all) == 1 {
			return writeJSON(s, all[0])
		}
		list := verdicts{OK: true, Items: all}
		for _, v := range all {
			list.OK = list.OK && v.OK
		}
		return writeJSON(s, list)
	}
	for _, v := range all {
		s.print(verdict(s, v, ""))
	}
	return s.Err()
}

// verdict is one verdict in words, and behind it those of the runs below.
func verdict(s *Screen, v *verify.Verdict, indent string) string {
	var b strings.Builder
	own := len(v.Problems) == 0
	word := s.paint(green, "as it was written")
	if v.Kind == verify.KindReceipt {
		word = s.paint(green, "as it was signed")
	}
	if !own {
		word = s.paint(red, "CHANGED")
	}
	name := Line(v.Path)
	if v.Kind == verify.KindJournal && v.Run != "" {
		name = "run/" + Line(v.Run)
	}
	fmt.Fprintf(&b, "%s%s  %s\n", indent, s.paint(bold, name), word)
	line := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "%s  %-9s  %s\n", indent, what, fmt.Sprintf(format, args...))
	}
	for _, p := range v.Problems {
		line(s.paint(red, "problem  "), "%s", Line(p.String()))
	}
	if j := v.Journal; j != nil {
		state := "not closed"
		switch {
		case j.InProgress:
			state = "in progress"
		case j.Closed:
			state = "closed"
		}
		line("journal", "%s in %s, %s; %s", plural(j.Events, "event"), plural(int64(len(j.Files)), "file"), state, Line(j.Head))
		if j.Anchor > 0 {
			line("head", "from outside: that of event %d", j.Anchor)
		}
	}
	if n := v.Blobs; n != nil {
		line("blobs", "%s with the content of its name", plural(int64(n.Checked), "file"))
	}
	if l := v.AuditLog; l != nil && own {
		line("audit log", "%s, %s", plural(l.Records, "record"), Line(l.State))
	}
	if r := v.Receipt; r != nil {
		receipt(line, v, r)
	}
	for _, n := range v.Notes {
		line("note", "%s", Line(n))
	}
	for _, c := range v.Children {
		b.WriteString(verdict(s, c, indent+"  "))
	}
	return b.String()
}

// receipt adds what a receipt was compared with.
func receipt(line func(what, format string, args ...any), v *verify.Verdict, r *verify.ReceiptVerdict) {
	if !r.Signed {
		return
	}
	line("signed by", "%s", Line(r.KeyID))
	compared := "not compared"
	if r.Journal {
		compared = "compared"
	}
	line("run", "%s, its journal %s", Line(v.Run), compared)
	if r.Files > 0 {
		line("files", "%s with the content that the run has left", plural(int64(r.Files), "file"))
	}
}

// AuditRecords writes audit records, each when it is there.
type AuditRecords struct {
	s   *Screen
	csv *csvRecords
	buf []byte
}

// NewAuditRecords writes in one of the formats jsonl and csv.
func NewAuditRecords(s *Screen, format string) *AuditRecords {
	r := &AuditRecords{s: s}
	if format == FormatCSV {
		r.csv = newCSVRecords(s)
	}
	return r
}

// Write writes one record, as it is in the log.
func (r *AuditRecords) Write(record audit.Record) (err error) {
	if r.csv != nil {
		return r.csv.write(record)
	}
	if r.buf, err = audit.Append(r.buf[:0], record); err != nil {
		return err
	}
	_, err = r.s.Write(r.buf)
	return err
}

// End writes what is left.
func (r *AuditRecords) End() error {
	if r.csv != nil {
		return r.csv.end()
	}
	return r.s.Err()
}
