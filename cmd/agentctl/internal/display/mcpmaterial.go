package display

import (
	"fmt"
	"strings"

	"agentctl.dev/agentctl/runner/pluginkit"
)

// MCPMaterial shows the prompts or resources of a server, or the text of one of them.
func MCPMaterial(stdout, stderr *Screen, m *pluginkit.MCPMaterial) error {
	var b strings.Builder
	for _, p := range m.Prompts {
		b.WriteString(Line(p.Name))
		for _, a := range p.Arguments {
			if a.Required {
				fmt.Fprintf(&b, " %s=...", Line(a.Name))
			} else {
				fmt.Fprintf(&b, " [%s=...]", Line(a.Name))
			}
		}
		b.WriteByte('\n')
		described(&b, p.Description)
	}
	for _, r := range m.Resources {
		fmt.Fprintln(&b, strings.TrimRight(Line(r.URI)+"  "+Line(r.Type), " "))
		described(&b, strings.TrimSpace(r.Name+": "+r.Description))
	}
	b.WriteString(m.Text)
	for _, c := range m.Contents {
		b.WriteString(endLine(c.Text))
	}
	switch text := b.String(); {
	case text == "":
		Notice(stderr, "the server has none")
		return stdout.Err()
	case stdout.TTY:
		return Text(stdout, Clean(text))
	default:
		return Text(stdout, text)
	}
}

// described adds the first line of a description.
func described(b *strings.Builder, text string) {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if first = strings.TrimSuffix(first, ":"); first != "" {
		fmt.Fprintln(b, "    "+Line(first))
	}
}
