package shell

import (
	"strings"
)

// options splits arguments into options and operands by a table such as
// "o=w output=w d=d". An option that is not in the table takes no value. The
// actions of a value: v nothing, r read, w written, d data with @file, u an
// address, n it holds names of files, x it names a program, s it is a script, W
// the operands are written;
// a ? behind it: the value must be attached.
func (a *analyser) options(table string, args []word, sc *scope) (operands []word, hits map[string]bool) {
	actions := map[string]string{}
	for f := range strings.FieldsSeq(table) {
		name, action, _ := strings.Cut(f, "=")
		actions[name] = action
	}
	hits = map[string]bool{}
	for i := 0; i < len(args); i++ {
		w := args[i]
		if !w.known || len(w.text) < 2 || w.text[0] != '-' {
			operands = append(operands, w)
			continue
		}
		if w.text == "--" {
			return append(operands, args[i+1:]...), hits
		}
		name, value, attached := strings.TrimPrefix(w.text, "--"), "", false
		if strings.HasPrefix(w.text, "--") {
			name, value, attached = strings.Cut(name, "=")
			name = abbreviated(name, actions)
		} else {
			name, value, attached = short(w.text[1:], actions, hits)
		}
		hits[name] = true
		action, ok := actions[name]
		if !ok {
			if attached {
				a.attached(value, sc)
			}
			continue
		}
		v := word{text: value, known: true, glob: w.glob}
		if action == "W" {
			hits["W"] = true
			continue
		}
		if !attached && !strings.HasSuffix(action, "?") {
			i++
			if i >= len(args) {
				continue
			}
			v = args[i]
		}
		a.option(strings.TrimSuffix(action, "?"), v, sc)
	}
	return operands, hits
}

// attached judges the value of a long option that we do not know: it may be a
// file, unless it is a word that such options take.
func (a *analyser) attached(value string, sc *scope) {
	switch value {
	case "", "auto", "always", "never", "yes", "no", "all", "none", "short", "full", "true", "false":
		return
	}
	if isNumber(value) || strings.Contains(value, "://") {
		return
	}
	a.facts.Operands = a.touch(a.facts.Operands, value, sc)
}

// abbreviated resolves a long option cut short, as getopt accepts it.
func abbreviated(name string, actions map[string]string) string {
	if _, ok := actions[name]; ok || len(name) < 3 {
		return name
	}
	for full := range actions {
		if len(full) > 2 && strings.HasPrefix(full, name) {
			return full
		}
	}
	return name
}

// short finds the first letter of a cluster that takes a value.
func short(cluster string, actions map[string]string, hits map[string]bool) (name, value string, attached bool) {
	if _, ok := actions[cluster]; ok && len(cluster) > 1 {
		return cluster, "", false // -exec, -name: a single dash and a word
	}
	for i := range len(cluster) {
		letter := cluster[i : i+1]
		if action, ok := actions[letter]; ok && action != "W" {
			return letter, strings.TrimPrefix(cluster[i+1:], "="), i+1 < len(cluster)
		}
		hits[letter] = true
		if actions[letter] == "W" {
			return letter, cluster[i+1:], true
		}
	}
	return cluster, "", false
}

func (a *analyser) option(action string, v word, sc *scope) {
	switch action {
	case "r", "w":
		a.touchWord(v, action, sc)
	case "n":
		a.touchWord(v, "r", sc)
		a.dynamic("names of files that stand in a file")
	case "u":
		if strings.HasPrefix(v.text, "@") {
			a.dynamic("addresses that stand in a file")
		}
		a.url(v)
	case "d":
		if !v.known {
			a.dynamic("what is sent is not known")
			return
		}
		at := strings.IndexByte(v.text, '@')
		if less := strings.Index(v.text, "=<"); at < 0 && less >= 0 {
			at = less + 1 // curl -F name=<file
		}
		if at < 0 {
			return
		}
		if f, _, _ := strings.Cut(v.text[at+1:], ";"); f != "" {
			a.read(f, sc)
		}
	case "x":
		a.unresolved(sc, "an option names a program")
	case "s":
		if v.shown() == Unknown {
			a.unresolved(sc, "an option names a program")
			return
		}
		a.elsewhereRuns(v.text, sc)
	default:
		if !v.known && v.split {
			a.dynamic("the value of an option is not known")
		}
	}
}
