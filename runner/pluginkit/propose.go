package pluginkit

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Propose writes a Tool for a server, and a Policy with tests that judges its functions by
// their arguments: what claims to read is allowed, within the workspace where it names
// files; what claims to destroy is denied, and the rest is asked about. The claims are the
// server's own: a person reads the rules before they are used.
func (r *MCPReport) Propose(o MCPOptions) string {
	name := o.Name
	if name == "" {
		name = "server"
	}
	var b strings.Builder
	fmt.Fprintf(&b, `# Proposed by "agentctl mcp test --propose" from what the server says about itself. Read it before you
# use it: a server may claim that a function only reads.
apiVersion: agentctl.dev/v1alpha1
kind: Tool
metadata:
  name: %s
spec:
  risk: R2
  source:
    mcp:
%s---
apiVersion: agentctl.dev/v1alpha1
kind: Policy
metadata:
  name: %s
spec:
  rules:
`, name, o.sourceYAML(), name)
	var tests []string
	add := func(f MCPFunction, args map[string]any, expect, what string) {
		tests = append(tests, fmt.Sprintf("  - {name: %s, call: {tool: %s, args: %s}, expect: %s}\n", quoted(f.CallName+" "+what), quoted(f.CallName), object(args), expect))
	}
	var asked []string
	for _, f := range r.Functions {
		args, paths := sample(f.Parameters)
		switch {
		case f.Hints.Destructive && !f.Hints.ReadOnly:
			add(f, args, "deny", "is denied")
			continue
		case !f.Hints.ReadOnly:
			asked = append(asked, quoted(f.CallName))
			add(f, args, "ask", "is asked about")
			continue
		}
		fmt.Fprintf(&b, "  - name: %s\n    match: {tools: [%s]}\n", slug(f.CallName), quoted(f.CallName))
		if len(paths) > 0 {
			var conditions []string
			for _, p := range paths {
				conditions = append(conditions, p.condition())
			}
			fmt.Fprintf(&b, "    when: %s\n", quotedYAML(strings.Join(conditions, " && ")))
			for _, p := range paths {
				out := maps.Clone(args)
				out[p.name] = p.value("/etc/passwd")
				add(f, out, "deny", p.name+" outside")
				args[p.name] = p.value("README.md")
			}
		}
		fmt.Fprint(&b, "    action: allow\n")
		add(f, args, "allow", "is allowed")
	}
	if len(asked) > 0 {
		fmt.Fprintf(&b, "  - name: changes\n    match: {tools: [%s]}\n    action: ask\n", strings.Join(asked, ", "))
	}
	text := strings.TrimSuffix(b.String(), "  rules:\n") // an empty list
	return text + "  default: deny\n  tests:\n" + strings.Join(tests, "")
}

// sourceYAML is the source of the Tool.
func (o *MCPOptions) sourceYAML() string {
	if o.URL == "" {
		return "      stdio: {command: " + jsonOf(o.Command) + "}\n"
	}
	text := "      http:\n        url: " + quoted(o.URL) + "\n"
	if len(o.Headers) > 0 {
		text += "        headers:\n"
	}
	for _, h := range o.Headers {
		name, _, _ := strings.Cut(h, "=")
		variable := strings.ToUpper(strings.ReplaceAll(slug(name), "-", "_"))
		text += fmt.Sprintf("        - {name: %s, valueFrom: {env: %s}}\n", quoted(name), variable)
	}
	return text
}

// sample returns arguments that a schema accepts, as far as its types say it, and the
// names of those that name files.
func sample(parameters json.RawMessage) (args map[string]any, paths []pathArgument) {
	var schema struct {
		Required   []string `json:"required"`
		Properties map[string]struct {
			Type    any   `json:"type"`
			Enum    []any `json:"enum"`
			Default any   `json:"default"`
			Minimum *float64
		} `json:"properties"`
	}
	args = map[string]any{}
	if json.Unmarshal(parameters, &schema) != nil {
		return args, nil
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		p := schema.Properties[name]
		if (p.Type == "string" || p.Type == "array") && namesFile(name) {
			paths = append(paths, pathArgument{name, p.Type == "array"})
		}
		if !slices.Contains(schema.Required, name) {
			continue
		}
		switch {
		case len(p.Enum) > 0:
			args[name] = p.Enum[0]
		case p.Default != nil:
			args[name] = p.Default
		case p.Type == "integer" || p.Type == "number":
			args[name] = 1
			if p.Minimum != nil {
				args[name] = *p.Minimum
			}
		case p.Type == "boolean":
			args[name] = true
		case p.Type == "array":
			args[name] = []any{}
		case p.Type == "object":
			args[name] = map[string]any{}
		case namesFile(name):
			args[name] = "README.md"
		default:
			args[name] = "x"
		}
	}
	return args, paths
}

// pathArgument is an argument that names a file, or a list of them.
type pathArgument struct {
	name string
	list bool
}

// condition holds for a path within the workspace, or none.
func (p pathArgument) condition() string {
	within := func(at string) string {
		return fmt.Sprintf("!%s.startsWith('/') && !%s.startsWith('~') && !%s.contains('..')", at, at, at)
	}
	at := "call.args[" + quoted(p.name) + "]"
	if p.list {
		return fmt.Sprintf("(!(%s in call.args) || %s.all(p, %s))", quoted(p.name), at, within("p"))
	}
	return fmt.Sprintf("(!(%s in call.args) || (%s))", quoted(p.name), within(at))
}

func (p pathArgument) value(path string) any {
	if p.list {
		return []any{path}
	}
	return path
}

// namesFile reports whether an argument of that name is likely to be a path.
func namesFile(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"path", "file", "dir", "folder", "source", "destination"}, func(word string) bool { return strings.HasSuffix(name, word) || strings.HasPrefix(name, word) })
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "{}"
	}
	return string(b)
}

func quoted(s string) string { return jsonOf(s) }

// quotedYAML writes a text between single quotes.
func quotedYAML(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func object(args map[string]any) string { return jsonOf(args) }

// slug makes the name of a rule of a call name.
func slug(s string) string {
	s = strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(s)), "-")
	return s
}
