// Package shell determines what a shell script would do, from its text alone.
//
// It accounts for every part of the syntax tree. A part that it does not understand makes
// the script dynamic: then neither the list of commands nor the list of paths is complete,
// and a policy treats them as unknown. So the lists may hold too much, never too little,
// unless Dynamic is set.
package shell

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Unknown replaces a command or a path that is known only at run time.
const Unknown = "?"

// Limits of a script. A longer or deeper one is dynamic.
const (
	sizeLimit  = 128 << 10
	depthLimit = 12
	nestLimit  = 500
	// braceLimit bounds the brace expansions of one word, whose number doubles
	// with each.
	braceLimit = 12
	// variablesLimit and wordsLimit bound lists that nothing else does.
	variablesLimit = 500
	wordsLimit     = 500
	// repositoriesLimit is lower: each may hold many files.
	repositoriesLimit = 50
	// scriptsLimit bounds the files that are judged by their text, which may run others.
	scriptsLimit = 16
)

// Command is a simple command that can run.
type Command struct {
	// Name is the last element of the program's path, after quote removal.
	Name string `json:"name"`
	// Argv is the command as written, after quote removal; an argument that is known only
	// at run time is "?".
	Argv []string `json:"argv"`
	// Env names the variables set for this command alone.
	Env []string `json:"env,omitempty"`
	// Wrappers are the programs that start this one, outermost first.
	Wrappers []string `json:"wrappers,omitempty"`
	// Opaque is why the command may do anything that its sandbox allows; "" if what it
	// does is known.
	Opaque string `json:"opaque,omitempty"`
	// Decisive: where the script ends with 0, this command did, if it was executed.
	Decisive bool `json:"decisive,omitempty"`
}

// Redirect is a file that the shell itself opens.
type Redirect struct {
	Path  string `json:"path"`
	Write bool   `json:"write"`
}

// Facts are what a script does.
type Facts struct {
	Commands []Command `json:"commands"`
	// Writes and Reads are paths as written: ~ and $HOME both as ~, relative
	// ones joined to a literal cd before them, globs kept.
	Writes []string `json:"writes"`
	Reads  []string `json:"reads"`
	// Deletes are those of Writes that are removed.
	Deletes []string `json:"deletes,omitempty"`
	// Operands are arguments of unknown programs that look like paths: they may
	// be read or written. Those that stand in a word of an opaque command are among
	// Reads, too, and behind an option for an output among Writes.
	Operands []string `json:"operands,omitempty"`
	// Words are arguments of unknown programs that may be names of files in the
	// current folder.
	Words []string `json:"words,omitempty"`
	// Caches are folders that programs keep for themselves, such as ~/.npm. They are not
	// among Writes: the programs work without them.
	Caches []string `json:"caches,omitempty"`
	// Redirects are those of Writes and Reads that the shell opens, not a command.
	Redirects []Redirect `json:"redirects,omitempty"`
	// Trees are folders that a command processes with all their content: it searches,
	// copies, packs, moves or removes them. They are in another list, too, unless the
	// command starts in the current folder without naming it.
	Trees []string `json:"trees,omitempty"`
	// Folders that the script changes to, has a program run in, or lists by a pattern.
	Folders []string `json:"folders,omitempty"`
	// Resplit are patterns whose matches are split into words: a name with a space in it
	// becomes several arguments.
	Resplit []string `json:"resplit,omitempty"`
	// Rewrites are folders in which files are made or changed that no argument names. Each is
	// among Writes, too.
	Rewrites []Rewrite `json:"rewrites,omitempty"`
	// Follows: a command may follow a symbolic link that one of Rewrites makes.
	Follows bool `json:"follows,omitempty"`
	// Scripts are files that a shell runs, and that were judged by their text. It must not
	// change until then.
	Scripts []string `json:"scripts,omitempty"`
	// Repositories that commands of git work on.
	Repositories []Repository `json:"repositories,omitempty"`
	// Hosts that are named in arguments.
	Hosts []string `json:"hosts,omitempty"`
	// Variables are the names of the variables whose values the script uses. HOME is
	// listed although it is written as ~ at the beginning of a path.
	Variables []string `json:"variables,omitempty"`
	// Inherited are those variables whose values come from outside the script: it uses them
	// and has not surely set them before. "*" is all of them, where a command shows them.
	Inherited []string `json:"inherited,omitempty"`
	// Network is true if a command can open a connection.
	Network bool `json:"network"`
	// Anywhere is true if a connection may lead to a host that no argument names: a
	// setting names it, or the program accepts connections.
	Anywhere bool `json:"anywhere,omitempty"`
	// Starts are programs that known commands start by themselves, as tar starts gzip.
	// They are not in Commands: no argument decides what they are told.
	Starts []string `json:"starts,omitempty"`
	// Maybe are commands that an opaque command starts if it takes its arguments for a
	// program and what it is told; each begins at another word.
	Maybe []Command `json:"maybe,omitempty"`
	// Opaque is true if a command is: see Command.
	Opaque bool `json:"opaque"`
	// Dynamic is true if it depends on the run which program runs or which path is
	// touched.
	Dynamic bool `json:"dynamic"`
	// Reasons why it is dynamic.
	Reasons []string `json:"reasons,omitempty"`

	joined map[string]string
}

