package shell

import (
	"path"
	"slices"
	"strings"
)

var (
	gitNetwork = []string{"fetch", "pull", "push", "clone", "ls-remote", "submodule"}
	gitWrites  = []string{"checkout", "switch", "restore", "reset", "clean", "stash", "merge", "rebase", "pull", "cherry-pick", "revert", "apply", "am", "sparse-checkout"}
	gitReads   = []string{
		"status", "log", "diff", "show", "branch", "tag", "rev-parse", "ls-files", "blame", "describe", "shortlog", "reflog", "cat-file", "add", "commit", "rm", "mv",
		"init", "remote", "grep", "ls-tree", "rev-list", "merge-base", "name-rev", "show-ref", "format-patch", "worktree", "archive", "gc", "fsck", "count-objects",
		"notes", "version", "help", "check-ignore", "diff-tree", "for-each-ref", "whatchanged", "range-diff",
	}
	// gitPrograms are options that name a program; git accepts them cut short.
	gitPrograms = []string{
		"--upload-pack", "--receive-pack", "--exec", "--ext-diff", "--open-files-in-pager", "--config", "--config-env", "--template", "--textconv", "--exec-path",
		"--gpg-sign", "--tool", "--extcmd", "--remote", "--strategy",
	}
)

func git(a *analyser, name string, args []word, sc *scope) {
	defer func(n int) { a.disturbed = a.disturbed || len(a.facts.Writes) > n }(len(a.facts.Writes))
	inner := sc.copy()
	i := 0
	for ; i < len(args) && args[i].known && strings.HasPrefix(args[i].text, "-"); i++ {
		switch t := args[i].text; {
		case t == "-C":
			i++
			if i < len(args) {
				a.enters(args[i], inner)
			}
		case t == "--no-pager" || t == "-P" || t == "--bare" || t == "--literal-pathspecs" || t == "--no-optional-locks" || t == "--version" || t == "--help":
		default:
			a.unresolved(sc.wrapped(name), "the option "+t+" of git decides what runs")
			return
		}
	}
	if i >= len(args) {
		return
	}
	sub := args[i]
	rest := args[i+1:]
	if !sub.known {
		a.unresolved(sc.wrapped(name), "a git command that is not known")
		return
	}
	if slices.Contains(gitNetwork, sub.text) || sub.text == "remote" && len(rest) > 0 && rest[0].text == "update" {
		named := a.named
		defer func() { a.network(a.named == named || gitElsewhere(rest)) }()
	}
	if reason := gitLaunches(sub.text, rest); reason != "" {
		a.unresolved(sc.wrapped(name), reason)
		return
	}
	a.gitArguments(sub.text, rest, inner)
	a.repository(sub.text, rest, inner)
	if sub.text == "grep" || sub.text == "archive" {
		a.tree([]word{{text: ".", known: true}}, inner)
	}
	if slices.Contains(gitWrites, sub.text) {
		a.write(".", inner)
	}
}

// gitElsewhere reports whether a command of git may connect to hosts that a repository
// names.
func gitElsewhere(args []word) bool {
	return slices.ContainsFunc(args, func(w word) bool {
		return len(w.text) > 3 && slices.ContainsFunc([]string{"--all", "--multiple", "--recurse-submodules", "--recursive", "--remote-submodules"}, func(o string) bool {
			name, _, _ := strings.Cut(w.text, "=")
			return strings.HasPrefix(o, name)
		})
	})
}

// gitLaunches returns why a git command may start a program, or "".
func gitLaunches(sub string, args []word) string {
	if !slices.Contains(gitNetwork, sub) && !slices.Contains(gitWrites, sub) && !slices.Contains(gitReads, sub) || sub == "submodule" {
		return "git " + sub + " may start a program"
	}
	for _, w := range args {
		if !w.known {
			continue
		}
		t, _, _ := strings.Cut(w.text, "=")
		if strings.HasPrefix(t, "--") && len(t) > 3 {
			for _, p := range gitPrograms {
				if strings.HasPrefix(p, t) && !(t == "--no" || t == "--text") {
					return "the option " + t + " of git names a program"
				}
			}
		}
		switch {
		case sub == "grep" && strings.HasPrefix(t, "-O"),
			(sub == "clone" || sub == "ls-remote" || sub == "fetch") && (strings.HasPrefix(t, "-u") || t == "-c"),
			sub == "rebase" && strings.HasPrefix(t, "-x"), sub == "rebase" && strings.HasPrefix(t, "-i"), strings.Contains(w.text, "ext::"),
			(sub == "commit" || sub == "tag") && strings.HasPrefix(t, "-S"):
			return "the argument " + t + " of git starts a program"
		}
	}
	return ""
}

