package opencode

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"
)

// commandName is a name that a file of a command has here, and commandDollars is a text in
// which dollars mean something else than in OpenCode.
var (
	commandName    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`) })
	commandDollars = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\$([0-9]|ARGUMENTS|\{)|\$\{inputs\.`) })
)

// commands writes a file for each command of the configuration. Agents are those that were
// written, by their names in the configuration.
func (c *conversion) commands(agents []*agent) {
	v := c.root.get("command")
	if v == nil {
		return
	}
	if v.kind != object {
		c.leave("/command", "is no object")
		return
	}
	names := map[string]string{}
	for _, a := range agents {
		names[a.key] = a.name
	}
	for i := range v.members {
		m := &v.members[i]
		at := "/command/" + escape(m.key)
		switch {
		case m.kind != object:
			c.leave(at, "is no object")
		case !commandName().MatchString(m.key):
			c.leave(at, "has a name that is not of lower-case letters, digits and hyphens: docs/commands.md")
		default:
			c.command(at, m.key, &m.value, names)
		}
	}
}

// command writes the file of a command.
func (c *conversion) command(at, name string, v *value, agents map[string]string) {
	template, ok := words(v.get("template"))
	if !ok {
		c.leave(at, "has no template")
		return
	}
	if template, ok = c.prompt(at+"/template", template); !ok {
		return
	}
	if commandDollars().MatchString(template) {
		c.leave(at+"/template", "has dollars that mean something else here: write the file by hand, docs/commands.md")
		return
	}
	head := map[string]string{}
	var left []Left
	for i := range v.members {
		m := &v.members[i]
		s, isText := words(&m.value)
		place := at + "/" + escape(m.key)
		switch _, filled := substituted(s); {
		case m.key == "template":
		case m.key == "description" && isText && !filled:
			head["description"] = s
		case m.key == "agent" && agents[s] != "":
			head["agent"] = agents[s]
		case m.key == "agent":
			// With another agent the prompt would run under other rules.
			c.leave(at, "names an agent that is not carried over")
			return
		case m.key == "model":
			left = append(left, Left{place, "name a Model in the head of the file, or with --model"})
		default:
			left = append(left, Left{place, "has no counterpart in a command"})
		}
	}
	for _, l := range left {
		c.leave(l.At, l.Why)
	}
	var b strings.Builder
	if len(head) > 0 {
		b.WriteString("---\n")
		for _, key := range slices.Sorted(maps.Keys(head)) {
			line, err := yaml.Marshal(map[string]string{key: head[key]})
			if err != nil {
				c.unreadable(at, "cannot be written: "+err.Error())
				return
			}
			b.Write(line)
		}
		b.WriteString("---\n")
	} else if strings.HasPrefix(template, "---") {
		b.WriteString("---\n---\n")
	}
	b.WriteString(strings.TrimRight(template, "\n") + "\n")
	to := "commands/" + name + ".md"
	c.files = append(c.files, file{to, []byte(b.String())})
	c.carry(at, to, "a missing argument is an error")
}
