package policy

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/policy/shell"
)

// remember returns what an approval with scope Always would allow from now on. It is made
// from the facts of the call, never from its text, and is narrow: one kind of command, one
// folder, one tool with the same arguments. For a call that can only be approved once it
// returns the reason.
//
// The same function decides whether a later call is covered: the grants that the call
// would yield must all have been given already. So a call that does anything more is never
// covered, whatever it looks like.
func (j *judged) remember(in *input) (grants []message.Grant, once string) {
	f := in.facts
	if j.tool.risk() == v1alpha1.RiskR3 {
		return nil, "what cannot be undone is approved one by one"
	}
	for i := range f.paths {
		switch p := &f.paths[i]; {
		case p.Secret:
			return nil, "it touches a file that holds secrets"
		case !p.InWorkspace, f.workspace.isTemporary(p.Clean):
			return nil, "it reaches outside the workspace"
		case p.Op != opRead && kept().MatchString(p.Real+"/"):
			return nil, "git keeps hooks and settings there that run programs"
		case p.Real != shell.Unknown && relative(p.Real, f.workspace.realRoot()) != relative(p.Clean, f.root):
			return nil, "it goes through a symbolic link"
		}
	}
	switch {
	case f.shell:
		return f.rememberScript(in, j.tool.Name)
	case pathOps[j.tool.Builtin] != "" && len(f.paths) > 0:
		return f.rememberPaths(j.tool)
	}
	return j.rememberArgs(in)
}

// kept is in the folder of a repository.
var kept = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)/[.]git/`) })

func relative(p, root string) string { return strings.TrimPrefix(strings.TrimPrefix(p, root), "/") }

// rememberScript takes each command by as many words as say what it is, and binds
// it to the folder it runs in and to those that the script changes.
func (f *facts) rememberScript(in *input, tool string) ([]message.Grant, string) {
	s := &f.script
	switch {
	case s.Dynamic && len(s.Reasons) > 0:
		return nil, "only the run can tell what it does: " + s.Reasons[0]
	case s.Dynamic || len(s.Commands) == 0:
		return nil, "only the run can tell what it does"
	case slices.ContainsFunc(s.Redirects, func(r shell.Redirect) bool { return !r.Write }):
		return nil, "it redirects from a file"
	}
	dir, once := f.startsIn(in)
	if once != "" {
		return nil, once
	}
	patterns, once := f.patterns()
	if once != "" {
		return nil, once
	}
	if s.Opaque {
		return nil, f.unclear()
	}
	places, once := f.changes()
	if once != "" {
		return nil, once
	}
	if len(patterns)*len(places) > grantLimit {
		return nil, "it changes too much"
	}
	var grants []message.Grant
	for _, pattern := range patterns {
		g := message.Grant{Permission: tool, Pattern: pattern, Dir: dir}
		if len(places) == 0 {
			grants = add(grants, g)
		}
		for _, g.Within = range places {
			grants = add(grants, g)
		}
	}
	return grants, ""
}

// grantLimit bounds what one approval is remembered as: a person is to read it.
const grantLimit = 64

// patterns are the commands of a script.
func (f *facts) patterns() (patterns []string, once string) {
	s := &f.script
	for i := range s.Commands {
		c := &s.Commands[i]
		if c.Name == "cd" && len(s.Commands) > 1 {
			continue // that is the folder of the others
		}
		pattern, words, once := c.pattern(len(s.Writes) > 0 || s.Network)
		switch {
		case once != "":
		case words == 1 && s.Network:
			once = c.Name + " reaches other hosts"
		case len(s.Hosts) > 0:
			once = "it reaches " + s.Hosts[0]
		}
		if once != "" {
			return nil, once
		}
		patterns = add(patterns, pattern)
	}
	return patterns, ""
}

// moves is a script that begins by going into a folder. Only there it is certain
// that everything else runs in it.
var moves = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*cd +([A-Za-z0-9_.][A-Za-z0-9_./-]*) *&&`)
})

// startsIn is the folder in which the commands of a script run.
func (f *facts) startsIn(in *input) (dir, once string) {
	args := in.args()
	dir = f.script.dir
	text, _ := args["command"].(string)
	moved := 0
	for i := range f.script.Commands {
		switch f.script.Commands[i].Name {
		case "cd", "chdir", "pushd", "popd":
			moved++
		}
	}
	if moved > 0 {
		m := moves().FindStringSubmatch(text)
		rest := strings.ReplaceAll(text, "&&", "")
		if m == nil || moved > 1 || dir != "" || strings.Contains(rest, "&") {
			return "", "it changes the folder on the way"
		}
		dir = m[1]
	}
	if dir == "" {
		return "", ""
	}
	if !filepath.IsAbs(dir) {
		dir = f.root + "/" + dir
	}
	dir = filepath.Clean(dir)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", "the folder that it runs in is not there"
	}
	if !inside(dir, f.root) || realPath(dir) != f.workspace.realRoot()+strings.TrimPrefix(dir, f.root) {
		return "", "it runs outside the workspace, or behind a link"
	}
	return relative(dir, f.root), ""
}

