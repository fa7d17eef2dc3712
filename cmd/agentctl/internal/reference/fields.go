package main

import (
	"fmt"
	"strings"

	"agentctl.dev/agentctl/api/crds"
)

const fieldsHead = `# Fields

Every field of every kind, for people who write manifests. Written by ` + "`make generate`" + ` from the schemas; ` + "`agentctl explain KIND.FIELD`" + ` shows the same. A field in bold is
required. ` + "`[]`" + ` behind a name is a list, ` + "`{}`" + ` a map.
`

// fieldsPage is the reference of all kinds.
func fieldsPage() (string, error) {
	var b strings.Builder
	b.WriteString(fieldsHead)
	for _, kind := range crds.Kinds() {
		e, err := crds.Explain(kind, true)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| field | type | |\n|---|---|---|\n", kind, e.Field.Description)
		for i := range e.Field.Fields {
			if f := &e.Field.Fields[i]; f.Name == "spec" || f.Name == "status" {
				rows(&b, f, "")
			}
		}
	}
	b.WriteString("\n## Next\n\n- [Manifests](../manifests.md): what the kinds are for.\n- [Commands and flags](cli.md): what reads them.\n")
	return b.String(), nil
}

// rows appends a field and all that are below it.
func rows(b *strings.Builder, f *crds.Field, above string) {
	path := above + f.Name
	name := "`" + path + "`"
	if f.Required {
		name = "**" + name + "**"
	}
	fmt.Fprintf(b, "| %s | %s | %s |\n", name, cell(f.Type), cell(about(f)))
	switch {
	case strings.HasPrefix(f.Type, "[]"):
		path += "[]"
	case strings.HasPrefix(f.Type, "map["):
		path += "{}"
	}
	for i := range f.Fields {
		rows(b, &f.Fields[i], path+".")
	}
}

// about is what a table says of a field.
func about(f *crds.Field) string {
	said := strings.Split(f.Description, "\n\n")[:1]
	if f.Bounds != "" {
		said = append(said, "Limits: "+f.Bounds+".")
	}
	if len(f.Enum) > 0 {
		said = append(said, "One of "+strings.Join(f.Enum, ", ")+".")
	}
	if f.Default != "" {
		said = append(said, "Default: `"+f.Default+"`.")
	}
	return strings.TrimSpace(strings.Join(said, " "))
}
