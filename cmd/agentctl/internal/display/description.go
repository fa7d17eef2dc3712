package display

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/view"
)

// Description is an object as describe shows it.
type Description struct {
	Kind, APIVersion, Name, Namespace string
	// Place is the folder of what is not an object of a control plane; it has no
	// namespace, labels and annotations.
	Place               string
	Labels, Annotations map[string]string
	Created             time.Time
	// StartedBy is the identity that began a run, or "".
	StartedBy string
	// Deleting says that the object is on its way out.
	Deleting   bool
	Finalizers []string
	// Spec and Status are maps; the status without its conditions.
	Spec, Status any
	Conditions   []DescribedCondition
	// Run is what became of a run of the state folder; nil for objects, and where it cannot be read.
	Run *view.Run
	// Events are what happened to the object, the latest at the end; nil: no server
	// knows.
	Events []DescribedEvent
	// Now is the time from which ages count.
	Now time.Time
}

// DescribedCondition is a condition of a Description.
type DescribedCondition struct {
	Type, Status, Reason, Message string
	Since                         time.Time
	// Old says that the condition speaks of an earlier state of the object.
	Old bool
}

// DescribedEvent is an event of a Description.
type DescribedEvent struct {
	Type, Reason, Source, Message string
	First, Last                   time.Time
	// Count is how often it happened.
	Count int64
}

// Write writes the description for a person.
func (d *Description) Write(s *Screen) error {
	if d.Place != "" {
		s.print(table(d.withStarter([][]string{{"Name:", Line(d.Name)}, {"Kind:", Line(d.Kind)}, {"Journal:", Line(d.Place)}, {"Created:", d.created()}})))
		s.section("Spec", d.Spec)
		s.section("Status", d.Status)
		if d.Run != nil {
			conduct(s, d.Run)
		}
		return s.Err()
	}
	head := [][]string{
		{"Name:", Line(d.Name)},
		{"Namespace:", dash(Line(d.Namespace))},
		{"Kind:", Line(d.Kind) + "  (" + Line(d.APIVersion) + ")"},
		{"Labels:", LabelText(d.Labels)},
		{"Annotations:", LabelText(d.Annotations)},
		{"Created:", d.created()},
	}
	head = d.withStarter(head)
	if d.Deleting {
		head = append(head, []string{"Deleting:", "waits for " + dash(Line(strings.Join(d.Finalizers, ", ")))})
	}
	s.print(table(head))
	s.section("Spec", d.Spec)
	s.section("Status", d.Status)
	d.conditions(s)
	if d.Events != nil {
		d.events(s)
	}
	return s.Err()
}

func (d *Description) created() string {
	if d.Created.IsZero() {
		return "-"
	}
	return d.Created.UTC().Format(time.RFC3339) + "  (" + Age(d.Now, d.Created) + " ago)"
}

func (d *Description) conditions(s *Screen) {
	s.print(s.paint(bold, "Conditions:"))
	if len(d.Conditions) == 0 {
		s.print("  none\n")
		return
	}
	s.print("\n")
	rows := [][]string{{"  TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"}}
	for _, c := range d.Conditions {
		text := Line(c.Message)
		if c.Old {
			text = strings.TrimSpace("(of an earlier state) " + text)
		}
		rows = append(rows, []string{"  " + Line(c.Type), s.paint(conditionStyle(c.Status), Line(c.Status)), dash(Line(c.Reason)), Age(d.Now, c.Since), dash(text)})
	}
	s.print(table(rows))
}

func (d *Description) events(s *Screen) {
	s.print(s.paint(bold, "Events:"))
	if len(d.Events) == 0 {
		s.print("  none\n")
		return
	}
	s.print("\n")
	rows := [][]string{{"  TYPE", "REASON", "AGE", "FROM", "MESSAGE"}}
	for i := range d.Events {
		e := &d.Events[i]
		when := Age(d.Now, e.Last)
		if e.Count > 1 {
			when += fmt.Sprintf(" (x%d over %s)", e.Count, Age(d.Now, e.First))
		}
		typ := dash(Line(e.Type))
		if e.Type == "Warning" {
			typ = s.paint(yellow, typ)
		}
		rows = append(rows, []string{"  " + typ, dash(Line(e.Reason)), when, dash(Line(e.Source)), dash(Line(e.Message))})
	}
	s.print(table(rows))
}

func conditionStyle(status string) style {
	return map[string]style{"True": green, "False": red, "Unknown": yellow}[status]
}

// section writes a value as an indented tree.
func (s *Screen) section(name string, v any) {
	m, ok := v.(map[string]any)
	s.print(s.paint(bold, name+":"))
	if !ok || len(m) == 0 {
		s.print("  none\n")
		return
	}
	s.print("\n")
	var b strings.Builder
	tree(&b, v, "  ")
	s.print(b.String())
}

// tree writes a value under its name. A text of several lines is a block.
func tree(b *strings.Builder, v any, indent string) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			b.WriteString(indent + Line(k) + ":")
			leaf(b, v[k], indent)
		}
	case []any:
		for _, e := range v {
			if m, ok := e.(map[string]any); ok && len(m) > 0 { // its first field stands behind the dash
				var item strings.Builder
				tree(&item, m, indent+"  ")
				b.WriteString(indent + "- " + item.String()[len(indent)+2:])
				continue
			}
			b.WriteString(indent + "-")
			leaf(b, e, indent)
		}
	}
}

func leaf(b *strings.Builder, v any, indent string) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			b.WriteString(" {}\n")
			return
		}
		b.WriteByte('\n')
		tree(b, v, indent+"  ")
	case []any:
		if len(v) == 0 {
			b.WriteString(" []\n")
			return
		}
		b.WriteByte('\n')
		tree(b, v, indent+"  ")
	case string:
		text := strings.TrimRight(Clean(v), "\n")
		if !strings.Contains(text, "\n") {
			b.WriteString(" " + dash(text) + "\n")
			return
		}
		b.WriteByte('\n')
		for line := range strings.SplitSeq(text, "\n") {
			b.WriteString(strings.TrimRight(indent+"  "+line, " ") + "\n")
		}
	default:
		fmt.Fprintf(b, " %v\n", v)
	}
}

// withStarter adds who began a run to the rows of a head.
func (d *Description) withStarter(head [][]string) [][]string {
	if d.StartedBy != "" {
		head = append(head, []string{"Started by:", Line(d.StartedBy)})
	}
	return head
}
