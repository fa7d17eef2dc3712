package policy

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"agentctl.dev/agentctl/runner/policy/shell"
)

// expanded adds the files that match a pattern of a script: a rule about a file applies
// however its name is written.
func (w Workspace) expanded(f *facts, raw, op string) {
	if _, open := below(raw); open || raw == shell.Unknown || !strings.ContainsAny(raw, "*?[") {
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
	if w.isTemporary(full) {
		return // which files are there, only the run can tell; all of them are inside
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
		case resplit && strings.ContainsAny(n, " \t\n\\\"'") || resplit && slices.Contains(names, full[:fixed]+n) && strings.ContainsAny(n, "*?["):
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
	if !p.InWorkspace || p.Real == shell.Unknown || w.isTemporary(dir) && p.Clean != temporary {
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
	p := Path{Raw: raw, Op: op, Secret: IsSecret(raw)}
	if raw == shell.Unknown || strings.ContainsRune(raw, 0) {
		p.Clean, p.Real = shell.Unknown, shell.Unknown
		return p
	}
	if dir, ok := below(raw); ok {
		return w.resolveBelow(raw, dir, op)
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
	if w.isTemporary(full) {
		p.Real, p.InWorkspace = p.Clean, true
		return p
	}
	// Dots are resolved behind links, as the kernel does it: link/.. is the
	// parent of where the link leads.
	realRoot := w.realRoot()
	p.Real = w.realPath(full, realRoot)
	p.Secret = p.Secret || IsSecret(p.Real)
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
func realPath(p string) string { return realPathFrom("/", p) }

// realRoot is the root of the workspace without links.
func (w Workspace) realRoot() string {
	if w.real != "" {
		return w.real
	}
	return realPath(filepath.Clean(w.Root))
}

// realPath is the same for a path that is often in the workspace, whose root is not looked
// up again.
func (w Workspace) realPath(p, realRoot string) string {
	if rel, ok := strings.CutPrefix(p, filepath.Clean(w.Root)+"/"); ok && realRoot != shell.Unknown {
		return realPathFrom(realRoot, rel)
	}
	return realPath(p)
}

// realPathFrom resolves a path below a folder that has no links.
func realPathFrom(done, p string) string {
	rest := strings.Split(p, "/")
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

// IsSecret reports whether the name of a file says that it holds secrets, as `secret` of a path in rules.
func IsSecret(p string) bool {
	base := path.Base(p)
	if base == ".env.example" || base == ".env.sample" || base == ".env.template" || strings.HasSuffix(base, ".pub") {
		return false
	}
	return slices.ContainsFunc(secretNames, func(n string) bool { return glob(n, base) }) ||
		slices.ContainsFunc(secretFolders, func(f string) bool { return strings.Contains("/"+p+"/", f) })
}
