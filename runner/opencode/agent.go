package opencode

import (
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// The agents that OpenCode brings along and a preset has.
func presets() []string { return []string{"build", "plan", "general", "explore"} }

// agent is one agent of the configuration.
type agent struct {
	key, name, at, mode string
	value               *value
	rules               []rule
}

// agents writes an Agent with its Policy for build and for each agent of the file.
func (c *conversion) agents() {
	shared := c.rules("", c.root.get("tools"), c.root.get("permission"))
	var all []*agent
	build := &agent{key: "build", name: "build", at: "/agent/build", mode: "primary", value: &value{kind: object}}
	all = append(all, build)
	taken := []string{"build"}
	for _, group := range []string{"mode", "agent"} {
		v := c.root.get(group)
		if v == nil {
			continue
		}
		if v.kind != object {
			c.unreadable("/"+group, "is no object")
			return
		}
		for i := range v.members {
			m := &v.members[i]
			at := "/" + group + "/" + escape(m.key)
			if m.kind != object {
				c.unreadable(at, "is no object")
				return
			}
			if off := m.get("disable"); off != nil && off.kind == boolean && off.truth {
				c.leave(at, "is disabled")
				all = slices.DeleteFunc(all, func(a *agent) bool { return a.key == m.key })
				continue
			}
			if slices.Contains([]string{"title", "summary", "compaction"}, m.key) {
				c.leave(at, "an agent for OpenCode's own use: see the presets compaction and title")
				continue
			}
			i := slices.IndexFunc(all, func(a *agent) bool { return a.key == m.key })
			if i < 0 {
				a := &agent{key: m.key, name: slug(m.key, taken), mode: "all"}
				switch {
				case group == "mode" || m.key == "plan":
					a.mode = "primary"
				case m.key == "general" || m.key == "explore":
					a.mode = "subagent"
				}
				taken = append(taken, a.name)
				all = append(all, a)
				i = len(all) - 1
			} else if group == "agent" && c.root.get("mode") != nil && c.root.get("mode").get(m.key) != nil {
				c.unreadable(at, "is also in /mode: keep one of them")
				return
			}
			all[i].at, all[i].value = at, &m.value
			if mode, ok := words(m.get("mode")); ok {
				all[i].mode = mode
			}
		}
	}
	if len(all) == 0 {
		c.unreadable("/agent", "leaves no agent")
		return
	}
	for _, a := range all {
		a.rules = slices.Concat(shared, c.rules(a.at, a.value.get("tools"), a.value.get("permission")))
	}
	c.small()
	for _, a := range all {
		c.agent(a, all)
	}
	c.commands(all)
	c.write("models.yaml", "The models. Keys are named, not written.", c.models.objects...)
}

func (c *conversion) small() {
	if c.root.get("small_model") != nil {
		c.leave("/small_model", "see the presets compaction and title, which have a model of their own")
	}
}

func (c *conversion) agent(a *agent, all []*agent) {
	spec := map[string]any{}
	own := a.name + "-opencode"
	policies := []any{map[string]any{"name": own}}
	defaults := builtins()
	if slices.Contains(presets(), a.key) {
		spec["preset"] = a.key
		switch a.key {
		case "plan", "explore":
			policies = append(policies, map[string]any{"name": "read-only"})
			c.carry(a.at, "the preset "+a.key, "the policy read-only of the preset judges, too")
		case "general":
			defaults = append(defaults, rule{"todowrite", "*", deny, ""})
		}
	}
	switch a.mode {
	case "primary":
		spec["mode"] = "Primary"
	case "subagent":
		spec["mode"] = "Subagent"
	case "all":
		spec["mode"] = "All"
	default:
		c.unreadable(a.at+"/mode", "is none of primary, subagent and all")
	}
	parameters := map[string]any{}
	modelAt, id := "/model", ""
	if s, ok := words(c.root.get("model")); ok {
		id = s
	}
	for i := range a.value.members {
		m := &a.value.members[i]
		at := a.at + "/" + escape(m.key)
		switch s, isText := words(&m.value); {
		case m.key == "mode" || m.key == "tools" || m.key == "permission" || m.key == "disable":
		case m.key == "model" && isText:
			modelAt, id = at, s
		case m.key == "description" && isText:
			if _, filled := substituted(s); filled || len(s) > 1024 {
				c.leave(at, "is filled in, or longer than 1,024 bytes")
				continue
			}
			spec["description"] = s
			c.carry(at, "description of agent "+a.name, "")
		case m.key == "prompt" && isText:
			if s, ok := c.prompt(at, s); ok {
				spec["instructions"] = strings.ReplaceAll(s, "${", "$${")
				c.carry(at, "instructions of agent "+a.name, "")
			}
		case m.key == "temperature" && m.kind == number, m.key == "top_p" && m.kind == number:
			n, err := strconv.ParseFloat(m.text, 64)
			if err != nil || n < 0 || n > 1 {
				c.leave(at, "is not between 0 and 1")
				continue
			}
			name := map[string]string{"temperature": "temperature", "top_p": "topP"}[m.key]
			parameters[name] = n
			c.carry(at, name+" of the Model of agent "+a.name, "")
		case m.key == "steps" && m.kind == number, m.key == "maxSteps" && m.kind == number && a.value.get("steps") == nil:
			n, err := strconv.ParseInt(m.text, 10, 32)
			if err != nil || n < 1 || n > 100000 {
				c.leave(at, "is not between 1 and 100,000")
				continue
			}
			spec["limits"] = map[string]any{"maxSteps": n}
			c.carry(at, "limits.maxSteps of agent "+a.name, "")
		default:
			c.leave(at, "has no counterpart in an Agent")
		}
	}
	spec["modelRef"] = map[string]any{"name": c.model(modelAt, id, parameters)}
	c.context(spec)
	rules := slices.Concat(defaults, a.rules)
	entries := c.entries(rules)
	entries = append(entries, c.subagents(spec, a, all)...)
	c.loop(spec, a.rules)
	spec["tools"] = c.tools(a)
	spec["policyRefs"] = policies
	list := make([]any, len(entries))
	for i, e := range entries {
		list[i] = e
	}
	c.write("agent-"+a.name+".yaml", "",
		manifest("Agent", a.name, spec),
		manifest("Policy", own, map[string]any{"permissions": list, "default": "byRisk"}))
}

// prompt returns the text of a prompt, which may be in a file beside the configuration.
func (c *conversion) prompt(at, s string) (string, bool) {
	const most = 256 << 10
	if name, ok := strings.CutPrefix(s, "{file:"); ok && strings.HasSuffix(name, "}") && strings.Count(s, "{") == 1 {
		name = path.Clean(strings.TrimSuffix(name, "}"))
		if !fs.ValidPath(name) {
			c.leave(at, "names a file outside the folder of the configuration")
			return "", false
		}
		f, err := c.beside.Open(name)
		if err != nil {
			c.leave(at, "names a file that cannot be read")
			return "", false
		}
		defer func() { _ = f.Close() }()
		if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
			c.leave(at, "names a file that cannot be read")
			return "", false
		}
		in, err := io.ReadAll(io.LimitReader(f, most+1))
		if err != nil {
			c.leave(at, "names a file that cannot be read")
			return "", false
		}
		s = strings.TrimRight(string(in), "\n") + "\n"
	} else if _, filled := substituted(s); filled {
		c.leave(at, "holds {env:} or {file:} beside other text")
		return "", false
	}
	if len(s) > most || strings.ToValidUTF8(s, "") != s {
		c.leave(at, "is longer than 256 KiB, or not UTF-8")
		return "", false
	}
	return s, true
}

