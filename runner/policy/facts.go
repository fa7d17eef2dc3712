package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/policy/shell"
)

// What a call does to a path.
const (
	opRead    = "read"
	opWrite   = "write"
	opExecute = "execute"
	opDelete  = "delete"
)

// Path is a file that a call touches.
type Path struct {
	// Raw as it was written, Clean absolute without dots, Real with symbolic
	// links resolved. "?" is not known.
	Raw   string `json:"raw"`
	Clean string `json:"clean"`
	Real  string `json:"real"`
	// InWorkspace is true if both Clean and Real are in the workspace.
	InWorkspace bool `json:"inWorkspace"`
	// Op is read, write, execute or delete; execute is an argument of a program
	// that is not known.
	Op string `json:"op"`
	// Secret is true if the name is one that commonly holds credentials.
	Secret bool `json:"secret,omitempty"`
	// Links is how many names a file has, where it has several; those in the
	// workspace are paths of their own.
	Links int `json:"links,omitempty"`

	redirect bool
}

// facts are what is known about a call besides its arguments.
type facts struct {
	root string
	// workspace as the call sees it.
	workspace Workspace
	shell     bool
	script    script
	paths     []Path
	urls      []address
	net       network
	// talks: the tool itself opens connections; unread: an argument may be an address that
	// could not be parsed.
	talks, unread bool
	// read counts the names of files that were matched against patterns.
	read int
	// rewrites are those of the script whose files only the run can tell.
	rewrites []shell.Rewrite
	// renamed: some paths are other names of files.
	renamed bool
	// large: the values exceed what the static bounds assume.
	large bool
	// unreadable is why it cannot be established what the call does; nil if it can.
	unreadable error
}

type script struct {
	Commands []command
	// perhaps are programs that an opaque command may start.
	perhaps []command
	// dir is the folder that the call names to start in.
	dir string
	shell.Facts
}

type network struct {
	Hosts   []string `json:"hosts,omitempty"`
	Ports   []int    `json:"ports,omitempty"`
	Schemes []string `json:"schemes,omitempty"`
}

// pathOps are the built-in tools whose argument path is a file.
var pathOps = map[string]string{
	"read": opRead, "list": opRead, "grep": opRead, "glob": opRead, "codesearch": opRead, "edit": opWrite, "write": opWrite,
}

// factLimits are what the static bounds of package expr assume.
const (
	largeArgs  = 4096
	largeItems = 64
	urlLimit   = 200
	// factItems, factText and factPath are the sizes that the types of cmd, paths
	// and net declare; larger facts are judged with counting, which takes several
	// times as long. A path in the workspace of a run has its id in it, twice.
	factItems = 32
	factText  = 128
	factPath  = 256
)

// establish finds out what a call does. It reads the file system only for symbolic links
// and for the names that match a pattern of a script.
func (w Workspace) establish(t *Tool, raw json.RawMessage, args any) *facts {
	w = w.forTool(t)
	f := &facts{root: filepath.Clean(w.Root), workspace: w}
	fields, _ := args.(map[string]any)
	switch {
	case t.runsCommands():
		f.shell = true
		w.shellFacts(f, t, fields)
	case t.Builtin == "skill": // its file is one of a skill, and judged where it lies
	case t.Builtin == "workspace_fs":
		p, _ := fields["path"].(string)
		op := opWrite
		if fields["op"] == "read" {
			op = opRead
		}
		f.add(w.resolve(cmp.Or(p, "."), op))
	case t.Builtin == "patch":
		w.patched(f, fields)
	case t.Builtin == "task_apply":
		w.merged(f, fields)
	case pathOps[t.Builtin] != "":
		p, ok := fields["path"].(string)
		if !ok || p == "" {
			p = "."
		}
		if pattern, ok := fields["pattern"].(string); ok && t.Builtin == "glob" {
			p = searched(p, pattern)
		}
		f.add(w.resolve(p, pathOps[t.Builtin]))
	default:
		w.namedPaths(f, t, fields)
	}
	f.talks = !f.shell && slices.Contains(t.Effects, v1alpha1.EffectNetwork)
	if t.Server != "" {
		f.address(t.Server)
	}
	f.addresses(fields)
	f.large = len(raw) > largeArgs || bytes.Count(raw, []byte{','}) > largeItems || f.exceeds()
	return f
}

