package policy

import (
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
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
	root   string
	shell  bool
	script script
	paths  []Path
	urls   []string
	net    network
	// talks: the tool itself opens connections; unread: an argument may be an address that
	// could not be parsed.
	talks, unread bool
	// read counts the names of files that were matched against patterns.
	read int
	// renamed: some paths are other names of files.
	renamed bool
	// large: the values exceed what the static bounds assume.
	large bool
}

type script struct {
	Commands []command
	shell.Facts
}

type network struct {
	Hosts   []string `json:"hosts,omitempty"`
	Ports   []int    `json:"ports,omitempty"`
	Schemes []string `json:"schemes,omitempty"`
}

// pathOps are the built-in tools whose argument path is a file.
var pathOps = map[string]string{
	"read": opRead, "list": opRead, "grep": opRead, "glob": opRead, "edit": opWrite, "write": opWrite, "patch": opWrite,
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
	f := &facts{root: filepath.Clean(w.Root)}
	fields, _ := args.(map[string]any)
	switch {
	case t.Builtin == "bash":
		f.shell = true
		w.shellFacts(f, fields)
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
	return len(f.paths) > factItems || len(f.net.Hosts) > factItems || len(f.script.Commands) > factItems || len(f.script.Variables) > factItems ||
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

func (w Workspace) shellFacts(f *facts, fields map[string]any) {
	text, ok := fields["command"].(string)
	dir, _ := fields["workdir"].(string)
	f.script.Facts = shell.ParseIn(text, dir, w.isFolder)
	if !ok {
		f.script.Dynamic = true
		f.script.Reasons = append(f.script.Reasons, "there is no command")
	}
	for _, c := range f.script.Facts.Commands {
		f.script.Commands = append(f.script.Commands, newCommand(c))
	}
	if dir != "" {
		f.add(w.resolve(dir, opRead))
	}
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
		w.expanded(f, p, opRead)
	}
	for _, p := range f.script.Writes {
		r := w.resolve(f.script.Joined(p), opWrite)
		r.redirect = redirected(p, true)
		f.add(r)
		w.expanded(f, p, opWrite)
	}
	// A deletion is a write and a delete: a rule may be written for either.
	for _, p := range f.script.Deletes {
		f.add(w.resolve(f.script.Joined(p), opDelete))
		w.expanded(f, p, opDelete)
	}
	for _, p := range f.script.Operands {
		f.add(w.resolve(f.script.Joined(p), opExecute))
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
	f.net.Hosts = append(f.net.Hosts, f.script.Hosts...)
}

// expanded adds the files that match a pattern of a script: a rule about a file applies
// however its name is written.
func (w Workspace) expanded(f *facts, raw, op string) {
	if raw == shell.Unknown || !strings.ContainsAny(raw, "*?[") {
		return
	}
	full := f.script.Joined(raw)
	if rest, own := strings.CutPrefix(full, "~/"); own && home() != "" {
		full = home() + "/" + rest
	} else if strings.HasPrefix(full, "~") {
		return // outside, and the owner of that home is unknown
	}
	if !filepath.IsAbs(full) {
		full = filepath.Clean(w.Root) + "/" + full
	}
	names, unknown := w.matching(full, &f.read)
	if unknown != "" {
		f.doubt(unknown)
	}
	for _, n := range names {
		p := w.resolve(n, op)
		p.Raw = raw
		f.add(p)
	}
	f.misleading(raw, full, names)
}

// misleading finds names that the shell or a program would not take for the name of
// a file: one that begins with a dash is an option where the pattern does, too, and
// one that is split into words again may be several paths. The script itself may
// make a file of such a name.
func (f *facts) misleading(raw, full string, names []string) {
	fixed := strings.LastIndexByte(full[:strings.IndexAny(full, "*?[")], '/') + 1
	resplit, bare := slices.Contains(f.script.Resplit, raw), strings.ContainsAny(path.Base(raw)[:1], "*?[")
	if !resplit && !bare {
		return
	}
	found := make([]string, 0, len(names)+len(f.script.Writes))
	for _, n := range names {
		if len(n) > fixed {
			found = append(found, n[fixed:])
		}
	}
	for _, n := range append(found, f.script.Writes...) {
		switch base := path.Base(n); {
		case bare && strings.HasPrefix(base, "-") && glob(path.Base(raw), base):
			f.doubt("a pattern stands for the name " + base + ", which is an option")
		case resplit && strings.ContainsAny(n, " \t\n\\") || resplit && slices.Contains(names, full[:fixed]+n) && strings.ContainsAny(n, "*?["):
			f.doubt("a pattern stands for a name that is split into words")
		}
	}
}

// doubt marks a script as dynamic: its effects are known only at run time.
func (f *facts) doubt(reason string) {
	f.script.Dynamic = true
	f.script.Reasons = add(f.script.Reasons, reason)
}

// isFolder reports whether a folder of the workspace is there and can be entered.
func (w Workspace) isFolder(dir string) bool {
	p := w.resolve(dir, opRead)
	if !p.InWorkspace || p.Real == shell.Unknown {
		return false
	}
	info, err := os.Lstat(p.Real)
	return err == nil && info.IsDir() && info.Mode().Perm()&0o100 != 0
}

func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

// resolve returns the file that a path leads to.
func (w Workspace) resolve(raw, op string) Path {
	p := Path{Raw: raw, Op: op, Secret: isSecret(raw)}
	if raw == shell.Unknown || strings.ContainsRune(raw, 0) {
		p.Clean, p.Real = shell.Unknown, shell.Unknown
		return p
	}
	if strings.HasPrefix(raw, "~") {
		// Whose home that is depends on the tool's process: it is outside.
		// A rule about a file at home counts for both ways to write it.
		p.Clean = path.Clean(raw)
		p.Real = p.Clean
		if rest, own := strings.CutPrefix(raw, "~"); own && home() != "" && (rest == "" || rest[0] == '/') {
			p.Real = realPath(home() + rest)
		}
		return p
	}
	root := filepath.Clean(w.Root)
	full := raw
	if !filepath.IsAbs(full) {
		full = root + "/" + full
	}
	p.Clean = filepath.Clean(full)
	// Dots are resolved behind links, as the kernel does it: link/.. is the
	// parent of where the link leads.
	p.Real = realPath(full)
	p.Secret = p.Secret || isSecret(p.Real)
	realRoot := realPath(root)
	p.InWorkspace = inside(p.Clean, root) && (inside(p.Real, realRoot) || inside(p.Real, root))
	if !p.InWorkspace && inside(p.Clean, realRoot) && inside(p.Real, realRoot) {
		p.InWorkspace = true
	}
	return p
}

// home is the HOME of tools, unless they declare another.
func home() string {
	if h := os.Getenv("HOME"); filepath.IsAbs(h) {
		return filepath.Clean(h)
	}
	return ""
}

func inside(p, root string) bool {
	return root != "" && (p == root || strings.HasPrefix(p, strings.TrimSuffix(root, "/")+"/"))
}

// realPath resolves links element by element, as far as the path exists. What
// does not exist, and a pattern, stays as it is.
func realPath(p string) string {
	rest := strings.Split(p, "/")
	done := "/"
	for links := 0; len(rest) > 0; {
		e := rest[0]
		rest = rest[1:]
		switch e {
		case "", ".":
			continue
		case "..":
			done = path.Dir(done)
			continue
		}
		next := path.Join(done, e)
		target, err := os.Readlink(next)
		if err != nil {
			done = next
			continue
		}
		if links++; links > 40 {
			return shell.Unknown
		}
		if filepath.IsAbs(target) {
			done = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return done
}

var secretNames = []string{
	".env", ".env.*", "*.pem", "*.key", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc", ".npmrc", ".pypirc", ".git-credentials", "credentials", "credentials.json",
	"*.p12", "*.pfx", "*.keystore", "*.kdbx", ".htpasswd", "shadow", "authorized_keys",
}

var secretFolders = []string{"/.ssh/", "/.aws/", "/.gnupg/", "/.kube/", "/.docker/", "/.config/gh/"}

func isSecret(p string) bool {
	base := path.Base(p)
	if base == ".env.example" || base == ".env.sample" || base == ".env.template" || strings.HasSuffix(base, ".pub") {
		return false
	}
	return slices.ContainsFunc(secretNames, func(n string) bool { return glob(n, base) }) ||
		slices.ContainsFunc(secretFolders, func(f string) bool { return strings.Contains("/"+p+"/", f) })
}

// addresses collects the URLs in arguments, at any depth.
func (f *facts) addresses(v any) {
	switch v := v.(type) {
	case string:
		switch v = strings.TrimSpace(v); {
		case !strings.Contains(v, "://"):
		case len(f.urls) >= urlLimit || strings.ContainsAny(v, " \n\t"):
			f.unread = true
		default:
			f.address(v)
		}
	case []any:
		for _, x := range v {
			f.addresses(x)
		}
	case map[string]any:
		for _, k := range slices.Sorted(keys(v)) {
			if s, ok := v[k].(string); ok && s != "" && f.talks && !strings.Contains(s, "://") && addressed(k) {
				f.address("//" + strings.TrimSpace(s))
				continue
			}
			f.addresses(v[k])
		}
	}
}

// addressed reports whether an argument of that name is an address, also without a scheme.
// It is used for tools that open connections.
func addressed(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"url", "uri", "href", "endpoint", "proxy", "host", "hostname", "server", "address"}, func(s string) bool { return strings.HasSuffix(name, s) })
}

// anywhere reports whether the call may reach a host that it does not name.
func (f *facts) anywhere() bool {
	return f.script.Anywhere || f.talks && (f.unread || len(f.net.Hosts) == 0)
}

func (f *facts) address(text string) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		f.unread = true
		return
	}
	f.urls = append(f.urls, text)
	if u.Scheme != "" {
		f.net.Schemes = add(f.net.Schemes, strings.ToLower(u.Scheme))
	}
	f.net.Hosts = add(f.net.Hosts, strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")))
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "ssh": "22", "ftp": "21"}[strings.ToLower(u.Scheme)]
	}
	if n, err := strconv.Atoi(port); err == nil {
		f.net.Ports = add(f.net.Ports, n)
	}
}

