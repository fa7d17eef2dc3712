package shell

import (
	"maps"
	"slices"
	"strings"
)

// program is what may be asked of a listed command. The lists are closed: an option that
// is not in them is refused, because it could write, or start another program.
type program struct {
	// options as optionList reads them.
	options optionList
	// count accepts -5 as a number of lines or commits.
	count bool
	// takes is what the other arguments are.
	takes operands
	// versions are options that print a version. Such a call has no other argument
	// and does not run in the workspace.
	versions []string
	// commands are the subcommands, where the first argument is one.
	commands map[string]program
	// fixed are put before the arguments of a subcommand.
	fixed []string
	// neutral calls concern no file.
	neutral bool
}

// operands are the arguments that are not options.
type operands int

const (
	none       operands = iota
	paths               // files and folders
	pattern             // the first is a pattern, unless an option is; the rest are paths
	revisions           // revisions of git, and paths
	expression          // what find takes
)

// programs only show, with the options that are listed. What follows links (ls -L,
// grep -R, find -L, tail -F), reads names from a file (wc --files0-from), writes
// (sort -o), waits (tail -f) or starts programs (find -exec, git -c, git grep -O) is left
// out.
var programs = map[string]program{
	"cat":  {takes: paths, options: "n b s E T A v e t number number-nonblank squeeze-blank show-ends show-tabs show-all show-nonprinting"},
	"du":   {takes: paths, options: "a h s c k m b x d: max-depth: human-readable summarize total apparent-size all bytes si one-file-system exclude:"},
	"find": {takes: expression},
	"grep": {takes: pattern, count: true, options: "i v n l L c o w x E F G P H h r s q a A: B: C: m: e: ignore-case invert-match line-number files-with-matches " +
		"files-without-match count only-matching word-regexp line-regexp extended-regexp fixed-strings basic-regexp perl-regexp with-filename no-filename recursive " +
		"no-messages quiet text after-context: before-context: context: max-count: regexp: color:: include: exclude: exclude-dir:"},
	"head": {takes: paths, count: true, options: "n: c: q v lines: bytes: quiet verbose"},
	"ls": {takes: paths, options: "a A l h R r t S X U 1 d F i n p s u c g o G B all almost-all human-readable recursive reverse size directory classify:: inode " +
		"color:: time-style: sort: time: full-time si group-directories-first no-group numeric-uid-gid"},
	"md5sum":    {takes: paths, options: "b t binary text"},
	"pwd":       {},
	"sha256sum": {takes: paths, options: "b t binary text"},
	"stat":      {takes: paths, options: "c: t format: terse"},
	"tail":      {takes: paths, count: true, options: "n: c: q v lines: bytes: quiet verbose"},
	"wc":        {takes: paths, options: "l w c m L lines words bytes chars max-line-length"},

	"git": {versions: []string{"--version"}, commands: map[string]program{
		"blame":     {takes: revisions, options: "L: l t s e w root show-name show-number show-email line-porcelain porcelain date: since: abbrev:"},
		"branch":    {takes: none, options: "a r v all remotes list verbose show-current sort: no-color"},
		"describe":  {takes: revisions, options: "all tags long always exact-match first-parent abbrev: match: exclude: candidates:"},
		"diff":      {takes: revisions, options: gitDiff + " cached staged merge-base", fixed: gitQuietly, count: true},
		"log":       {takes: revisions, options: gitDiff + gitLog, fixed: gitQuietly, count: true},
		"ls-files":  {takes: revisions, options: "c d m o i s u z t v k f cached deleted modified others ignored stage unmerged exclude-standard full-name error-unmatch directory eol abbrev::"},
		"ls-tree":   {takes: revisions, options: "r d t l z long name-only name-status full-name full-tree abbrev::"},
		"rev-list":  {takes: revisions, options: gitLog + " count objects header parents children timestamp left-right", count: true},
		"rev-parse": {takes: revisions, options: "q verify quiet short:: abbrev-ref:: symbolic symbolic-full-name show-toplevel show-prefix show-cdup git-dir is-inside-work-tree is-bare-repository is-shallow-repository"},
		"shortlog":  {takes: revisions, options: "n s e c numbered summary email committer all no-merges merges since: until: author: group:", count: true},
		"show":      {takes: revisions, options: gitDiff + gitLog, fixed: gitQuietly, count: true},
		"status":    {takes: revisions, options: "s b v z short branch long show-stash porcelain:: untracked-files:: ignored:: ahead-behind no-ahead-behind renames no-renames", fixed: []string{"--ignore-submodules=all"}},
		"tag":       {takes: none, options: "l n:: list sort: no-color"},
	}},

	"go":      {versions: []string{"version"}},
	"node":    {versions: []string{"-v", "--version"}},
	"npm":     {versions: []string{"-v", "--version"}},
	"pnpm":    {versions: []string{"-v", "--version"}},
	"python3": {versions: []string{"-V", "--version"}},
}

const (
	gitDiff = "p u s w b R U: M:: C:: S: G: patch no-patch unified: raw stat:: numstat shortstat summary dirstat:: compact-summary name-only name-status " +
		"word-diff:: color-words:: no-color color:: no-renames find-renames:: find-copies:: find-copies-harder diff-filter: pickaxe-all pickaxe-regex minimal " +
		"patience histogram diff-algorithm: function-context ignore-all-space ignore-space-change ignore-space-at-eol ignore-blank-lines ignore-cr-at-eol " +
		"no-prefix src-prefix: dst-prefix: full-index abbrev:: relative text a check exit-code quiet inter-hunk-context: patch-with-stat z"
	gitLog = " n: i E F max-count: skip: since: after: until: before: author: committer: grep: all-match invert-grep regexp-ignore-case extended-regexp fixed-strings " +
		"merges no-merges first-parent not all branches:: tags:: remotes:: exclude: oneline graph decorate:: no-decorate follow reverse topo-order date-order " +
		"author-date-order date: relative-date format: pretty:: abbrev-commit no-abbrev-commit no-notes simplify-by-decoration full-history ancestry-path " +
		"cherry-pick cherry cherry-mark left-only right-only boundary no-walk source"
)

// gitQuietly keep git from programs that a repository names to show files with, and from
// the settings of submodules.
var gitQuietly = []string{"--no-ext-diff", "--no-textconv", "--ignore-submodules=all"}

// offered names the commands, with what may follow some of them.
func offered() string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		p := programs[name]
		if p.commands == nil && p.versions != nil {
			name += " " + p.versions[0]
		}
		if p.commands != nil {
			name += " (" + strings.Join(slices.Sorted(maps.Keys(p.commands)), ", ") + ")"
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}
