package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/expr"
	"agentctl.dev/agentctl/runner/policy/shell"
)

// A file that may not be read is protected from every tool: the rules about the tool read
// apply to each file that another tool would read. Where a call takes a whole folder, each
// file in it is checked separately:
//
//	tool         checked                                       a file with a stricter decision than its folder
//	bash         before the call, over the folders of a script makes the decision on the whole call stricter
//	grep, glob   after the call, over the files of the result  is left out (see Unreadable)
//	list, read   the folder: names are not content             is named

// reader is the tool by which reading one file is judged: the agent's own read,
// or the one it would have.
func (e *Engine) newReader(policies []*Compiled) *judged {
	if own := e.shipped(builtinRead); own != nil {
		return own
	}
	return e.judgedTool(&Tool{
		Name: builtinRead, Builtin: builtinRead, Source: "builtin", Risk: v1alpha1.RiskR0,
		Effects: []v1alpha1.Effect{v1alpha1.EffectRead}, Category: v1alpha1.CategoryRead,
	}, policies)
}

const builtinRead = "read"

// shipped is the agent's own tool of a builtin, nil if it has none.
func (e *Engine) shipped(builtin string) *judged {
	for _, name := range slices.Sorted(keysOf(e.tools)) {
		if e.tools[name].tool.Builtin == builtin {
			return e.tools[name]
		}
	}
	return nil
}

func keysOf(m map[string]*judged) func(func(string) bool) { return maps.Keys(m) }

// note records which parts of a group depend on paths; that is needed at each call.
func (g *group) note() { g.byPath, g.listed = g.dependsOnPaths(), g.listsPaths() }

// speaksOfPaths reports whether a rule or a list could refuse a call because of a path.
func (j *judged) speaksOfPaths() bool { return j.enforced.byPath || j.enforced.listed }

// dependsOnPaths reports whether paths matter to the rules that could refuse a call.
func (g *group) dependsOnPaths() bool {
	for _, action := range []v1alpha1.Action{v1alpha1.ActionDeny, v1alpha1.ActionAsk} {
		for _, r := range g.calls[action] {
			if r.paths {
				return true
			}
		}
	}
	return false
}

// listsPaths reports whether a list could refuse a path.
func (g *group) listsPaths() bool {
	return slices.ContainsFunc(g.lists, func(p *Compiled) bool {
		return slices.ContainsFunc(p.entries, func(e entry) bool { return e.action != v1alpha1.ActionAllow })
	})
}

// on is the input of the same call as if it touched nothing but these paths.
func (in *input) on(paths ...Path) *input {
	f := *in.facts
	f.paths = paths
	out := *in
	out.facts, out.variables = &f, map[*Compiled]*expr.Lazy{}
	if in.unknown != nil { // whatever else is unknown: these are touched
		out.unknown = expr.NewUnknowns([]string{"cmd", "commands"}, []string{"cmd", "writes"}, []string{"cmd", "reads"}, []string{"cmd", "hosts"},
			[]string{"cmd", "variables"}, []string{"cmd", "inherited"}, []string{"cmd", "network"}, []string{"cmd", "opaque"}, []string{"net"})
	}
	out.vars = maps.Clone(in.vars)
	out.vars["paths"] = func() any { return f.pathsValue() }
	if c, ok := in.vars["call"].(map[string]any); ok && len(paths) == 1 {
		if args, ok := c["args"].(map[string]any); ok && args["path"] != nil {
			c, args = maps.Clone(c), maps.Clone(args)
			args["path"] = paths[0].Raw
			c["args"] = args
			out.vars["call"] = c
		}
	}
	return &out
}

// known is the input of the same call as if it did nothing but what is known of it.
func (in *input) known() *input {
	f := *in.facts
	f.paths = slices.DeleteFunc(slices.Clone(f.paths), func(p Path) bool { return p.Real == shell.Unknown })
	f.script.Commands = slices.DeleteFunc(slices.Clone(f.script.Commands), func(c command) bool { return c.Name == shell.Unknown })
	out := *in
	out.facts, out.variables = &f, map[*Compiled]*expr.Lazy{}
	out.unknown = expr.NewUnknowns([]string{"cmd", "writes"}, []string{"cmd", "reads"}, []string{"cmd", "hosts"}, []string{"cmd", "variables"}, []string{"cmd", "network"}, []string{"cmd", "opaque"}, []string{"net"})
	out.vars = maps.Clone(in.vars)
	out.vars["paths"] = func() any { return f.pathsValue() }
	out.vars["cmd"] = func() any { return f.cmdValue() }
	return &out
}