// changes are the places that a script writes and deletes.
func (f *facts) changes() (places []string, once string) {
	for i := range f.paths {
		p := &f.paths[i]
		if p.Op == opRead {
			continue
		}
		if places, once = f.place(places, p.Clean); once != "" {
			return nil, once
		}
	}
	return places, ""
}

// place adds the folder of a file, and a folder by itself: its neighbours were
// not looked at.
func (f *facts) place(places []string, clean string) ([]string, string) {
	rel := relative(clean, f.root)
	dir := path.Dir(rel)
	info, err := os.Stat(clean)
	switch {
	case rel == "" || rel == clean:
		return nil, "it may change the whole workspace"
	case strings.ContainsAny(dir, "*?[") || dir == "." && strings.ContainsAny(rel, "*?["):
		return nil, strconv.Quote(rel) + " reads like a pattern"
	case err == nil && info.IsDir():
		return add(add(places, rel), rel+"/*"), ""
	case dir == ".":
		return add(places, rel), ""
	}
	return add(places, dir+"/*"), ""
}

// rememberPaths takes the folder of a file that is read or changed, the folder
// itself where one is listed or searched, and a file in the workspace's own
// folder by its name: everything in the workspace is never learnt.
func (f *facts) rememberPaths(t *Tool) ([]message.Grant, string) {
	permission := t.Builtin
	if pathOps[t.Builtin] == opWrite {
		permission = "edit"
	}
	var grants []message.Grant
	for i := range f.paths {
		rel := relative(f.paths[i].Clean, f.root)
		switch {
		case rel == "":
			return nil, "it concerns the whole workspace"
		case strings.ContainsAny(rel, "*?"):
			return nil, strconv.Quote(rel) + " reads like a pattern"
		}
		if dir := path.Dir(rel); dir != "." && (permission == "edit" || permission == "read") {
			rel = dir + "/*"
		}
		grants = add(grants, message.Grant{Permission: permission, Pattern: rel})
	}
	return grants, ""
}

// rememberArgs grants a tool with the same arguments, by name, and the hosts in them.
func (j *judged) rememberArgs(in *input) ([]message.Grant, string) {
	given := in.args()
	fields := j.args.Fields()
	for _, name := range slices.Sorted(keys(given)) {
		if !plain().MatchString(name) || fields != nil && !slices.Contains(fields, name) {
			return nil, "its schema does not know the argument " + strconv.Quote(name)
		}
	}
	for _, host := range in.facts.net.Hosts {
		if !plain().MatchString(host) {
			return nil, "the host " + strconv.Quote(host) + " has a strange name"
		}
	}
	var when []string
	if fields != nil {
		for _, name := range slices.Sorted(keys(given)) {
			if !identifier().MatchString(name) {
				return nil, "the argument " + strconv.Quote(name) + " has a name that no rule can write"
			}
			when = append(when, "has(call.args."+name+")")
		}
		for _, name := range fields {
			if _, is := given[name]; !is && identifier().MatchString(name) {
				when = append(when, "!has(call.args."+name+")")
			}
		}
	} else {
		when = append(when, "call.args.all(k, k in "+quoted(slices.Sorted(keys(given)))+")")
	}
	if len(in.facts.paths) > 0 {
		there, once := j.rememberNamed(in.facts.paths)
		if once != "" {
			return nil, once
		}
		when = append(when, there)
	}
	if hosts := in.facts.net.Hosts; len(hosts) > 0 {
		when = append(when, "net.hosts.all(h, h in "+quoted(slices.Sorted(slices.Values(hosts)))+")")
	}
	if len(when) == 0 {
		when = []string{"true"}
	}
	return []message.Grant{{Tool: j.tool.Name, When: strings.Join(when, " && ")}}, ""
}

// rememberNamed is a condition that holds for paths in the folders of those that
// a tool was given: what only reads may read elsewhere in the workspace.
func (j *judged) rememberNamed(paths []Path) (when, once string) {
	if j.tool.risk() == v1alpha1.RiskR0 {
		return "paths.all(p, p.inWorkspace)", ""
	}
	var there []string
	for i := range paths {
		raw := paths[i].Raw
		if !plainPath().MatchString(raw) || slices.Contains(strings.Split(raw, "/"), "..") {
			return "", "the path " + strconv.Quote(raw) + " has a strange name"
		}
		if dir, _ := path.Split(raw); dir != "" {
			there = add(there, "p.raw.startsWith('"+dir+"')")
		} else {
			there = add(there, "p.raw == '"+raw+"'")
		}
	}
	slices.Sort(there)
	return "paths.all(p, p.inWorkspace && !p.raw.contains('..') && (" + strings.Join(there, " || ") + "))", ""
}

// plainPath is a path that an expression can hold without quoting.
var plainPath = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_./][A-Za-z0-9_./-]*$`) })

// args are the arguments of the call.
func (in *input) args() map[string]any {
	call, _ := in.vars["call"].(map[string]any)
	given, _ := call["args"].(map[string]any)
	return given
}

// identifier matches a name that can follow a dot.
var identifier = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })

// plain are names that an expression can hold without quoting.
var plain = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:-]*$`) })

// quoted writes plain names as an expression does.
func quoted(names []string) string {
	if len(names) == 0 {
		return "[]"
	}
	return "['" + strings.Join(names, "', '") + "']"
}
