package opencode

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// The actions of OpenCode, which are those of a Policy.
const (
	allow = "allow"
	ask   = "ask"
	deny  = "deny"
)

// rule is one rule of OpenCode. The last one that matches decides.
type rule struct {
	permission, pattern, action string
	// at is the place in the file; "" for a rule that OpenCode brings along.
	at string
}

// entry is one entry of spec.permissions.
type entry struct {
	Permission string `json:"permission"`
	Pattern    string `json:"pattern,omitempty"`
	Action     string `json:"action"`
}

// builtins are the rules that OpenCode puts before those of the file, as far as they are
// stricter than allow.
func builtins() []rule {
	return []rule{
		{"external_directory", "*", ask, ""},
		{"read", "*.env", ask, ""},
		{"read", "*.env.*", ask, ""},
		{"read", "*.env.example", allow, ""},
	}
}

// rules reads tools and permission of the file or of one agent. As in OpenCode, tools come
// first, and a permission of the same name takes the place of one.
func (c *conversion) rules(at string, tools, permission *value) []rule {
	type slot struct {
		name string
		at   string
		value
	}
	var slots []slot
	set := func(s slot) {
		if i := slices.IndexFunc(slots, func(o slot) bool { return o.name == s.name }); i >= 0 {
			slots[i] = s
			return
		}
		slots = append(slots, s)
	}
	if tools != nil && tools.kind == object {
		for _, m := range tools.members {
			place := at + "/tools/" + escape(m.key)
			if m.kind != boolean {
				c.unreadable(place, "is neither true nor false")
				continue
			}
			name := m.key
			if slices.Contains([]string{"write", "edit", "patch", "multiedit"}, name) {
				name = "edit"
			}
			action := deny
			if m.truth {
				action = allow
			}
			set(slot{name, place, value{kind: text, text: action}})
		}
	} else if tools != nil {
		c.unreadable(at+"/tools", "is no object")
	}
	switch {
	case permission == nil:
	case permission.kind == text:
		set(slot{"*", at + "/permission", *permission})
	case permission.kind == object:
		for _, m := range inOrder(permission.members) {
			set(slot{m.key, at + "/permission/" + escape(m.key), m.value})
		}
	default:
		c.unreadable(at+"/permission", "is neither an action nor an object")
	}
	var all []rule
	for _, s := range slots {
		switch s.kind {
		case text:
			all = append(all, c.action(s.at, s.name, "*", s.text))
		case object:
			for _, m := range inOrder(s.members) {
				if m.kind != text {
					c.unreadable(s.at+"/"+escape(m.key), "is none of allow, ask and deny")
					continue
				}
				all = append(all, c.action(s.at+"/"+escape(m.key), s.name, m.key, m.text))
			}
		default:
			c.unreadable(s.at, "is neither an action nor an object")
		}
	}
	return all
}

func (c *conversion) action(at, name, pattern, action string) rule {
	if action != allow && action != ask && action != deny {
		c.unreadable(at, "is none of allow, ask and deny")
	}
	return rule{name, pattern, action, at}
}

// inOrder is the order in which JavaScript goes through an object: whole numbers first.
func inOrder(members []member) []member {
	index := func(key string) (uint64, bool) {
		n, err := strconv.ParseUint(key, 10, 32)
		return n, err == nil && strconv.FormatUint(n, 10) == key && n < 1<<32-1
	}
	sorted := slices.Clone(members)
	slices.SortStableFunc(sorted, func(a, b member) int {
		x, isX := index(a.key)
		y, isY := index(b.key)
		switch {
		case isX && isY && x < y, isX && !isY:
			return -1
		case isX && isY && x > y, isY && !isX:
			return 1
		}
		return 0
	})
	return sorted
}

// decision is what OpenCode decides by rules alone; "" if none matches. Only rules about
// everything, and those whose pattern matches the text, count.
func decision(rules []rule, permission, s string) string {
	for _, r := range slices.Backward(rules) {
		if wild(r.permission, permission) && wild(r.pattern, s) {
			return r.action
		}
	}
	return ""
}

// wild is OpenCode's match of a pattern.
func wild(pattern, s string) bool {
	if pattern == "*" || pattern == s {
		return true
	}
	short, optional := strings.CutSuffix(pattern, " *")
	return glob(pattern, s) || optional && glob(short, s)
}

