package policy

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/policy/shell"
)

// A call whose facts a policy has relied on is bound to them when it runs: where the
// analysis of its script was wrong, a command fails instead of doing what nobody has
// allowed.
//
//	the tool's calls can be bound     no                    unbound
//	the facts                         dynamic, or opaque    unbound: they are no bound
//	a rule or an entry that reads     none                  unbound: a default, such as byRisk, allows
//	facts could concern the call                            what the isolation holds
//	otherwise                                               bound, whatever the rule or entry gave
//
// An approval of a person binds nothing; see Decide.

// boundPaths bounds the paths of one binding. The call may not change those beyond it.
const boundPaths = 2000

// binding returns the bounds of a call, nil if it has none.
func (e *Engine) binding(j *judged, in *input) *message.Binding {
	f := in.facts
	if !j.tool.Binds || !f.shell || f.script.Dynamic || f.script.Opaque || !e.readsFacts(j) {
		return nil
	}
	b := &message.Binding{Network: f.script.Network || len(f.net.Hosts) > 0, Programs: e.context.Workspace.programs(f)}
	b.Paths = e.context.Workspace.gitFolders(f)
	renames, replaces := f.renames(), f.replaces()
	for i := range f.paths {
		p := &f.paths[i]
		if p.Op != opWrite && p.Op != opDelete || f.unmatched(p) {
			continue
		}
		if p.Real == shell.Unknown {
			return nil // it is judged as unknown, too
		}
		op := message.BoundRemove
		switch {
		case p.Op == opWrite && (p.redirect || !replaces):
			op = message.BoundWrite
		case p.Op == opWrite:
			op = message.BoundReplace
		}
		ops := []message.BoundOp{op}
		if renames && !p.redirect {
			ops = append(ops, message.BoundRename)
		}
		for _, at := range e.context.Workspace.entries(f, p) {
			for _, op := range ops {
				one := message.BoundPath{Path: at, Op: op, Links: p.Links}
				if filepath.IsAbs(at) && len(b.Paths) < boundPaths && !slices.Contains(b.Paths, one) {
					b.Paths = append(b.Paths, one)
				}
			}
		}
	}
	return b
}

// gitFolders are the folders in which the git of a script keeps its data. Any command of git
// writes there, also one that only shows: it refreshes what it knows of the files.
func (w Workspace) gitFolders(f *facts) (all []message.BoundPath) {
	for _, r := range f.script.Repositories {
		dir := w.resolve(f.script.Joined(r.Dir), opRead)
		repo, found := findRepository(dir.Real, r.Named)
		if !found || !filepath.IsAbs(dir.Real) {
			continue
		}
		own := path.Dir(repo.index)
		folders := []string{own}
		if to, err := os.ReadFile(path.Join(own, "commondir")); err == nil { // of a linked working tree
			folders = append(folders, path.Join(own, strings.TrimSpace(string(to))))
		}
		for _, folder := range folders {
			for _, op := range []message.BoundOp{message.BoundReplace, message.BoundRemove} {
				all = add(all, message.BoundPath{Path: realPath(folder), Op: op})
			}
		}
	}
	return all
}

// entries are the path with all links resolved and, for a link itself, that of its name.
func (w Workspace) entries(f *facts, p *Path) []string {
	full := p.Clean
	if !strings.ContainsAny(p.Raw, "*?[") && !strings.HasPrefix(p.Raw, "~") {
		if full = f.script.Joined(p.Raw); !filepath.IsAbs(full) {
			full = filepath.Clean(w.Root) + "/" + full
		}
	}
	full = strings.TrimRight(full, "/")
	all := []string{p.Real}
	if base := path.Base(full); filepath.IsAbs(full) && base != ".." && base != "." && base != "/" {
		all = add(all, path.Join(realPath(full[:strings.LastIndexByte(full, '/')+1]), base))
	}
	return all
}

// unmatched reports whether a path is a pattern whose matches are paths of their own.
func (f *facts) unmatched(p *Path) bool {
	return strings.ContainsAny(p.Clean, "*?[") && slices.ContainsFunc(f.paths, func(q Path) bool {
		return q.Raw == p.Raw && q.Op == p.Op && q.Clean != p.Clean
	})
}