// Joined returns a path of Reads, Writes or Operands with the dots it was
// written with: behind a symbolic link they lead elsewhere than on paper.
func (f *Facts) Joined(p string) string {
	if j, ok := f.joined[p]; ok {
		return j
	}
	return p
}

// Files is what the analysis may look up. The zero value knows no file.
type Files struct {
	// IsFolder reports whether a folder exists and can be entered. cd into it succeeds, as
	// long as nothing earlier in the script may have changed that; for another folder, the
	// script may continue in the folder that it was in.
	IsFolder func(dir string) bool
	// HasLinks reports whether a path is a symbolic link, or a folder that holds one.
	HasLinks func(file string) bool
	// Script returns the text of a file that a shell is to run; false for a file that has
	// none, or may be another one by then.
	Script func(file string) (text string, ok bool)
}

// Parse analyses a script that starts in the folder cwd; "" leaves relative
// paths as they are.
func Parse(script, cwd string) Facts { return ParseIn(script, cwd, Files{}) }

// ParseIn is Parse for a script whose files can be examined.
func ParseIn(script, cwd string, files Files) (facts Facts) {
	a := &analyser{
		facts: &facts, start: cwd, files: files, funcs: map[string]*function{},
		tainted: map[string]bool{}, computed: map[string]bool{}, changed: map[string]bool{},
		deciding: map[*syntax.CallExpr]bool{},
		loops:    map[string]int{}, elsewhere: map[string]int{}, iterated: map[string]bool{}, bare: map[string]bool{},
	}
	defer func() {
		// A panic of the parser or of ours must not look like an empty script.
		if r := recover(); r != nil {
			a.dynamic(fmt.Sprintf("the analysis broke off: %v", r))
		}
	}()
	at := folders{at: []string{cwd}}
	a.script(script, &scope{here: at, yes: at, no: at, previous: folders{unknown: true}, decides: true})
	a.evaluated()
	a.iteratedElsewhere()
	a.followed()
	a.misled()
	a.settleDecisive()
	if len(facts.Commands) == 0 && strings.TrimSpace(script) != "" && len(facts.Redirects) == 0 && !a.understood {
		a.dynamic("no command was found")
	}
	return facts
}

// scope is what a command inherits from what ran before it.
type scope struct {
	// here is where a command runs; yes and no are where the shell is behind it, where
	// it succeeds and where it fails.
	here, yes, no folders
	// previous is where the shell was before the last cd, stack what pushd has kept.
	previous folders
	stack    []folders
	// returned collects where the shell is when a function returns early.
	returned *folders
	wrappers []string
	// input is what the command reads from a pipe, where that is known.
	input *source
	// vars are the variables that surely have a value of the script by now.
	vars given
	// decides: the status of what runs is that of the script; see Command.Decisive.
	decides bool
}

func (s *scope) copy() *scope {
	c := *s
	return &c
}

func (s *scope) wrapped(name string) *scope {
	c := *s
	c.wrappers = append(slices.Clone(s.wrappers), name)
	c.decides = s.decides && slices.Contains(handing, name)
	return &c
}

// take continues with the state at the end of another scope.
func (s *scope) take(from *scope) {
	wrappers := s.wrappers
	*s = *from
	s.wrappers = wrappers
}

