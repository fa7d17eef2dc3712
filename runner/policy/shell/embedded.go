package shell

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// embeddedLimit bounds how many parts of the words of one command are looked at.
const embeddedLimit = 256

// embedded notes what the words of an opaque command name, as a whole or somewhere inside:
// shells and interpreters that a text of another language may start, files, and hosts.
func (a *analyser) embedded(args []word, sc *scope) {
	left := embeddedLimit
	option := ""
	for _, w := range args {
		name, text := option, w.text
		option = ""
		if strings.HasPrefix(text, "-") {
			n, v, attached := strings.Cut(text, "=")
			switch {
			case attached:
				name, text = n, v
			case len(text) > 2 && text[1] != '-' && strings.IndexByte("/~.@", text[2]) >= 0:
				name, text = text[:2], text[2:]
			default:
				name, option = text, text
			}
		}
		if w.known {
			if text != w.text || strings.Contains(text, " ") {
				a.mayStart(text, sc)
			}
			for _, marker := range []string{"exec:", "EXEC:", "system:", "SYSTEM:"} { // as addresses of socat
				if _, command, ok := strings.Cut(text, marker); ok {
					command, _, _ = strings.Cut(command, ",")
					a.mayStart(command, sc)
				}
			}
			left = a.partsOf(name, text, sc, left)
		}
	}
}

// partsOf judges the parts of a text, which an option may have in front of it.
func (a *analyser) partsOf(option, text string, sc *scope, left int) int {
	a.embeddedHosts(text)
	for from := 0; from < len(text) && left > 0; left-- {
		start := from + strings.IndexFunc(text[from:], partOfName)
		if start < from {
			break
		}
		end := start + strings.IndexFunc(text[start:], func(r rune) bool { return !partOfName(r) })
		if end < start {
			end = len(text)
		}
		part := strings.TrimRight(text[start:end], ".")
		if runsText(path.Base(part)) && startsThere(option, part, text[:start], text[end:]) {
			a.startsInside(text[start:], part, sc)
		}
		if isPath(part) && !(strings.HasPrefix(part, "//") && strings.HasSuffix(text[:start], ":")) {
			a.pathInside(option, part, text[:start], text[end:], sc)
		}
		from = end
	}
	return left
}

// mayStart notes that a text of several words, or the attached value of an option, may be
// a command.
func (a *analyser) mayStart(text string, sc *scope) {
	words := strings.Fields(strings.TrimLeft(text, "!| "))
	if len(words) == 0 || len(words[0]) < 2 || words[0][0] == '-' || len(a.facts.Maybe) >= wordsLimit {
		return
	}
	name := path.Base(words[0])
	if strings.IndexFunc(name, func(r rune) bool { return !partOfName(r) }) < 0 && !runsText(name) {
		a.facts.Maybe = append(a.facts.Maybe, Command{Name: name, Argv: words, Wrappers: sc.wrappers})
	}
}

func partOfName(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_./~+%-*?", r) || r > 127
}

func isPath(text string) bool {
	return len(text) > 1 && (text[0] == '/' && strings.Trim(text, "/*?.") != "" || strings.HasPrefix(text, "./") || strings.HasPrefix(text, "../") || strings.HasPrefix(text, "~/"))
}

// startsThere reports whether the name of a shell stands where a program does: it has the
// path of one, the text in front of it runs what follows, or an option's value begins with
// it.
func startsThere(option, part, before, after string) bool {
	if path.IsAbs(part) {
		return true
	}
	before = strings.TrimRight(before, " \t\"'\\")
	if before == "" {
		return strings.HasPrefix(after, " -") || namesCommand(option) && (after == "" || after[0] == ' ')
	}
	for _, end := range []string{"!", "|", "(", ";", "`", "&&", "exec", "exec:", "EXEC:", "SYSTEM:", "system", "system:", "spawn", "popen", "shell", "run", "cmd", "command"} {
		if strings.HasSuffix(before, end) {
			return true
		}
	}
	return false
}

