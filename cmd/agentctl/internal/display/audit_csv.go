package display

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/audit"
)

// FormatCSV is comma-separated values (RFC 4180) with a header.
const FormatCSV = "csv"

// csvRecords writes audit records as a table with one column for each field of any of them.
type csvRecords struct {
	out     *csv.Writer
	columns []string
	begun   bool
}

// leading are the columns of every record.
var leading = []string{"timestamp", "event_type", "seq", "run", "agent", "parent.run", "parent.call", "parent.root"}

func newCSVRecords(s *Screen) *csvRecords {
	c := &csvRecords{out: csv.NewWriter(s), columns: slices.Clone(leading)}
	for _, k := range audit.Kinds() {
		c.columns = addColumns(c.columns, "", reflect.TypeOf(k.Details))
	}
	return c
}

// addColumns adds the fields of a type, with the fields of what is in them behind a dot.
func addColumns(columns []string, in string, t reflect.Type) []string {
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || name == "" {
			continue
		}
		of := f.Type
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		if of.Kind() == reflect.Struct {
			columns = addColumns(columns, in+name+".", of)
		} else if !slices.Contains(columns, in+name) {
			columns = append(columns, in+name)
		}
	}
	return columns
}

func (c *csvRecords) write(r audit.Record) error {
	if !c.begun {
		if err := c.out.Write(c.columns); err != nil {
			return err
		}
		c.begun = true
	}
	cells := map[string]string{}
	for _, part := range []struct {
		in    string
		value any
	}{{"", audit.Record{Timestamp: r.Timestamp, EventType: r.EventType, Seq: r.Seq, Run: r.Run, Agent: r.Agent, Parent: r.Parent}}, {"", r.Details}} {
		b, err := json.Marshal(part.value)
		if err != nil {
			return err
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(b, &fields); err != nil {
			return err
		}
		flatten(cells, "", fields)
	}
	row := make([]string, len(c.columns))
	for i, name := range c.columns {
		row[i] = cells[name]
	}
	return c.out.Write(row)
}

// flatten fills the cells of an object. What is absent, and null, is an empty cell; the values
// of a list are separated by semicolons.
func flatten(cells map[string]string, in string, fields map[string]json.RawMessage) {
	for name, raw := range fields {
		var object map[string]json.RawMessage
		var list []string
		var text string
		switch {
		case string(raw) == "null":
		case json.Unmarshal(raw, &object) == nil:
			flatten(cells, in+name+".", object)
		case json.Unmarshal(raw, &list) == nil:
			cells[in+name] = harmless(strings.Join(list, "; "))
		case json.Unmarshal(raw, &text) == nil:
			cells[in+name] = harmless(text)
		default:
			cells[in+name] = string(raw)
		}
	}
}

// harmless keeps a text from being a formula where the table is opened in a spreadsheet.
func harmless(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}

func (c *csvRecords) end() error {
	if !c.begun {
		if err := c.out.Write(c.columns); err != nil {
			return err
		}
	}
	if c.out.Flush(); c.out.Error() != nil {
		return fmt.Errorf("write the records: %w", c.out.Error())
	}
	return nil
}
