package sandbox

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// shown are the folders of the host that every sandbox shows.
var shown = []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/proc", "/dev"}

// complete returns the profile with what the program needs to be found inside:
// the files that its command names, and an empty folder for its HOME. Equal
// results share a sandbox.
func complete(s *Spec, path string) spec.Profile {
	p := *s.Profile
	p.Mounts = slices.Clone(p.Mounts)
	Name(&p, append([]string{path}, s.Argv[1:]...))
	if p.Home == "" {
		if home := lookup(s.Env, "HOME"); spec.CheckPath("home", home) == nil && !visible(&p, home) {
			p.Home = home
		}
	}
	return p
}

// Name adds the files that a command names to a profile's mounts, each with its
// links resolved now. If programs may write to the folders of these files while
// a profile is kept, call Name when the profile is made: a link that is put in
// place of a file later then has no effect.
func Name(p *spec.Profile, command []string) {
	for _, file := range command {
		if !filepath.IsAbs(file) || filepath.Clean(file) != file || visible(p, file) {
			continue
		}
		at, err := filepath.EvalSymlinks(file)
		if err != nil {
			continue
		}
		if fi, err := os.Stat(at); err != nil || !fi.Mode().IsRegular() {
			continue
		}
		m := spec.Mount{Source: at}
		if at != file {
			m.Target = file
		}
		p.Mounts = append(p.Mounts, m)
	}
}

// visible reports whether a path of the host is seen inside anyway.
func visible(p *spec.Profile, path string) bool {
	if slices.ContainsFunc(shown, func(dir string) bool { return within(path, dir) }) {
		return true
	}
	if p.Workspace != "" && p.Access != "" && p.Access != spec.AccessNone && within(path, p.Workspace) {
		return true
	}
	return slices.ContainsFunc(p.Mounts, func(m spec.Mount) bool { return within(path, m.At()) })
}

func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// lookup returns the value of the last variable of that name, or "".
func lookup(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// env is the environment of a program inside: a TMPDIR that is not seen there is
// /tmp.
func env(p *spec.Profile, declared []string) []string {
	out := slices.Clone(proxyEnv(p, declared))
	for i, kv := range out {
		if dir, ok := strings.CutPrefix(kv, "TMPDIR="); ok && dir != "/tmp" && dir != p.Home && !visible(p, dir) {
			out[i] = "TMPDIR=/tmp"
		}
	}
	return out
}

// proxyEnv is what HTTP clients look for, for a sandbox whose only way out is
// the proxy. What the tool declares itself wins.
func proxyEnv(p *spec.Profile, env []string) []string {
	if p.Network != spec.NetworkProxy {
		return env
	}
	var more []string
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		if lookup(env, name) == "" {
			more = append(more, name+"=http://"+spec.ProxyAddress)
		}
	}
	return append(more, env...)
}

// key distinguishes sandboxes.
func key(p *spec.Profile) string {
	b, _ := json.Marshal(p) // strings and numbers only
	return string(b)
}