// namesCommand reports whether the value of an option may be a command.
func namesCommand(option string) bool {
	option = strings.ToLower(option)
	switch option {
	case "-e", "-c", "-x", "-r", "-p":
		return true
	}
	return slices.ContainsFunc([]string{"exec", "command", "cmd", "shell", "rsh", "hook", "pager", "editor", "browser", "run", "prog", "eval", "pipe", "filter", "script"}, func(s string) bool { return strings.Contains(option, s) })
}

// namesOutput reports whether the value of an option may be a file that is written.
func namesOutput(option string) bool {
	switch option {
	case "-o", "-O", "-w", "-W":
		return true
	}
	if !strings.HasPrefix(option, "-") || len(option) < 4 {
		return false
	}
	option = strings.ToLower(option)
	return slices.ContainsFunc([]string{"out", "write", "dump", "log", "save", "dest", "export", "report", "backup"}, func(s string) bool { return strings.Contains(option, s) })
}

// startsInside judges a program whose name stands at the beginning of a text. Where the
// text is nothing but a simple command, its arguments are known.
func (a *analyser) startsInside(text, program string, sc *scope) {
	if words, ok := splitString(literal(text)); ok && len(words) > 0 && words[0].text == program {
		a.starts(words, sc)
		return
	}
	a.starts([]word{literal(program)}, sc)
}

// pathInside notes a path of an opaque command: it is read or written.
func (a *analyser) pathInside(option, text, before, after string, sc *scope) {
	if runsText(path.Base(text)) {
		return // it is started
	}
	before = strings.ToLower(strings.TrimRight(before, " \"'"))
	if namesOutput(option) || slices.ContainsFunc([]string{">", "out=", "output=", "open:", "create:", "creat:", "out-file", "writefile("}, func(s string) bool { return strings.HasSuffix(before, s) }) ||
		strings.HasPrefix(after, `", "w`) || strings.HasPrefix(after, "', 'w") || strings.HasPrefix(after, `","w`) || strings.HasPrefix(after, "','w") {
		a.disturbed = true
		a.write(text, sc)
	}
	if slices.ContainsFunc(a.paths(text, sc), func(p string) bool { return slices.Contains(a.facts.Writes, p) }) && !namesOutput(option) {
		a.dynamic("what the script writes to " + text + " may decide what " + a.facts.Commands[a.current].Name + " does")
	}
	a.read(text, sc)
	a.operand(text, sc)
	a.tree([]word{literal(text)}, sc)
}

// embeddedEnvironment notes what the variables name that are set for one command, if that
// is opaque: they may name its pager, its editor, a file with its settings.
func (a *analyser) embeddedEnvironment(first int, assigns []*syntax.Assign, sc *scope) {
	if !slices.ContainsFunc(a.facts.Commands[first:], func(c Command) bool { return c.Opaque != "" }) {
		return
	}
	for _, as := range assigns {
		if v := a.value(as.Value); v.known && v.text != "" {
			a.mayStart(v.text, sc)
			a.partsOf("--command", v.text, sc, embeddedLimit)
		}
	}
}

var (
	embeddedURL = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>|()]+`)
	})
	embeddedHost = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?:^|[\s=,:"'@])(?:([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}):\d{2,5}\b|(\d{1,3}(?:\.\d{1,3}){3})\b)|[A-Za-z0-9._-]+@([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)`)
	})
)

// embeddedHosts notes the hosts of the addresses in a text: URLs, HOST:PORT, USER@HOST
// and numeric ones.
func (a *analyser) embeddedHosts(text string) {
	if !strings.ContainsAny(text, ".@") && !strings.Contains(text, "://") {
		return
	}
	for _, m := range embeddedURL().FindAllString(text, embeddedLimit) {
		if u, err := url.Parse(m); err == nil && u.Host != "" {
			a.network(false)
			a.host(u.Hostname())
		}
	}
	if strings.Contains(text, "://") {
		return
	}
	for _, m := range embeddedHost().FindAllStringSubmatch(text, embeddedLimit) {
		a.network(false)
		a.host(m[1] + m[2] + m[3])
	}
}