// gitFiles are options of git whose value is a file; write: git writes it. A letter may
// have its value attached, a word may be shortened.
var gitFiles = []struct {
	sub, option string
	write       bool
}{
	{"", "--output", true},
	{"archive", "-o", true},
	{"format-patch", "-o", true},
	{"format-patch", "--output-directory", true},
	{"commit", "-F", false},
	{"commit", "--file", false},
	{"commit", "-t", false},
	{"commit", "--template", false},
	{"commit", "--pathspec-from-file", false},
	{"tag", "-F", false},
	{"tag", "--file", false},
	{"notes", "-F", false},
	{"notes", "--file", false},
	{"merge", "-F", false},
	{"merge", "--file", false},
	{"blame", "--contents", false},
	{"blame", "-S", false},
	{"blame", "--ignore-revs-file", false},
	{"grep", "-f", false},
	{"archive", "--add-file", false},
	{"add", "--pathspec-from-file", false},
	{"checkout", "--pathspec-from-file", false},
	{"ls-files", "-X", false},
	{"ls-files", "--exclude-from", false},
	{"diff", "-O", false},
	{"show", "-O", false},
	{"log", "-O", false},
	{"apply", "--build-fake-ancestor", true},
}

// gitFile notes the file that an option of git names.
func (a *analyser) gitFile(sub string, at int, args []word, sc *scope) {
	for _, f := range gitFiles {
		if f.sub != "" && f.sub != sub {
			continue
		}
		value, ok := optionValue(f.option, at, args)
		switch {
		case !ok:
		case f.write:
			a.touchWord(value, "w", sc)
		default:
			a.touchWord(value, "r", sc)
		}
	}
}

// optionValue returns the value of an option, if it is the one at args[at].
func optionValue(option string, at int, args []word) (value word, ok bool) {
	w := args[at]
	name, text, attached := strings.Cut(w.text, "=")
	switch {
	case strings.HasPrefix(option, "--"):
		ok = len(name) > 4 && strings.HasPrefix(option, name)
	case w.text == option:
		ok, attached = true, false
	case strings.HasPrefix(w.text, option):
		ok, attached, text = true, true, w.text[len(option):]
	}
	switch {
	case !ok:
		return word{}, false
	case attached:
		return word{text: text, known: true, glob: w.glob}, true
	case at+1 < len(args):
		return args[at+1], true
	}
	return word{}, false
}

func (a *analyser) gitArguments(sub string, args []word, sc *scope) {
	repository := false // the first operand has been seen
	for i, w := range args {
		if w.known {
			a.gitFile(sub, i, args, sc)
		}
		text := i > 0 && args[i-1].known && slices.Contains([]string{"-m", "--message", "--author", "--date", "-am"}, args[i-1].text)
		switch {
		case !w.known:
			if !(text && !w.split) {
				a.dynamic("an argument of git is not known")
			}
		case text:
		case strings.HasPrefix(w.text, "-"):
			if _, to, ok := strings.Cut(w.text, "="); ok && sub == "push" && strings.HasPrefix(w.text, "--rep") {
				a.hostOf(to)
				a.remote(to)
			}
		case sub == "mv":
			a.read(w.text, sc)
			a.write(w.text, sc)
			a.tree([]word{w}, sc)
		case sub == "rm":
			a.write(w.text, sc)
		case sub == "apply" || sub == "am":
			a.read(w.text, sc)
		case slices.Contains(gitNetwork, sub):
			a.hostOf(w.text)
			// What follows the repository are names like HEAD:main.
			if !repository || strings.Contains(w.text, "@") {
				a.remote(w.text)
			}
			repository = repository || strings.Trim(w.text, "0123456789") != "" // no number of --depth
		default:
			a.operand(w.text, sc)
			if sub == "diff" && !sc.here.unknown { // it compares any two files
				a.word(w.text, sc)
			}
			if _, file, ok := strings.Cut(w.text, ":"); ok && file != "" && !strings.Contains(w.text, "://") {
				a.read(file, sc) // of a commit, or of the index
			}
		}
	}
	if sub == "clone" {
		var ops []word
		for _, w := range args {
			if w.known && !strings.HasPrefix(w.text, "-") {
				ops = append(ops, w)
			}
		}
		if len(ops) > 1 {
			a.write(ops[len(ops)-1].text, sc)
		} else if len(ops) == 1 {
			a.write(strings.TrimSuffix(path.Base(ops[0].text), ".git"), sc)
		}
	}
}