// searched is the folder a glob pattern starts from: it may leave the path.
func searched(dir, pattern string) string {
	fixed := pattern
	if at := strings.IndexAny(pattern, `*?[{\`); at >= 0 { // the last part is matched in the folder before it
		fixed = pattern[:strings.LastIndexByte(pattern[:at], '/')+1]
	}
	switch {
	case strings.HasPrefix(pattern, "/") || strings.HasPrefix(pattern, "~") && fixed != "":
		return fixed
	case strings.HasPrefix(pattern, "~"):
		return pattern
	case strings.Contains("/"+pattern+"/", "/../"):
		return dir + "/" + pattern
	}
	return dir
}

// exceeds reports whether the facts are larger than their types declare.
func (f *facts) exceeds() bool {
	return len(f.paths) > factItems || len(f.net.Hosts) > factItems || len(f.script.Commands) > factItems || len(f.script.Variables) > factItems || len(f.script.Inherited) > factItems ||
		slices.ContainsFunc(f.paths, func(p Path) bool { return max(len(p.Raw), len(p.Clean), len(p.Real)) > factPath }) ||
		slices.ContainsFunc(f.script.Commands, func(c command) bool {
			return len(c.Argv) > factItems || slices.ContainsFunc(c.Argv, func(a string) bool { return len(a) > factText })
		})
}

func (f *facts) add(p Path) { f.paths = append(f.paths, p) }

// namedPaths takes arguments that are called path, file or dir as what they say.
func (w Workspace) namedPaths(f *facts, t *Tool, fields map[string]any) {
	op := opRead
	if t.risk() != "R0" {
		op = opWrite
	}
	for _, name := range slices.Sorted(keys(fields)) {
		low := strings.ToLower(name)
		if !slices.ContainsFunc([]string{"path", "file", "filename", "dir", "directory", "folder", "paths", "files", "source", "destination", "target", "cwd", "workdir"},
			func(s string) bool {
				return low == s || strings.HasSuffix(low, "_"+s) || strings.HasSuffix(name, strings.ToUpper(s[:1])+s[1:])
			}) {
			continue
		}
		switch v := fields[name].(type) {
		case string:
			if v != "" && !strings.Contains(v, "://") {
				f.add(w.resolve(v, op))
			}
		case []any:
			for _, x := range v {
				if s, ok := x.(string); ok && s != "" && !strings.Contains(s, "://") {
					f.add(w.resolve(s, op))
				}
			}
		}
	}
}

func keys(m map[string]any) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func (w Workspace) shellFacts(f *facts, t *Tool, fields map[string]any) {
	text, dir, ok := t.script(fields)
	f.script.dir = dir
	f.script.Facts = shell.ParseIn(text, dir, shell.Files{IsFolder: w.isFolder, HasLinks: w.hasLinks(f), Script: w.scriptText})
	if !ok {
		f.script.Dynamic = true
		f.script.Reasons = append(f.script.Reasons, "there is no command")
	}
	for _, c := range f.script.Facts.Commands {
		f.script.Commands = append(f.script.Commands, newCommand(c))
	}
	for _, c := range f.script.Maybe {
		f.script.perhaps = append(f.script.perhaps, newCommand(c))
	}
	if dir != "" {
		f.add(w.resolve(dir, opRead))
	}
	w.shellPaths(f)
	for _, h := range f.script.Hosts {
		f.net.Hosts = add(f.net.Hosts, h)
		f.net.Hosts = add(f.net.Hosts, canonicalHost(h))
	}
}

// shellPaths adds the paths that a script touches.
func (w Workspace) shellPaths(f *facts) {
	// The folder that a command runs in is touched by it, whatever the command does.
	for _, p := range f.script.Folders {
		f.add(w.resolve(f.script.Joined(p), opRead))
	}
	redirected := func(p string, write bool) bool {
		return slices.Contains(f.script.Redirects, shell.Redirect{Path: p, Write: write})
	}
	for _, p := range f.script.Reads {
		r := w.resolve(f.script.Joined(p), opRead)
		r.redirect = redirected(p, false)
		f.add(r)
		f.somewhere(p, false)
		w.expanded(f, p, opRead)
	}
	for _, p := range f.script.Writes {
		r := w.resolve(f.script.Joined(p), opWrite)
		r.redirect = redirected(p, true)
		f.add(r)
		f.somewhere(p, !slices.Contains(f.script.Deletes, p))
		w.expanded(f, p, opWrite)
	}
	// A deletion is a write and a delete: a rule may be written for either.
	for _, p := range f.script.Deletes {
		f.add(w.resolve(f.script.Joined(p), opDelete))
		w.expanded(f, p, opDelete)
	}
	for _, p := range f.script.Operands {
		f.add(w.resolve(f.script.Joined(p), opExecute))
		f.somewhere(p, false)
		w.expanded(f, p, opExecute)
	}
	for _, p := range f.script.Words {
		if strings.ContainsAny(p, "*?[") {
			w.expanded(f, p, opExecute)
		}
		if r := w.resolve(f.script.Joined(p), opExecute); exists(r.Real) {
			f.add(r)
			f.script.Trees = add(f.script.Trees, p)
			f.script.Operands = add(f.script.Operands, p)
		}
	}
	w.unpacked(f)
	w.changedScripts(f)
	w.steered(f)
}

func add[T comparable](list []T, v T) []T {
	if slices.Contains(list, v) {
		return list
	}
	return append(list, v)
}
