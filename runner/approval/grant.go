package approval

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"agentctl.dev/agentctl/api/message"
)

// Summary names grants on one line.
func Summary(grants []message.Grant) string {
	var texts []string
	for i := 0; i < len(grants); i++ {
		g := grants[i]
		if g.Tool != "" {
			texts = append(texts, g.Tool+" when "+g.When)
			continue
		}
		text := g.Permission + " " + strconv.Quote(g.Pattern)
		if g.Dir != "" {
			text += " in " + strconv.Quote(g.Dir)
		}
		var places []string
		for ; i < len(grants) && sameCommand(grants[i], g); i++ {
			if grants[i].Within != "" {
				places = append(places, strconv.Quote(grants[i].Within))
			}
		}
		i--
		if len(places) > 0 {
			text += " changing " + strings.Join(places, " and ")
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

// sameCommand reports whether grants differ at most in what may be changed.
func sameCommand(a, b message.Grant) bool {
	a.Within, b.Within = "", ""
	return a == b
}

// Policy writes grants as a manifest that users can keep. A permission list cannot express
// the folder that a command runs in, or that a command may change one place but not
// another: calls that the list cannot express are asked about.
func Policy(grants []message.Grant) string {
	var list entries
	var rules strings.Builder
	for i, g := range grants {
		switch {
		case g.Tool != "":
			fmt.Fprintf(&rules, "  - name: always-%d\n    match: {tools: [%q]}\n    when: %q\n    action: allow\n", i+1, g.Tool, g.When)
			continue
		case g.Within != "":
			list.changes(g.Within)
		}
		if g.Dir != "" {
			list.add(g.Permission, "cd "+g.Dir, "allow")
		}
		list.add(g.Permission, g.Pattern, "allow")
		for _, o := range careless(g) {
			list.add(g.Permission, o, "ask")
		}
	}
	text := "apiVersion: agentctl.dev/v1alpha1\nkind: Policy\nmetadata: {name: remembered}\nspec:\n"
	if len(list) > 0 {
		text += "  permissions:\n" + strings.Join(list, "")
	}
	if rules.Len() > 0 {
		text += "  rules:\n" + rules.String()
	}
	return text
}

// entries are the lines of a permission list; the last one that matches counts.
type entries []string

func (l *entries) add(permission, pattern, action string) {
	line := fmt.Sprintf("  - {permission: %q, pattern: %q, action: %s}\n", permission, pattern, action)
	if !slices.Contains(*l, line) {
		*l = append(*l, line)
	}
}

func (l *entries) changes(place string) {
	l.add("edit", "*", "ask")
	l.add("edit", place, "allow")
}

// careless are the patterns of a command with options that do more than the approved one:
// that recurse into folders, or override what would stop it. A pattern with an option
// matches wherever the option is.
func careless(g message.Grant) (patterns []string) {
	base, options, ok := parts(g.Pattern)
	name, _, _ := strings.Cut(base, " ")
	if !ok || g.Within == "" || !slices.Contains([]string{"rm", "cp", "mv", "chmod", "chown", "chgrp"}, name) {
		return nil
	}
	for _, o := range []string{"r", "f"} {
		if !slices.ContainsFunc(options, func(have string) bool { return strings.EqualFold(have, o) || len(have) > 1 && have[0] == '-' }) {
			patterns = append(patterns, name+" -"+o+"*")
		}
	}
	return patterns
}

// covers compares grants: a folder covers the folders in it, and a command the
// same one with fewer options that changes less.
func covers(have, g message.Grant) bool {
	if have == g {
		return true
	}
	if have.Permission == "" || have.Permission != g.Permission || have.Dir != g.Dir {
		return false
	}
	if g.Within != "" && have.Within != g.Within && !holds(have.Within, g.Within) {
		return false
	}
	return have.Pattern == g.Pattern || holds(have.Pattern, g.Pattern) || fewer(have.Pattern, g.Pattern)
}

// holds reports whether another pattern of paths lies in a folder, given as dir/*.
func holds(folder, pattern string) bool {
	dir, ok := strings.CutSuffix(folder, "/*")
	return ok && strings.HasPrefix(pattern, dir+"/")
}

// fewer reports whether a command equals another but for options that it lacks. Options
// come after the words that name the command.
func fewer(have, pattern string) bool {
	base, options, ok := parts(have)
	other, some, also := parts(pattern)
	return ok && also && base == other && !slices.ContainsFunc(some, func(o string) bool { return !slices.Contains(options, o) })
}

// parts takes the pattern of a command apart. Letters are options by themselves.
func parts(pattern string) (base string, options []string, ok bool) {
	text, ok := strings.CutSuffix(pattern, " *")
	words := strings.Fields(text)
	for i := len(words) - 1; i > 0 && words[i][0] == '-'; i-- {
		if long := strings.HasPrefix(words[i], "--"); long {
			options = append(options, words[i])
		} else {
			options = append(options, strings.Split(words[i][1:], "")...)
		}
		words = words[:i]
	}
	return strings.Join(words, " "), options, ok
}
