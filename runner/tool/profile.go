package tool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/sandbox"
	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// home is where a contained program finds its home folder: empty, and gone with
// the sandbox.
const home = "/home/agent"

// systemPath is where a contained program's own programs are searched besides
// its mounts: a sandbox shows /usr and no other programs of the host.
var systemPath = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// Place is where the tools of a run are held.
type Place struct {
	// Workspace is the root of the run's files.
	Workspace string
	// Masked are folders of which no tool may see anything, and ReadOnly those
	// that none may change, wherever a mount would show them.
	Masked, ReadOnly []string
}

// Profiles returns the containment of each tool, by call name; a tool whose
// source brings its own isolation has none. Tools that run together are one
// process for each kind of access to the run's files: each of them has the limits
// of the loosest of them, unless it declares variables of its own.
func Profiles(tools []Definition, at Place) (map[string]*spec.Profile, error) {
	all := map[string]*spec.Profile{}
	var errs []error
	shared := newTogether(tools)
	for i := range tools {
		d := &tools[i]
		if !d.sandboxed() {
			continue
		}
		p, err := d.profile(at)
		if err != nil {
			errs = append(errs, reason.New(reason.IsolationUnavailable, "tool %q: %w", d.Name, err).
				WithHint("check spec.source and spec.isolation.mounts of the Tool"))
			continue
		}
		if d.shares() {
			p = shared.add(d, p)
		}
		all[d.Name] = p
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err // a tool that is left out would not be held at all
	}
	for _, p := range all {
		p.Tools = sharing(all, p)
	}
	return all, nil
}

// sandboxed reports whether a sandbox of this host contains the programs of a tool.
func (d *Definition) sandboxed() bool {
	return d.Spec.Isolation.Minimum != v1alpha1.IsolationNone && !d.Contained() && !d.Host && d.Remote == ""
}

// sharing are the tools whose programs have the network and the limits of a profile.
func sharing(all map[string]*spec.Profile, p *spec.Profile) (tools []string) {
	for name, other := range all {
		if other.Network == p.Network && other.Access == p.Access && other.Group == p.Group && other.Limits == p.Limits && slices.Equal(other.Allow, p.Allow) {
			tools = append(tools, name)
		}
	}
	slices.Sort(tools)
	return tools
}

func (d *Definition) profile(at Place) (*spec.Profile, error) {
	p := &spec.Profile{
		Workspace: at.Workspace, Access: spec.Access(d.Spec.WorkspaceAccess), Network: spec.Network(d.Spec.Network.Mode),
		Masked: Within(at.Masked, at.Workspace), ReadOnly: Within(at.ReadOnly, at.Workspace),
	}
	if p.Network == spec.NetworkProxy {
		p.Allow = slices.Clone(d.Spec.Network.Allow)
	}
	for _, m := range d.Spec.Isolation.Mounts {
		target, err := Mountable(m.Path)
		if err != nil {
			return nil, err
		}
		var masked []string
		if m.Access == v1alpha1.MountReadWrite || !d.keeps(target) {
			if masked, err = at.Hidden(m.Path, target); err != nil {
				return nil, err
			}
		}
		if sees := p.Access != "" && p.Access != spec.AccessNone; sees && slices.ContainsFunc(masked, func(hidden string) bool { return Below(at.Workspace, hidden) }) {
			return nil, fmt.Errorf("mount %s: the files of the run lie in it, below a folder that no tool may see: mount what is needed of it, or keep runs elsewhere with --state", m.Path)
		}
		// The path that was checked is what is mounted, wherever a link leads by
		// then.
		p.Mounts = append(p.Mounts, spec.Mount{Source: target, Target: m.Path, Writable: m.Access == v1alpha1.MountReadWrite})
		p.Masked = append(p.Masked, masked...)
	}
	sandbox.Name(p, d.Command)
	if len(d.Spec.Env) > 0 {
		p.Group = d.Name // its secrets are in its processes' environment
	}
	l := d.Spec.Limits
	p.Limits = spec.Limits{Pids: l.Pids}
	if l.Memory != nil {
		p.Limits.Memory = l.Memory.Value()
	}
	if l.CPU != nil {
		p.Limits.CPU = l.CPU.MilliValue()
	}
	if l.Scratch != nil {
		p.Limits.Scratch = l.Scratch.Value()
	}
	return p, nil
}

