package shell

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Repository is one that a command of git works on.
type Repository struct {
	// Dir is where git begins to look for it.
	Dir string `json:"dir"`
	// Named is true if Dir is the repository, and git does not search another.
	Named bool `json:"named,omitempty"`
	// Content is true if the command shows the content of files, or copies it, without
	// naming each of them.
	Content bool `json:"content,omitempty"`
	// Paths are what it is limited to, relative to Dir; none are all.
	Paths []string `json:"paths,omitempty"`
}

// repository notes the repositories of a command of git.
func (a *analyser) repository(sub string, args []word, sc *scope) {
	shows := gitShows(sub, args)
	for _, dir := range a.paths(".", sc) {
		a.noteRepository(Repository{Dir: dir, Content: shows, Paths: gitPaths(sub, args)})
	}
	// What comes from another one can be shown here.
	switch sub {
	case "clone", "fetch", "pull", "remote":
		for _, w := range args {
			if w.known && !strings.HasPrefix(w.text, "-") && !strings.Contains(strings.TrimPrefix(w.text, "file://"), ":") {
				dir := strings.TrimPrefix(w.text, "file://")
				for _, at := range a.paths(dir, sc) {
					a.noteRepository(Repository{Dir: at, Named: true, Content: true})
				}
			}
		}
	}
}

// noteRepository notes a repository once.
func (a *analyser) noteRepository(on Repository) {
	switch {
	case slices.ContainsFunc(a.facts.Repositories, func(r Repository) bool {
		return r.Dir == on.Dir && r.Named == on.Named && r.Content == on.Content && slices.Equal(r.Paths, on.Paths)
	}):
	case len(a.facts.Repositories) >= repositoriesLimit:
		a.dynamic("the script has too many commands of git")
	default:
		a.facts.Repositories = append(a.facts.Repositories, on)
	}
}