// reading is the judge of single files for one call.
type reading struct {
	// by is the tool by which files are judged, op what it does to them.
	by *judged
	op string
	// in is a call of it for the workspace itself.
	in *input
	// files are the rules and lists whose result depends on the file. Rules about read
	// that apply to every file, or to none, do not count for other tools.
	files group
	// failing are those of them that cannot be judged for the workspace either, maybe
	// because they ask for other arguments than a path: of a file they say only what
	// they can.
	failing []*rule
}

func (e *Engine) reading(ctx context.Context) (*reading, error) {
	return e.judging(ctx, e.reader, opRead)
}

// judging is the judge of single files by a tool that takes a path.
func (e *Engine) judging(ctx context.Context, by *judged, op string) (*reading, error) {
	in, err := e.input(by, message.ToolCall{ID: op, Tool: by.tool.Name, Args: json.RawMessage(`{"path":"."}`)})
	if err != nil {
		return nil, fmt.Errorf("judge single files by %s: %w", by.tool.Name, err)
	}
	r := &reading{by: by, op: op, in: in, files: newGroup(by.enforced.mode)}
	for action, rules := range by.enforced.calls {
		for _, rule := range rules {
			if action == v1alpha1.ActionRedact || !rule.paths {
				continue
			}
			if _, err := rule.truth(ctx, in); err == nil {
				r.files.calls[action] = append(r.files.calls[action], rule)
			} else if action != v1alpha1.ActionAllow {
				r.failing = append(r.failing, rule)
			}
		}
	}
	for _, p := range by.enforced.lists {
		if slices.ContainsFunc(p.entries, func(en entry) bool { return en.pattern != "*" }) {
			r.files.lists = append(r.files.lists, p)
		}
	}
	return r, nil
}

// judge returns the outcome of the rules and lists whose result depends on the file.
func (r *reading) judge(ctx context.Context, in *input) (outcome, bool) {
	o, failed := r.files.strict(ctx, r.by, in)
	if o.action != v1alpha1.ActionDeny {
		_, failure := r.files.allow(ctx, r.by, in)
		if failed = first(failed, failure); failed != nil {
			o = *failed
		}
	}
	for _, rule := range r.failing {
		if t, err := rule.truth(ctx, in); err == nil && t == expr.True && rank(rule.spec.Action) > rank(o.action) {
			o = outcome{action: rule.spec.Action, rule: rule.id, message: rule.explain(ctx, in, r.by, "refuses")}
		}
	}
	return o, o.action != ""
}

// of is what is said about a file.
func (r *reading) of(ctx context.Context, p Path) (outcome, bool) {
	p.Op, p.redirect = r.op, false
	return r.judge(ctx, r.in.on(p))
}

// anyFile is what is said about reading a file that is not known.
func (r *reading) anyFile(ctx context.Context, reasons []string) (outcome, bool) {
	in := r.in.on(Path{Raw: shell.Unknown, Clean: shell.Unknown, Real: shell.Unknown, Op: opRead})
	in.facts.script.Reasons = reasons
	in.unknown = expr.NewUnknowns([]string{"paths"}, []string{"call", "args", "path"})
	o, said := r.judge(ctx, in)
	if o.action == v1alpha1.ActionDeny {
		o.action = v1alpha1.ActionAsk // it is not known to be such a file
	}
	return o, said
}