// glob knows * and ?, both of which match every character.
func glob(pattern, s string) bool {
	p, i, star, from := 0, 0, -1, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p, i = p+1, i+1
		case star >= 0:
			from++
			p, i = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// named are the tools whose permission has the same name here.
func named() []string {
	return []string{"read", "edit", "bash", "list", "glob", "grep", "webfetch", "question", "todowrite", "todoread"}
}

// entries carries the rules of one agent over. An allow that cannot be said is left out,
// a deny or ask that cannot be said is made one about everything: neither lets a call
// through that OpenCode holds.
func (c *conversion) entries(rules []rule) []entry {
	var out []entry
	for _, r := range rules {
		if r.permission == "task" || r.permission == "doom_loop" {
			continue // subagents and the loop guard of the agent
		}
		to, note := r.permission, ""
		if why := c.unknownPermission(r.permission); why != "" {
			c.leave(r.at, why)
			continue
		}
		if name, isMCP := c.mcpName(r.permission); isMCP {
			to = name
			if r.pattern != "*" {
				c.leave(r.at, "OpenCode asks for a function of an MCP server with the pattern * only: this one never matches")
				continue
			}
		}
		pattern, exact := r.pattern, true
		if to == "external_directory" && !strings.HasSuffix(pattern, "*") {
			if r.action != deny {
				c.leave(r.at, "OpenCode compares a folder with /* behind it: this pattern never matches")
				continue
			}
		}
		if pattern != "*" {
			pattern, exact = expressible(to, pattern, r.action)
		}
		action := r.action
		held := slices.ContainsFunc(out, func(e entry) bool { return e.Action == deny && overlap(e.Permission, to) })
		switch {
		case exact && !wider(to, pattern):
		case exact && action == allow:
			c.leave(r.at, "as an entry of a Policy it would hold for more files than in OpenCode; without it the call is decided by what stands before it")
			continue
		case exact && action == ask && held:
			action, note = deny, "holds for more files than in OpenCode, where some of them are denied"
		case exact:
		case action == allow:
			c.leave(r.at, "a pattern of "+r.permission+" that a Policy cannot say; without it the call is decided by what stands before it")
			continue
		default:
			if action == ask && held {
				action = deny
			}
			pattern, note = "*", "a pattern of "+r.permission+" that a Policy cannot say: it holds for all of it"
		}
		if note == "" && action == allow {
			note = narrower(to, pattern)
		}
		e := entry{Permission: to, Action: action}
		if pattern != "*" {
			e.Pattern = pattern
		}
		out = append(out, e)
		if r.at != "" {
			c.carry(r.at, "permission "+to+" "+pattern+" "+action, note)
		}
	}
	return out
}

// wider reports whether a pattern for files holds for more here than in OpenCode, which
// compares the path below the project alone.
func wider(permission, pattern string) bool {
	if permission != "read" && permission != "edit" || pattern == "*" {
		return false
	}
	rest := strings.TrimLeft(pattern, "*")
	return strings.HasPrefix(pattern, "./") || rest != pattern && strings.HasPrefix(rest, "/") || rest == pattern && !strings.Contains(pattern, "/")
}

// overlap reports whether two names of permissions may mean the same tool.
func overlap(a, b string) bool { return glob(a, b) || glob(b, a) }

// narrower says where an allow is stricter than OpenCode's.
func narrower(permission, pattern string) string {
	word, _, _ := strings.Cut(pattern, " ")
	switch {
	case permission == "*":
		return "does not let a call leave the workspace: that needs an entry for external_directory"
	case permission == "bash" && pattern != "*" && strings.HasPrefix(pattern, "*"):
		return "holds only for commands of which it is known what they do"
	case permission == "bash" && pattern != "*" && strings.HasSuffix(word, "*"):
		return "holds for the program " + strings.TrimSuffix(word, "*") + " alone, not for others whose name begins so"
	}
	return ""
}

// unknownPermission says why a permission has nothing here that it could be about.
func (c *conversion) unknownPermission(name string) string {
	switch {
	case name == "external_directory" || slices.Contains(named(), name):
		return ""
	case name == "write" || name == "patch" || name == "multiedit" || name == "apply_patch":
		return "has no effect in OpenCode, which asks for edit"
	case name == "skill":
		return "no skills are carried over: name them in the agent's skills"
	case name == "websearch":
		return "the tool websearch needs a Tool with its server: write that first"
	}
	if strings.ContainsAny(name, "*?") {
		for _, known := range append(named(), "external_directory") {
			if glob(name, known) {
				return ""
			}
		}
	}
	if _, is := c.mcpName(name); is {
		return ""
	}
	return "there is no tool of that name"
}

// mcpName is the name of a function of an MCP server, or a pattern for some, with the
// name that the server has here.
func (c *conversion) mcpName(name string) (string, bool) {
	for _, s := range c.servers {
		if rest, ok := strings.CutPrefix(name, s.prefix+"_"); ok && s.prefix != "" {
			return s.name + "_" + rest, true
		}
		if name == s.prefix+"*" {
			return s.name + "_*", true
		}
	}
	return name, false
}

// plainAddress matches an address whose text means what it says.
var plainAddress = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^https?://[^/*?#\s@]+/[^*?#]*\*?$`)
})

// expressible returns a pattern as a Policy writes it, and whether it then means the same,
// or, for an allow, less.
func expressible(permission, pattern, action string) (string, bool) {
	if strings.Contains(pattern, "{env:") || strings.Contains(pattern, "{file:") || strings.TrimSpace(pattern) != pattern || pattern == "" {
		return pattern, false
	}
	switch permission {
	case "bash":
		// Policies compare commands that are parsed: without quotes, variables, operators.
		word, _, _ := strings.Cut(pattern, " ")
		return pattern, !strings.ContainsAny(pattern, "\"'`$<>|;&()\\\n\t#{}") && !strings.Contains(pattern, "  ") && !strings.Contains(word, "=") && !strings.HasPrefix(pattern, "~")
	case "read", "edit", "external_directory":
		pattern = strings.ReplaceAll(pattern, `\`, "/")
		if rest, ok := strings.CutPrefix(pattern, "$HOME/"); ok {
			pattern = "~/" + rest
		}
		// Policies compare clean paths.
		literal := strings.NewReplacer("*", "x", "?", "x").Replace(strings.TrimSuffix(pattern, "/"))
		return pattern, pattern != "~" && !strings.Contains(pattern, "$") && path.Clean(literal) == strings.TrimPrefix(literal, "./") && !strings.HasPrefix(literal, "../")
	case "webfetch":
		return pattern, action == allow && (strings.HasPrefix(pattern, "http://") || strings.HasPrefix(pattern, "https://")) || plainAddress().MatchString(pattern)
	}
	return pattern, false
}
