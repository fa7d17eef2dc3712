package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/util/jsonpath"
	kjson "sigs.k8s.io/json"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
)

// Formats with a text of their own behind them.
const (
	formatPath    = "jsonpath"
	formatColumns = "custom-columns"
)

// formatWords are the formats, as a message lists them. Go templates are not among
// them: they call methods by name, for which the linker keeps every method of every
// type, a quarter of the program.
var formatWords = []string{display.FormatText, display.FormatWide, display.FormatJSON, display.FormatYAML, display.FormatName, formatPath + "=", formatColumns + "="}

// format is the value of -o of verbs that show objects; the zero value is a table.
type format struct {
	kind    string
	path    *jsonpath.JSONPath
	columns []column
	text    string
}

// column is one of custom-columns.
type column struct {
	head string
	path *jsonpath.JSONPath
}

func formatFlag(cmd *cobra.Command, f *format) {
	f.kind = display.FormatText
	cmd.Flags().VarP(f, "output", "o", "format: a table, objects, names, or what paths find: "+strings.Join(formatWords, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return formatWords, cobra.ShellCompDirectiveNoFileComp
	}) // fails only for a flag that is not there
}

// String returns the value.
func (f *format) String() string { return f.text }

// Type names the flag's type in help.
func (f *format) Type() string { return "format" }

// Set checks and takes a value.
func (f *format) Set(value string) error {
	name, text, given := strings.Cut(value, "=")
	f.kind, f.text = name, value
	switch name {
	case display.FormatText, display.FormatWide, display.FormatJSON, display.FormatYAML, display.FormatName:
		if !given {
			return nil
		}
	case formatPath:
		if !given || text == "" {
			return fmt.Errorf("jsonpath needs a template, for example jsonpath='{.metadata.name}'")
		}
		var err error
		f.path, err = parsePath(text)
		return err
	case formatColumns:
		return f.setColumns(text)
	}
	return fmt.Errorf("must be one of %s", strings.Join(formatWords, ", "))
}

func (f *format) setColumns(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		head, path, ok := strings.Cut(part, ":")
		if !ok || head == "" || path == "" {
			return fmt.Errorf("custom-columns are HEAD:PATH, with commas between, for example NAME:.metadata.name,RISK:.spec.risk")
		}
		p, err := parsePath(path)
		if err != nil {
			return err
		}
		f.columns = append(f.columns, column{head, p})
	}
	return nil
}

// parsePath reads a JSONPath template; a bare path is one, too.
func parsePath(text string) (*jsonpath.JSONPath, error) {
	if !strings.Contains(text, "{") {
		text = "{." + strings.TrimPrefix(text, ".") + "}"
	}
	p := jsonpath.New("output").AllowMissingKeys(true)
	if err := p.Parse(text); err != nil {
		return nil, fmt.Errorf("%q is not a JSONPath: %w", text, err)
	}
	return p, nil
}

// structured reports whether the format shows objects as they are.
func (f *format) structured() bool {
	switch f.kind {
	case display.FormatJSON, display.FormatYAML, formatPath, formatColumns:
		return true
	}
	return false
}

// write writes one object or list in a structured format.
func (f *format) write(s *display.Screen, v any) error {
	switch f.kind {
	case display.FormatJSON:
		return display.WriteObject(s, v)
	case display.FormatYAML:
		return display.WriteYAML(s, v)
	}
	plain, err := plainObject(v)
	if err != nil {
		return err
	}
	if f.kind == formatPath {
		text, err := runPath(f.path, plain)
		if err != nil {
			return usagef("-o %s: %w", f.text, err)
		}
		return display.Foreign(s, text)
	}
	return f.writeColumns(s, plain)
}

func (f *format) writeColumns(s *display.Screen, v any) error {
	items := []any{v}
	if m, ok := v.(map[string]any); ok {
		if l, ok := m["items"].([]any); ok {
			items = l
		}
	}
	rows := make([][]string, 1, len(items)+1)
	for _, c := range f.columns {
		rows[0] = append(rows[0], c.head)
	}
	for _, item := range items {
		row := make([]string, len(f.columns))
		for i, c := range f.columns {
			text, err := runPath(c.path, item)
			if err != nil {
				return usagef("-o %s: column %s: %w", formatColumns, c.head, err)
			}
			row[i] = text
		}
		rows = append(rows, row)
	}
	return display.Columns(s, rows)
}

// plainObject makes maps and lists of a value: what a JSONPath walks over.
func plainObject(v any) (any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var plain any
	return plain, kjson.UnmarshalCaseSensitivePreserveInts(raw, &plain)
}

func runPath(p *jsonpath.JSONPath, v any) (text string, err error) {
	defer func() {
		// The walker was written for templates of friends.
		if r := recover(); r != nil {
			err = fmt.Errorf("the template cannot be used here: %v", r)
		}
	}()
	var b bytes.Buffer
	err = p.Execute(&b, v)
	return b.String(), err
}