// reach makes an outcome stricter by what is said about each file that the call
// reaches, named or in a folder.
func (e *Engine) reach(ctx context.Context, j *judged, in *input, o outcome) outcome {
	if o.action == v1alpha1.ActionDeny || j == e.reader {
		return o
	}
	if denied := j.sure(ctx, in); denied != nil {
		return *denied
	}
	byReader := e.reader.enforced.byPath && (in.facts.script.Dynamic || len(in.facts.paths) > 0 || len(in.facts.script.Trees) > 0)
	paths := e.reader.enforced.byPath || j.enforced.byPath || j.enforced.listed
	trees := paths && in.facts.shell && len(in.facts.script.Trees) > 0
	repositories := paths && len(in.facts.script.Repositories) > 0
	rewrites := (j.enforced.byPath || j.enforced.listed) && len(in.facts.rewrites) > 0
	if !byReader && !trees && !repositories && !rewrites {
		return o
	}
	r, err := e.reading(ctx)
	if err != nil {
		return outcome{action: v1alpha1.ActionDeny, rule: "default/error", message: err.Error()}
	}
	stricter := func(x outcome, where string) {
		if rank(x.action) > rank(o.action) {
			if where != "" {
				where += ": "
			}
			o.action, o.rule, o.message = x.action, x.rule, bounded(where+x.message)
		}
	}
	if byReader {
		for _, p := range in.facts.paths {
			if p.Op != opRead && p.Op != opExecute || p.Real == shell.Unknown && in.facts.script.Dynamic {
				continue
			}
			if x, more := r.of(ctx, p); more && !(j.namesFolders() && isFolder(p)) {
				stricter(x, p.Raw)
			}
		}
		if in.facts.script.Dynamic {
			if x, more := r.anyFile(ctx, in.facts.script.Reasons); more {
				stricter(x, "")
			}
		}
	}
	if rewrites {
		e.reachRewritten(ctx, j, in, stricter)
	}
	if trees {
		e.reachTrees(ctx, j, in, r, stricter, func() bool { return o.action == v1alpha1.ActionDeny })
	}
	if repositories {
		e.reachRepositories(ctx, j, in, r, stricter)
	}
	return o
}

// sure denies a call for a path that it surely touches, or for a command that it surely
// runs, whatever else it does: what is unknown of a script must not hide what is known.
func (j *judged) sure(ctx context.Context, in *input) *outcome {
	if in.unknown == nil {
		return nil
	}
	on := in.known()
	for _, r := range j.enforced.calls[v1alpha1.ActionDeny] {
		if r.when == nil || r.negated || !r.when.Reads("paths") && !r.when.Reads("cmd") || !r.when.Spreads("paths") || !r.when.Spreads("cmd", "commands") || !r.when.Spreads("cmd", "inherited") {
			continue
		}
		if t, err := r.truth(ctx, on); err == nil && t == expr.True {
			return &outcome{action: v1alpha1.ActionDeny, rule: r.id, message: r.explain(ctx, on, j, "denies")}
		}
	}
	return nil
}

// reachRepositories judges the files that git has kept as the files themselves.
func (e *Engine) reachRepositories(ctx context.Context, j *judged, in *input, r *reading, stricter func(outcome, string)) {
	base := j.enforced.outcome(ctx, j, in.on(), true)
	paths, all := e.shown(ctx, j, in, r)
	for _, p := range paths {
		where := p.Raw + " is in the repository, so name the files that git shall show behind --"
		if x := j.enforced.outcome(ctx, j, in.on(p), true); rank(x.action) > rank(base.action) {
			stricter(x, where)
		}
		if x, more := r.of(ctx, p); more {
			stricter(x, where)
		}
	}
	if !all {
		if x, more := r.anyFile(ctx, []string{"which files the repository holds"}); more {
			stricter(x, "")
		}
	}
}

// namesFolders reports whether a folder is decided about by its files: names are not
// content.
func (j *judged) namesFolders() bool {
	return j.tool.runsCommands() || slices.Contains([]string{"codesearch", "glob", "grep", "list"}, j.tool.Builtin)
}

func isFolder(p Path) bool {
	info, err := os.Stat(p.Real)
	return err == nil && info.IsDir()
}

func (e *Engine) reachTrees(ctx context.Context, j *judged, in *input, r *reading, stricter func(outcome, string), settled func() bool) {
	base := j.enforced.outcome(ctx, j, in.on(), true)
	for _, tree := range in.facts.script.Trees {
		ops := in.facts.treeOps(tree)
		files, unknown := in.facts.workspace.within(in.facts, tree)
		if unknown != "" {
			stricter(outcome{action: v1alpha1.ActionAsk, rule: "default/folder", message: unknown}, tree)
		}
		for _, name := range files {
			if settled() {
				return // a folder may hold thousands, and nothing is stricter than a deny
			}
			for _, op := range ops {
				for _, p := range e.byAllNames(name, op) {
					if x := j.enforced.outcome(ctx, j, in.on(p), true); rank(x.action) > rank(base.action) {
						stricter(x, name)
					}
					if x, more := r.of(ctx, p); more && op != opDelete {
						stricter(x, name)
					}
				}
			}
		}
	}
}