// programs are what a script starts, by name or path.
func (w Workspace) programs(f *facts) []string {
	var all []string
	for i := range f.script.Commands {
		c := &f.script.Commands[i]
		all = addNew(all, c.Wrappers...)
		name := c.Name
		if len(c.Argv) > 0 {
			name = c.Argv[0]
		}
		if strings.Contains(name, "/") && !filepath.IsAbs(name) {
			if len(f.script.Folders) > 0 {
				continue // it is not known from which folder
			}
			name = w.resolve(path.Join(f.script.dir, name), opExecute).Real
		}
		all = addNew(all, name)
	}
	starts := slices.Clone(f.script.Starts)
	if slices.ContainsFunc(f.script.Commands, func(c command) bool { return c.Name == "tar" }) {
		starts = append(starts, "gzip", "bzip2", "xz", "zstd")
	}
	if f.script.Network && slices.ContainsFunc(f.script.Commands, func(c command) bool { return c.Name == "git" }) {
		starts = append(starts, "git-remote-https", "git-remote-http") // of the folder of git's own programs
	}
	if len(starts) > 0 {
		all = addNew(all, "sh") // most programs start others with system or popen
	}
	return addNew(all, starts...)
}

func addNew(list []string, more ...string) []string {
	for _, s := range more {
		if s != "" && s != shell.Unknown {
			list = add(list, s)
		}
	}
	return list
}

// renames reports whether a command of the script renames files.
func (f *facts) renames() bool {
	return slices.ContainsFunc(f.script.Commands, func(c command) bool { return slices.Contains(renamers, c.Name) })
}

// replaces reports whether a command of the script may write other files beside those that
// it names, to put them in their place.
func (f *facts) replaces() bool {
	return slices.ContainsFunc(f.script.Commands, func(c command) bool { return !slices.Contains(inPlace, c.Name) && !slices.Contains(renamers, c.Name) })
}

var (
	// renamers give files other names.
	renamers = []string{"mv", "git"}
	// inPlace are programs and commands of the shell that write nothing beside the files
	// that they name.
	inPlace = []string{
		"[", ":", "awk", "basename", "cat", "cd", "chgrp", "chmod", "chown", "cmp", "comm", "command", "cp", "cut", "date", "dd", "df", "diff", "dirname", "du", "echo",
		"env", "exit", "expr", "export", "false", "file", "find", "fold", "grep", "egrep", "fgrep", "head", "hexdump", "hostname", "id", "jq", "ln", "ls", "md5sum", "mkdir",
		"mkfifo", "mktemp", "nl", "nproc", "od", "paste", "popd", "printenv", "printf", "pushd", "pwd", "read", "readlink", "realpath", "return", "rg", "rm", "rmdir", "seq",
		"set", "sha1sum", "sha256sum", "sleep", "stat", "strings", "tac", "tail", "tee", "test", "timeout", "touch", "tr", "tree", "true", "truncate", "uname", "uniq",
		"unset", "wait", "wc", "which", "whoami", "xargs", "xxd", "yes",
	}
)

// readsFacts reports whether a rule or an entry reads what a call of the tool does.
func (e *Engine) readsFacts(j *judged) bool {
	return e.reader.enforced.byPath || j.enforced.readsFacts(j.tool)
}

func (g *group) readsFacts(t *Tool) bool {
	for _, action := range []v1alpha1.Action{v1alpha1.ActionDeny, v1alpha1.ActionAsk, v1alpha1.ActionRedact, v1alpha1.ActionAllow} {
		if slices.ContainsFunc(g.calls[action], (*rule).readsFacts) {
			return true
		}
	}
	return slices.ContainsFunc(g.lists, func(p *Compiled) bool {
		return slices.ContainsFunc(p.entries, func(en entry) bool { return en.readsFacts(t) })
	})
}

func (r *rule) readsFacts() bool {
	return r.when != nil && (r.paths || r.when.Reads("cmd") || r.when.Reads("paths") || r.when.Reads("net") || r.when.Reads("variables"))
}

// readsFacts reports whether the entry is about what a call of the tool does: about single
// commands, or about paths.
func (e *entry) readsFacts(t *Tool) bool {
	return e.pattern != "*" && e.concerns(t.names()) || e.permission == externalDirectory || e.concerns([]string{"edit", "read"}) && !e.concerns(t.names())
}
