package shell

import (
	"path"
	"strings"
)

// works notes the repositories of a command of git, whose subcommand is in its name.
func (a *analyser) works(name string, g *arguments, sc *scope) {
	words := strings.Fields(name)[1:]
	var args []word
	for _, w := range words[1:] {
		args = append(args, literal(w))
	}
	args = append(args, g.all...)
	for _, w := range args {
		if strings.Contains(w.text, "ext::") {
			a.unresolved(sc.wrapped("git"), "the argument "+w.text+" of git starts a program")
		}
	}
	if words[0] == "init" && len(g.operands) == 1 {
		at := folders{unknown: true}
		if w := g.operands[0]; w.known && !w.glob {
			at = a.joins(sc.here, w.text)
		}
		sc = sc.copy()
		sc.here = at
	}
	a.repository(words[0], args, sc)
}

// gitWord judges an operand in the language of git: revisions, patterns of files and
// addresses of repositories.
func (a *analyser) gitWord(name, kind string, w word, sc *scope) {
	if !w.known {
		a.dynamic("an argument of git is not known")
		return
	}
	switch kind {
	case "indexed": // its content becomes a part of the repository
		if strings.HasPrefix(w.text, ":") || strings.ContainsAny(w.text, `*?[\`) {
			w = literal(".")
		}
		a.read(w.text, sc)
	case "pathspec":
		a.disturbed = true
		if strings.HasPrefix(w.text, ":") || strings.ContainsAny(w.text, `*?[\`) {
			w = literal(".")
		}
		a.touchWord(w, "w", sc)
		a.deleted([]word{w}, sc)
	case "repository", "source":
		a.gitAddress(name, w, sc)
		if kind == "source" {
			a.disturbed = true
			a.write(copyOf(w.text), sc)
		}
	default:
		a.operand(w.text, sc)
		if kind == "compared" && !sc.here.unknown { // it compares any two files
			a.word(w.text, sc)
		}
		if _, file, ok := strings.Cut(w.text, ":"); ok && file != "" && !strings.Contains(w.text, "://") {
			a.read(file, sc) // of a commit, or of the index
		}
	}
}

// gitAddress judges where another repository is: an address, a folder or the name of a
// remote.
func (a *analyser) gitAddress(name string, w word, sc *scope) {
	a.hostOf(w.text)
	a.remote(w.text)
	dir := strings.TrimPrefix(w.text, "file://")
	if dir == "" || !strings.ContainsRune("/.~", rune(dir[0])) {
		return
	}
	a.operand(dir, sc)
	if name == "git push" {
		a.disturbed = true
		a.write(dir, sc)
	}
}

// copyOf is the folder that git clone makes for an address.
func copyOf(address string) string {
	address = strings.TrimSuffix(strings.TrimRight(address, "/"), "/.git")
	name := strings.TrimSuffix(path.Base(address), ".git")
	return name[strings.LastIndexByte(name, ':')+1:]
}
