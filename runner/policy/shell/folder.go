package shell

import (
	"path"
	"slices"
	"strings"
)

// folders are those that the shell may be in. A cd that fails leaves it where it
// was, so that there may be several.
type folders struct {
	at []string
	// unknown: it may also be any other folder.
	unknown bool
}

// foldersLimit bounds the folders of one place in a script.
const foldersLimit = 8

func (f folders) empty() bool { return len(f.at) == 0 && !f.unknown }

// union is both. It shares no memory that is written later.
func (f folders) union(other folders) folders {
	out := folders{at: slices.Clip(f.at), unknown: f.unknown || other.unknown}
	for _, dir := range other.at {
		if !slices.Contains(out.at, dir) {
			out.at = append(out.at, dir)
		}
	}
	if len(out.at) > foldersLimit {
		return folders{unknown: true}
	}
	return out
}

// covers reports whether all folders of other are among these.
func (f folders) covers(other folders) bool {
	return (f.unknown || !other.unknown) && !slices.ContainsFunc(other.at, func(dir string) bool { return !slices.Contains(f.at, dir) })
}

// standing are folders that exist on every system, so that cd into them succeeds.
var standing = []string{"/", "/bin", "/dev", "/etc", "/proc", "/tmp", "/usr", "/usr/bin", "/usr/lib", "/var"}

// changeFolder analyses cd and pushd. If it fails, the script continues in the previous
// folder.
func changeFolder(a *analyser, name string, args []word, sc *scope) {
	a.moved()
	from := sc.here
	var ops []word
	physical, rotates, stays := false, false, false
	for i, w := range args {
		if w.known && w.text == "--" {
			ops = append(ops, args[i+1:]...)
			break
		}
		if w.known && len(w.text) > 1 && (w.text[0] == '-' || w.text[0] == '+') {
			rotates = rotates || name == "pushd" && isNumber(w.text[1:])
			stays = stays || name == "pushd" && w.text == "-n"
			physical = physical || strings.ContainsAny(w.text, "P@")
			continue
		}
		ops = append(ops, w)
	}
	to, sure := folders{unknown: true}, false
	switch {
	case rotates || stays || len(ops) > 1 || len(ops) == 0 && name == "pushd":
	case len(ops) == 0:
		to = folders{at: []string{"~"}}
	case !ops[0].known || ops[0].glob || ops[0].split:
	case ops[0].text == "-":
		to = sc.previous
	case physical && strings.Contains(ops[0].text, ".."):
		// With -P the dots are those behind a link.
	default:
		to = a.joins(from, ops[0].text)
		sure = slices.Contains(standing, ops[0].text) || !to.unknown && !slices.ContainsFunc(to.at, func(dir string) bool { return !a.stands(dir) })
	}
	a.entered(to)
	if name == "pushd" {
		sc.stack = append(slices.Clip(sc.stack), from)
		if rotates || stays {
			sc.stack = []folders{{unknown: true}}
		}
	}
	sc.previous = from
	sc.yes, sc.no = to, from
	if sure {
		sc.no = folders{}
	}
}

// stands reports whether a folder certainly exists. The folder that the script started in
// does, whatever the script does.
func (a *analyser) stands(dir string) bool {
	if path.Clean(dir) == path.Clean(a.start) {
		return true
	}
	return a.files.IsFolder != nil && !a.disturbed && a.files.IsFolder(dir)
}

// popFolder judges popd.
func popFolder(a *analyser, _ string, args []word, sc *scope) {
	a.moved()
	to := folders{unknown: true}
	if n := len(sc.stack); n > 0 && len(args) == 0 {
		to = sc.stack[n-1]
		sc.stack = sc.stack[:n-1]
	} else {
		sc.stack = nil
	}
	a.entered(to)
	sc.previous = sc.here
	sc.yes, sc.no = to, sc.here
}

// joins are the folders that a path leads to.
func (a *analyser) joins(from folders, to string) folders {
	to, ok := shorten(to)
	if !ok {
		return folders{unknown: true}
	}
	if path.IsAbs(to) || strings.HasPrefix(to, "~") {
		return folders{at: []string{path.Clean(to)}}
	}
	out := folders{unknown: from.unknown}
	for _, dir := range from.at {
		in, ok := joined(dir, to)
		if !ok || strings.HasPrefix(dir, "~") && !strings.HasPrefix(in, "~") {
			out.unknown = true // above a home folder, or one that is not known
			continue
		}
		out.at = appendNew(out.at, in)
	}
	return out
}

// entered notes the folders that commands run in: each is a path that the script
// touches.
func (a *analyser) entered(to folders) {
	for _, dir := range to.at {
		if dir != "" {
			a.facts.Folders = appendNew(a.facts.Folders, dir)
		}
	}
	if to.unknown {
		a.dynamic("the current folder is not known")
		a.facts.Folders = appendNew(a.facts.Folders, Unknown)
	}
}

// enters makes a program run in another folder, which one of its options names.
func (a *analyser) enters(dir word, sc *scope) {
	to := folders{unknown: true}
	if dir.known && !dir.glob && dir.text != "" {
		to = a.joins(sc.here, dir.text)
	}
	a.entered(to)
	sc.here = to
	sc.yes, sc.no = to, to
}

// folderOptions are the options of programs that make them work in another folder.
var folderOptions = map[string][]string{
	"make": {"-C", "--directory"}, "gmake": {"-C", "--directory"}, "ninja": {"-C"}, "cmake": {"-S", "-B", "--build", "--install", "--open"}, "meson": {"-C"},
	"go": {"-C"}, "cargo": {"-C"}, "npm": {"-C", "--prefix"}, "pnpm": {"-C", "--dir"}, "yarn": {"--cwd"}, "uv": {"--directory", "--project"},
	"poetry": {"-C", "--directory", "-P", "--project"}, "composer": {"-d", "--working-dir"}, "just": {"-d", "--working-directory"}, "mvn": {"-f", "--file"}, "gradle": {"-p", "--project-dir"},
	"hg": {"-R", "--cwd", "--repository"}, "terraform": {"-chdir"}, "tofu": {"-chdir"}, "pytest": {"--rootdir"}, "bazel": {"--output_base"}, "rake": {"-f"}, "tox": {"-c"},
}

// worksIn judges the folder of a program that is not known: the one that it runs in,
// where the script has chosen that, and those that its options name.
func (a *analyser) worksIn(name string, args []word, sc *scope) {
	for i, w := range args {
		if !w.known {
			continue
		}
		for _, o := range folderOptions[name] {
			value, ok := optionValue(o, i, args)
			if !ok || w.text != o && !strings.HasPrefix(w.text, o) && !strings.HasPrefix(w.text, "--") {
				continue
			}
			inner := sc.copy()
			a.enters(value, inner)
			for _, dir := range inner.here.at {
				a.facts.Operands = appendNew(a.facts.Operands, dir)
			}
		}
	}
	for _, dir := range sc.here.at {
		if dir != a.start {
			a.facts.Operands = appendNew(a.facts.Operands, dir)
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