// context carries the files of instructions over that are found by their name.
func (c *conversion) context(spec map[string]any) {
	files := []any{"AGENTS.md"}
	v := c.root.get("instructions")
	if v != nil {
		for i := range v.items {
			at := "/instructions/" + strconv.Itoa(i)
			s, ok := words(&v.items[i])
			_, filled := substituted(s)
			if !ok || filled || strings.ContainsAny(s, `/\*?[{~`) || s == "." || s == ".." || len(files) == 16 {
				c.leave(at, "contextFiles are names of files: no folders, patterns and addresses")
				continue
			}
			if !slices.Contains(files, any(s)) {
				files = append(files, s)
			}
			c.carry(at, "contextFiles", "")
		}
	}
	spec["contextFiles"] = files
}

// tools are those of the preset build, and what the rules speak of.
func (c *conversion) tools(a *agent) []any {
	names := []string{"read", "list", "glob", "grep", "edit", "write", "patch", "bash", "todowrite", "todoread"}
	switch a.key {
	case "plan", "explore":
		names = slices.DeleteFunc(names, func(s string) bool { return s == "edit" || s == "write" || s == "patch" })
	}
	if d := decision(a.rules, "question", "*"); d == allow || d == ask || d == "" && (a.key == "build" || a.key == "plan") {
		names = append(names, "question")
	}
	if slices.ContainsFunc(a.rules, func(r rule) bool { return r.permission == "webfetch" && r.action != deny }) {
		names = append(names, "webfetch")
	}
	for _, s := range c.servers {
		names = append(names, s.name)
	}
	list := make([]any, len(names))
	for i, n := range names {
		t := map[string]any{"name": n}
		if n == "bash" && (a.key == "plan" || a.key == "explore") {
			t["workspaceAccess"] = "ReadOnly"
		}
		list[i] = t
	}
	return list
}

// subagents lists the agents that an agent may start, and returns the entry for task.
// OpenCode's patterns for task are names of agents.
func (c *conversion) subagents(spec map[string]any, a *agent, all []*agent) []entry {
	var names []any
	strictest := ""
	for _, o := range all {
		if o == a || o.mode == "primary" {
			continue
		}
		switch d := decision(a.rules, "task", o.key); d {
		case deny:
			continue
		case ask:
			strictest = ask
		case allow:
			if strictest == "" {
				strictest = allow
			}
		}
		names = append(names, map[string]any{"name": o.name})
	}
	for _, r := range a.rules {
		if r.permission == "task" {
			note := ""
			if strictest == ask && r.action == allow {
				note = "asked about, as another agent is"
			}
			c.carry(r.at, "subagents of agent "+a.name, note)
		}
	}
	if len(names) == 0 {
		return nil
	}
	spec["subagents"] = names
	if strictest == "" {
		return nil
	}
	return []entry{{Permission: "task", Action: strictest}}
}

// loop carries doom_loop over, which OpenCode asks for when a call repeats.
func (c *conversion) loop(spec map[string]any, rules []rule) {
	strictest := ""
	for _, r := range rules {
		if r.permission != "doom_loop" {
			continue
		}
		switch {
		case r.pattern != "*":
			c.leave(r.at, "the loop guard knows no tools: it stops all of them")
			strictest = deny
			continue
		case r.action == allow:
			c.carry(r.at, "loopGuard", "stays on: set identicalCalls to 0 to switch it off")
		default:
			c.carry(r.at, "loopGuard", "")
		}
		strictest = r.action
	}
	if strictest == ask {
		spec["loopGuard"] = map[string]any{"onDetect": "Ask"}
	}
}