// treeOps are what a script does to the files in a folder.
func (f *facts) treeOps(tree string) []string {
	var ops []string
	in := func(list []string) bool {
		return slices.Contains(list, tree) || slices.Contains(list, strings.TrimSuffix(tree, "/")+"/"+shell.Unknown)
	}
	if in(f.script.Deletes) {
		ops = append(ops, opDelete)
	}
	if in(f.script.Operands) {
		ops = append(ops, opExecute)
	}
	if len(ops) == 0 || in(f.script.Reads) {
		ops = append(ops, opRead)
	}
	return ops
}

// within lists the files in a folder, by paths relative to the workspace if they are in
// it. Unknown is why not all of them can be named, "" if they can.
func (w Workspace) within(f *facts, tree string) (files []string, unknown string) {
	p := w.resolve(f.script.Joined(tree), opRead)
	if f.workspace.isTemporary(p.Clean) {
		return nil, ""
	}
	if p.Real == shell.Unknown || strings.ContainsAny(tree, "*?[") { // patterns are expanded by themselves
		return nil, ""
	}
	seen := map[string]bool{}
	var walk func(dir string) string
	walk = func(dir string) (unknown string) {
		at := realPath(dir)
		if seen[at] {
			return ""
		}
		seen[at] = true
		in := w.list(dir, patternEntries-f.read)
		f.read += len(in.list) + 1
		switch {
		case in.outside:
			return "it leads outside the workspace to a folder that is not listed, and rules speak of single files"
		case !in.whole:
			return "it holds too many files to judge each of them, and rules speak of single files"
		}
		for _, e := range in.list {
			name := path.Join(dir, e.Name())
			isDir := e.IsDir()
			if e.Type()&os.ModeSymlink != 0 {
				info, err := os.Stat(name)
				isDir = err == nil && info.IsDir()
			}
			if isDir {
				if open := walk(name); open != "" {
					unknown = open
				}
				if f.read > patternEntries {
					return unknown
				}
				continue
			}
			files = append(files, strings.TrimPrefix(name, f.root+"/"))
		}
		return unknown
	}
	unknown = walk(p.Clean)
	return files, unknown
}

// Unreadable returns those of some files that a call must not read although it
// may read the folder they are in. Files are named relative to the workspace, those
// outside by their absolute paths. What a rule said of a folder outside, for example
// that a person has to be asked, was settled for all in it but secrets.
func (e *Engine) Unreadable(ctx context.Context, call message.ToolCall, files []string) ([]string, error) {
	return e.union(func(e *Engine) ([]string, error) { return e.unreadableOwn(ctx, call, files) })
}

func (e *Engine) unreadableOwn(ctx context.Context, call message.ToolCall, files []string) ([]string, error) {
	j, ok := e.tools[call.Tool]
	if !ok {
		return nil, fmt.Errorf("judge what %s has read: there is no such tool", call.Tool)
	}
	own, reader := j.enforced.byPath || j.enforced.listed, e.reader.enforced.byPath
	if !own && !reader {
		return nil, nil
	}
	in, err := e.input(j, call)
	if err != nil {
		return nil, fmt.Errorf("judge what %s has read: %w", call.Tool, err)
	}
	r, err := e.reading(ctx)
	if err != nil {
		return nil, err
	}
	base := j.enforced.outcome(ctx, j, in, true)
	settled := outcome{}
	for _, p := range in.facts.paths {
		if x, more := r.of(ctx, p); more && !p.InWorkspace && rank(x.action) > rank(settled.action) {
			settled = x
		}
	}
	var hidden []string
	named := e.byAllNames
	if j.tool.Builtin == "skill" {
		named = e.unlinked
	}
	for _, name := range files {
		if slices.ContainsFunc(named(name, opRead), func(p Path) bool {
			x := j.enforced.outcome(ctx, j, in.on(p), true)
			y, more := r.of(ctx, p)
			more = more && (p.InWorkspace || p.Secret || y.rule != settled.rule || rank(y.action) > rank(settled.action))
			return more || rank(x.action) > rank(base.action)
		}) {
			hidden = append(hidden, name)
		}
	}
	return hidden, nil
}