// gitPaths are the paths that a command is limited to. Only arguments after -- certainly
// do not name a commit; a pattern may be anything. A file named by its hash or by a tag is
// shown by git show whatever its path is.
func gitPaths(sub string, args []word) []string {
	if sub == "stash" || sub == "show" && namesObjects(args) {
		return nil
	}
	var paths []string
	behind := sub == "blame"
	for i, w := range args {
		switch {
		case w.known && w.text == "--" && taken(args, i):
			return nil
		case w.known && w.text == "--":
			behind = true
		case !behind || sub == "blame" && w.known && strings.HasPrefix(w.text, "-"):
		case !w.known || w.text == "" || strings.ContainsAny(w.text, `:*?[\`) || w.text[0] == '-':
			return nil
		default:
			paths = append(paths, w.text)
		}
	}
	return paths
}

var (
	// gitQuiet are options with which git prints commits and names only; a number after -
	// is one, too.
	gitQuiet = strings.Fields(`--oneline --stat --shortstat --numstat --name-only --name-status --summary --dirstat --compact-summary --raw --graph --all
		--decorate --no-decorate --format --pretty --since --until --after --before --author --committer --grep --abbrev --abbrev-commit --no-abbrev-commit --no-merges
		--merges --first-parent --reverse --follow --date --branches --tags --remotes --max-count --skip --color --no-color --topo-order --date-order
		--diff-filter --no-patch --quiet --cached --staged --relative --left-right --cherry-pick --cherry --boundary --no-renames --find-renames --merge-base
		-s -n -M -C -z -q -i -r -t`)
	// gitSilent are those of them that keep show and diff from showing content.
	gitSilent = strings.Fields("--stat --shortstat --numstat --name-only --name-status --summary --dirstat --compact-summary --raw --no-patch --quiet -s")
	// gitFlags are options that surely take no value of their own.
	gitFlags = strings.Fields(`-p -u -s -q -w -z --patch --cached --staged --oneline --stat --shortstat --numstat --name-only --name-status --summary --raw --no-patch --quiet
		--graph --all --no-color --follow --reverse --word-diff --no-index --stdout --no-merges --merges --first-parent --abbrev-commit`)
	// gitRefs are options that stand for names of objects, which may be those of files.
	gitRefs = strings.Fields("--all --branches --tags --remotes")
	// gitStash are options of stash that say what is put away.
	gitStash = strings.Fields("-m --message -u --include-untracked -k --keep-index --no-keep-index -a --all --index --staged")

	numbered = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^-n?\d+$`) })
	// headOnly is a name that can only be a commit.
	headOnly = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(HEAD|@)([~^]\d*)*$`) })
)

// gitShows reports whether a command shows the content of files, or copies it. An unknown
// option may do that.
func gitShows(sub string, args []word) bool {
	if slices.ContainsFunc(args, func(w word) bool { return strings.Contains(w.text, "%(raw") }) {
		return true
	}
	switch sub {
	case "archive", "format-patch", "range-diff", "grep", "blame":
		return true
	case "log", "reflog", "whatchanged", "diff-tree":
		return !only(args, gitQuiet)
	case "stash":
		switch {
		case len(args) > 0 && (args[0].text == "show" || !args[0].known):
			return !only(args, gitQuiet) || !has(args, gitSilent)
		case len(args) > 0 && args[0].text == "list":
			return !only(args, gitQuiet)
		}
		return !only(args, slices.Concat(gitQuiet, gitStash))
	case "show":
		return !only(args, gitQuiet) || !has(args, gitSilent) || namesObjects(args)
	case "diff":
		return !only(args, gitQuiet) || !has(args, gitSilent)
	case "cat-file":
		return len(args) != 2 || !slices.Contains([]string{"-t", "-s", "-e"}, args[0].text) || strings.HasPrefix(args[1].text, "-")
	case "worktree":
		return len(args) == 0 || args[0].text == "add" || !args[0].known
	case "push":
		return slices.ContainsFunc(args, func(w word) bool { return strings.HasPrefix(w.text, "/") || strings.HasPrefix(w.text, ".") })
	case "status":
		return asks(args, "v", "--verbose")
	case "commit":
		return asks(args, "vpi", "--verbose", "--patch", "--interactive")
	case "add", "checkout", "reset", "restore":
		return asks(args, "pi", "--patch", "--interactive")
	case "notes":
		return asks(args, "Cc", "--reuse-message", "--reedit-message")
	case "am", "rebase":
		return asks(args, "", "--show-current-patch")
	case "fsck":
		return asks(args, "", "--lost-found")
	}
	return false
}

// namesObjects reports whether an argument may be the name of a file's content: any name
// but that of a commit may be one.
func namesObjects(args []word) bool {
	for i, w := range args {
		switch {
		case w.text == "--" && !taken(args, i):
			return false
		case strings.HasPrefix(w.text, "-") && !slices.Contains(gitRefs, w.text) && !strings.Contains(w.text, "=") && w.known:
		case strings.HasPrefix(w.text, "--format=") || strings.HasPrefix(w.text, "--pretty="):
		case !w.known || !headOnly().MatchString(w.text):
			return true
		}
	}
	return false
}

// only reports whether all options are in a list.
func only(args []word, among []string) bool {
	for _, w := range args {
		name, _, _ := strings.Cut(w.text, "=")
		switch {
		case !w.known:
			return false
		case name == "--": // it may be the value of an option, with more behind it
		case !strings.HasPrefix(name, "-") || numbered().MatchString(name) || slices.Contains(among, name):
		default:
			return false
		}
	}
	return true
}

// has reports whether one of some options is certainly present.
func has(args []word, options []string) bool {
	for i, w := range args {
		if name, _, _ := strings.Cut(w.text, "="); w.known && slices.Contains(options, name) && !taken(args, i) {
			return true
		}
		if w.text == "--" {
			return false
		}
	}
	return false
}

// taken reports whether a word may be the value of the option before it.
func taken(args []word, i int) bool {
	if i == 0 {
		return false
	}
	before := args[i-1]
	return !before.known || strings.HasPrefix(before.text, "-") && !strings.Contains(before.text, "=") &&
		!numbered().MatchString(before.text) && !slices.Contains(gitFlags, before.text)
}

// asks reports whether an option may be present: a letter in a cluster, or a long one,
// also shortened.
func asks(args []word, letters string, long ...string) bool {
	return slices.ContainsFunc(args, func(w word) bool {
		switch {
		case strings.HasPrefix(w.text, "--"):
			return len(w.text) > 2 && slices.ContainsFunc(long, func(l string) bool { return strings.HasPrefix(l, w.text) })
		case strings.HasPrefix(w.text, "-"):
			return letters != "" && strings.ContainsAny(w.text, letters)
		}
		return false
	})
}