// keeps reports whether a folder is that of the skill whose script the tool is.
func (d *Definition) keeps(target string) bool {
	if d.Kept == "" {
		return false
	}
	kept, err := filepath.EvalSymlinks(d.Kept)
	return err == nil && kept == target
}

// Hidden returns the paths at which a mount of target would show files that no
// tool may see. A mount of nothing else is refused.
func (at Place) Hidden(path, target string) (paths []string, err error) {
	for _, hidden := range at.Masked {
		if Below(target, hidden) {
			return nil, fmt.Errorf("mount %s: it lies in %s, which no tool may see", path, hidden)
		}
		if rest, ok := strings.CutPrefix(hidden, strings.TrimSuffix(target, "/")+"/"); ok {
			paths = append(paths, filepath.Join(path, rest))
		}
	}
	return paths, nil
}

// shown reports whether programs see a path without a mount of its own.
func shown(path, workspace string, mounts []spec.Mount) bool {
	if Below(path, "/usr") || Below(path, workspace) {
		return true
	}
	return slices.ContainsFunc(mounts, func(m spec.Mount) bool { return Below(path, m.At()) })
}

// closed are the folders that must not be mounted, nor anything in them: with
// them a program reaches the host. Admission checks the paths of a manifest,
// this checks their targets.
var closed = []string{"/proc", "/sys", "/dev", "/run", "/var/run"}

// Mountable returns what a path of a mount leads to, or refuses it.
func Mountable(path string) (target string, err error) {
	target, err = filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("mount %s: there is no such file or folder", path)
	}
	if err != nil {
		return "", fmt.Errorf("mount %s: %w", path, err)
	}
	info, err := os.Stat(target)
	if err != nil {
		return "", fmt.Errorf("mount %s: %w", path, err)
	}
	if mode := info.Mode(); !mode.IsDir() && !mode.IsRegular() {
		return "", fmt.Errorf("mount %s: it is neither a folder nor a file", path)
	}
	for _, dir := range closed {
		if target == "/" || Below(target, dir) {
			return "", fmt.Errorf("mount %s: it leads to %s, which would open the sandbox", path, target)
		}
	}
	return target, nil
}

// Within returns those of some paths that lie in a folder.
func Within(paths []string, dir string) []string {
	var in []string
	for _, p := range paths {
		if Below(p, dir) {
			in = append(in, p)
		}
	}
	return in
}

// Below reports whether a path is a folder or in it.
func Below(path, dir string) bool {
	return dir != "" && (path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/"))
}

// StartDir is where a program starts: in the files of the run, at their path
// inside.
func StartDir(held *spec.Profile, workspace string) string {
	if held != nil && (held.Workspace == "" || held.Access == "" || held.Access == spec.AccessNone) {
		return "/tmp"
	}
	return workspace
}

// contained is the environment of a contained program: the base variables as the
// sandbox has them, and the declared ones.
func contained(p *spec.Profile, declared []string) []string {
	path := append([]string(nil), systemPath...)
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if !slices.Contains(path, dir) && filepath.IsAbs(dir) && shown(filepath.Clean(dir), p.Workspace, p.Mounts) && !Below(dir, p.Workspace) {
			path = append(path, dir)
		}
	}
	env := []string{"PATH=" + strings.Join(path, ":"), "HOME=" + home, "TMPDIR=/tmp"}
	for _, name := range []string{"LANG", "TZ"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return declare(env, declared)
}

// HeldEnvironment is the whole environment of a program that is contained by a
// profile or, without a profile, is not contained.
func HeldEnvironment(p *spec.Profile, declared []string) []string {
	if p == nil {
		return Environment(declared)
	}
	return contained(p, declared)
}