type analyser struct {
	facts *Facts
	depth int
	// start is the folder that the script starts in.
	start string
	files Files
	// disturbed: a command may have changed which folders are there.
	disturbed bool
	// current is the command that is judged, as an index of facts.Commands.
	current int
	// funcs are the functions that are declared.
	funcs map[string]*function
	// moves counts the commands that change the folder, calls the functions that were
	// walked again, rounds those of loops.
	moves, calls, rounds int
	// conditional counts the constructs around a statement that may not run, inside the
	// functions around it.
	conditional, inside int
	// tainted variables may hold text that is not a number; computed ones are read in
	// arithmetic, which evaluates their text again and can so run commands.
	tainted, computed map[string]bool
	// changed are the variables that the script sets by other means than a loop over
	// words, bound those that such a loop is at, with their value.
	changed map[string]bool
	bound   map[string]word
	// loops counts the loops over words by the name of their variable, elsewhere those
	// ways to set a variable that may run inside of any of them.
	loops, elsewhere map[string]int
	// iterated are the variables whose values were relied on, bare those that were used
	// without quotes.
	iterated, bare map[string]bool
	// understood is set by statements that are not commands: assignments, tests.
	understood bool
	// links is set when the script makes symbolic links, unpacks when it may make some that
	// only the run can tell.
	links, unpacks bool
	// named counts the hosts that arguments have named, each as often as they do.
	named int
	// trapped is set when a text of the script runs at some later time.
	trapped bool
	// leading is set when names that a pattern stands for may begin with a dash.
	leading bool
	// probes counts the commands that are examined for what they print.
	probes int
	// deciding are the commands of all texts that decide the status of the script.
	deciding map[*syntax.CallExpr]bool
}

// moved notes that the script changes its folder.
func (a *analyser) moved() {
	a.moves++
	if a.trapped {
		a.dynamic("a trap runs in a folder that is not known")
	}
}

func (a *analyser) dynamic(reason string) {
	a.facts.Dynamic = true
	if len(a.facts.Reasons) < 20 && !slices.Contains(a.facts.Reasons, reason) {
		a.facts.Reasons = append(a.facts.Reasons, reason)
	}
}

// opaque notes that the command which is judged just now may do anything that its sandbox
// allows: it is known which program runs, but not what it does.
func (a *analyser) opaque(reason string) {
	a.facts.Opaque = true
	if c := &a.facts.Commands[a.current]; c.Opaque == "" {
		c.Opaque = reason
	}
}

// unresolved records a command that cannot be resolved.
func (a *analyser) unresolved(sc *scope, reason string) {
	a.add(Command{Name: Unknown, Argv: []string{Unknown}, Wrappers: sc.wrappers})
	a.disturbed = true
	a.dynamic(reason)
}

func (a *analyser) add(c Command) { a.facts.Commands = append(a.facts.Commands, c) }

// script parses text and walks it.
func (a *analyser) script(text string, sc *scope) {
	a.depth++
	defer func() { a.depth-- }()
	switch {
	case a.depth > depthLimit:
		a.dynamic("scripts are nested too deeply")
		return
	case len(text) > sizeLimit:
		a.dynamic("the script is too long")
		return
	case strings.ContainsAny(text, "\x00\r"+someName):
		a.dynamic("the script holds a NUL, a carriage return or another control character")
		return
	case nesting(text) > nestLimit:
		a.dynamic("the script is nested too deeply")
		return
	}
	file, err := a.parse(text)
	if err != nil {
		a.dynamic("the script does not parse: " + err.Error())
		// What the parser has understood so far may still run: bash executes
		// line by line.
		if file == nil {
			return
		}
	}
	if len(file.Stmts) == 0 {
		a.understood = true
	}
	a.variables(file)
	if sc.decides {
		d := decider{marked: a.deciding}
		d.list(file.Stmts, true, false)
	}
	a.stmts(file.Stmts, sc)
}

// variables notes which variables a script uses the values of; a name that is
// computed has made it dynamic.
func (a *analyser) variables(file *syntax.File) {
	syntax.Walk(file, func(n syntax.Node) bool {
		if p, ok := n.(*syntax.ParamExp); ok && p.Param != nil && plainName().MatchString(p.Param.Value) {
			if len(a.facts.Variables) > variablesLimit {
				a.dynamic("the script uses too many variables")
				return false
			}
			a.facts.Variables = appendNew(a.facts.Variables, p.Param.Value)
		}
		return true
	})
}

// nesting is an upper bound of how deep the parser can recurse.
func nesting(text string) int {
	n := strings.Count(text, "(") + strings.Count(text, "{") + strings.Count(text, "`") + strings.Count(text, "[")
	if n <= nestLimit {
		n = 0
	} else {
		// Many brackets are fine as long as they are closed again soon.
		n = openBrackets(text)
	}
	for _, word := range []string{"if", "while", "until", "case", "for", "select", "time", "coproc", "function", "!"} {
		if c := strings.Count(text, word) - strings.Count(text, "fi") - strings.Count(text, "done") - strings.Count(text, "esac"); c > nestLimit {
			n = max(n, c)
		}
	}
	return n
}

func openBrackets(text string) int {
	open, most := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(', '{', '[':
			open++
			most = max(most, open)
		case ')', '}', ']':
			open = max(open-1, 0)
		}
	}
	return max(most, strings.Count(text, "`\\"))
}
