package crds

import (
	"encoding/json"
	"fmt"
	"strings"
)

// textWidth is the column at which descriptions are wrapped.
const textWidth = 80

// Text renders an explanation for a terminal, in the shape kubectl explain has.
// Fields that carry fields of their own, which only a recursive explanation has,
// are printed as a tree of names and types.
func (e *Explanation) Text() string {
	var b strings.Builder
	group, version, _ := strings.Cut(GroupVersion, "/")
	fmt.Fprintf(&b, "GROUP:      %s\nKIND:       %s\nVERSION:    %s\n\n", group, e.Kind, version)
	if len(e.Path) > 0 {
		fmt.Fprintf(&b, "FIELD: %s\n\n", e.Field.heading())
	}
	b.WriteString("DESCRIPTION:\n")
	e.Field.detail(&b, "    ")
	if len(e.Field.Fields) == 0 {
		return b.String()
	}
	b.WriteString("\nFIELDS:\n")
	if e.Field.isTree() {
		tree(&b, e.Field.Fields, "  ")
		return b.String()
	}
	for i, f := range e.Field.Fields {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "  %s\n", f.heading())
		f.detail(&b, "    ")
	}
	return b.String()
}

func (f *Field) heading() string {
	h := fmt.Sprintf("%s <%s>", f.Name, f.Type)
	if f.Required {
		h += " -required-"
	}
	return h
}

// detail writes the description and what is allowed, indented.
func (f *Field) detail(b *strings.Builder, indent string) {
	text := f.Description
	if text == "" {
		text = "<no description>"
	}
	for p := range strings.SplitSeq(text, "\n\n") {
		wrap(b, p, indent)
	}
	if len(f.Enum) > 0 {
		fmt.Fprintf(b, "%sone of: %s\n", indent, strings.Join(f.Enum, ", "))
	}
	if f.Bounds != "" {
		fmt.Fprintf(b, "%sallowed: %s\n", indent, f.Bounds)
	}
	if f.Default != "" && f.Default != "{}" {
		fmt.Fprintf(b, "%sdefault: %s\n", indent, f.Default)
	}
}

func (f *Field) isTree() bool {
	for _, sub := range f.Fields {
		if len(sub.Fields) > 0 {
			return true
		}
	}
	return false
}

func tree(b *strings.Builder, fields []Field, indent string) {
	for _, f := range fields {
		fmt.Fprintf(b, "%s%s\n", indent, f.heading())
		tree(b, f.Fields, indent+"  ")
	}
}

func wrap(b *strings.Builder, text, indent string) {
	column := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case column == 0:
			b.WriteString(indent)
			column = len(indent)
		case column+1+len(word) > textWidth:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	b.WriteString("\n")
}

func compact(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}
