package display

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// FormatYAML is YAML, as manifests are.
const FormatYAML = "yaml"

// YAML is a value as YAML, whatever its texts hold.
func YAML(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return yaml.JSONToYAML(printable(text))
}

// printable escapes the characters that JSON allows and YAML does not.
func printable(text []byte) []byte {
	var b []byte
	done := 0
	for i, r := range string(text) {
		if r < 0x7f || r >= 0xa0 && r != 0xfeff && r != 0xfffe && r != 0xffff {
			continue
		}
		b = fmt.Appendf(append(b, text[done:i]...), `\u%04x`, r)
		done = i + utf8.RuneLen(r)
	}
	return append(b, text[done:]...)
}

// WriteYAML writes values, one document each.
func WriteYAML(s *Screen, values ...any) error {
	for i, v := range values {
		text, err := YAML(v)
		if err != nil {
			return err
		}
		if i > 0 {
			s.print("---\n")
		}
		s.print(s.foreign(string(text)))
	}
	return s.Err()
}

// Foreign writes a text that others have made. A pipe gets it as it is.
func Foreign(s *Screen, text string) error {
	if text != "" {
		s.print(endLine(s.foreign(text)))
	}
	return s.Err()
}

func (s *Screen) foreign(text string) string {
	if s.TTY {
		return Clean(text)
	}
	return text
}

// Row is a line of an ObjectTable.
type Row struct {
	// Cells as the server counts them out.
	Cells []any
	// Prefix is shown before the name, for example "agent.agentctl.dev/".
	Prefix    string
	Namespace string
	Labels    map[string]string
}

// ObjectTable is a table of objects with the columns of a server.
type ObjectTable struct {
	Columns []metav1.TableColumnDefinition
	Rows    []Row
	// Wide also shows the columns that are left out of a narrow table.
	Wide, NoHeaders, Namespaces, Labels bool
	// Widths of the columns so far: a table that grows line by line keeps them.
	Widths []int
}

// Write writes the table.
func (t *ObjectTable) Write(s *Screen) error {
	var rows [][]string
	if !t.NoHeaders {
		rows = append(rows, t.head())
	}
	for i := range t.Rows {
		rows = append(rows, t.row(&t.Rows[i]))
	}
	s.print(grid(rows, &t.Widths))
	return s.Err()
}

func (t *ObjectTable) shown(c *metav1.TableColumnDefinition) bool { return t.Wide || c.Priority == 0 }

func (t *ObjectTable) head() []string {
	var head []string
	if t.Namespaces {
		head = append(head, "NAMESPACE")
	}
	for i := range t.Columns {
		if t.shown(&t.Columns[i]) {
			head = append(head, strings.ToUpper(Line(t.Columns[i].Name)))
		}
	}
	if t.Labels {
		head = append(head, "LABELS")
	}
	return head
}

func (t *ObjectTable) row(r *Row) []string {
	var row []string
	if t.Namespaces {
		row = append(row, Line(r.Namespace))
	}
	first := true
	for i := range t.Columns {
		if !t.shown(&t.Columns[i]) || i >= len(r.Cells) {
			continue
		}
		cell := cellText(r.Cells[i])
		if first {
			cell, first = r.Prefix+cell, false
		}
		row = append(row, cell)
	}
	if t.Labels {
		row = append(row, LabelText(r.Labels))
	}
	return row
}

func cellText(v any) string {
	switch v := v.(type) {
	case nil:
		return "-"
	case string:
		return dash(Line(v))
	case float64:
		if v == float64(int64(v)) {
			return fmt.Sprint(int64(v))
		}
		return fmt.Sprint(v)
	case bool, int64, json.Number:
		return fmt.Sprint(v)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return Line(string(b))
}

// LabelText is a=b,c=d in the order of the names; "-" when there are none.
func LabelText(labels map[string]string) string {
	all := make([]string, 0, len(labels))
	for k, v := range labels {
		all = append(all, Line(k+"="+v))
	}
	slices.Sort(all)
	return dash(strings.Join(all, ","))
}

// Age is how long ago something was, in its largest unit.
func Age(now, then time.Time) string {
	if then.IsZero() {
		return "-"
	}
	return age(now.Sub(then))
}

// Columns writes rows under heads, without padding behind the last.
func Columns(s *Screen, rows [][]string) error {
	for _, row := range rows {
		for i := range row {
			row[i] = dash(Line(row[i]))
		}
	}
	s.print(table(rows))
	return s.Err()
}