func add[T comparable](list []T, v T) []T {
	if slices.Contains(list, v) {
		return list
	}
	return append(list, v)
}

// command is a simple command in the forms that patterns are compared with.
type command struct {
	shell.Command
	// elsewhere is a program by a path that is not the system's.
	elsewhere bool
}

func newCommand(c shell.Command) command {
	out := command{Command: c}
	if len(c.Argv) > 0 && strings.Contains(c.Argv[0], "/") {
		dir := path.Dir(c.Argv[0])
		out.elsewhere = path.Clean(c.Argv[0]) != strings.TrimPrefix(c.Argv[0], "./") && path.Clean(c.Argv[0]) != c.Argv[0] ||
			strings.HasPrefix(dir, "..")
	}
	return out
}

// program is the program as an allow must name it: the system's by its name,
// others by their path.
func (c *command) program() string {
	if len(c.Argv) == 0 {
		return c.Name
	}
	switch path.Dir(c.Argv[0]) {
	case "/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin":
		return c.Name
	}
	return c.Argv[0]
}

func (c *command) line() string {
	if len(c.Argv) == 0 {
		return c.Name
	}
	return strings.Join(append([]string{c.program()}, c.Argv[1:]...), " ")
}

// forms are all lines under which a deny or an ask recognises the command: by
// name and by path, and with its flags as a set written like the pattern's.
func (c *command) forms(flags string) []string {
	args := c.Argv
	if len(args) > 0 {
		args = args[1:]
	}
	by := strings.Join(append([]string{c.Name}, args...), " ")
	forms := []string{by}
	if l := strings.Join(c.Argv, " "); l != by {
		forms = append(forms, l)
	}
	if flags == "" {
		return forms
	}
	letters, rest, long := "", []string{}, []string{}
	for _, a := range args {
		switch {
		case strings.HasPrefix(a, "--") && len(a) > 2:
			name, _, _ := strings.Cut(a[2:], "=")
			letters += longAsLetter[name]
			long = append(long, a)
		case strings.HasPrefix(a, "-") && len(a) > 1:
			letters += a[1:]
		default:
			rest = append(rest, a)
		}
	}
	for _, l := range strings.ToLower(flags) {
		if !strings.ContainsRune(strings.ToLower(letters), l) {
			return forms
		}
	}
	// Flags may be before or after a sub-command.
	for at := range min(len(rest), 2) + 1 {
		words := append([]string{c.Name}, rest[:at]...)
		words = append(words, "-"+flags)
		forms = append(forms, strings.Join(append(append(words, rest[at:]...), long...), " "))
	}
	return forms
}
