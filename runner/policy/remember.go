package policy

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/policy/shell"
)

// remember says what an approval for always would allow from now on. It is made
// from what the call was found to do, never from its text, and stays narrow: one
// kind of command, one folder, one tool with the same arguments. A call that
// can only be approved once gets the reason why.
//
// The same function says whether a later call is covered: what it would be
// remembered as must be remembered already. So a call that is found to do
// anything more is never covered, whatever it looks like.
func (j *judged) remember(in *input) (grants []message.Grant, once string) {
	f := in.facts
	if j.tool.risk() == v1alpha1.RiskR3 {
		return nil, "what cannot be undone is approved one by one"
	}
	for i := range f.paths {
		switch p := &f.paths[i]; {
		case p.Secret:
			return nil, "it touches a file that holds secrets"
		case !p.InWorkspace:
			return nil, "it reaches outside the workspace"
		case p.Op != opRead && kept().MatchString(p.Real+"/"):
			return nil, "git keeps hooks and settings there that run programs"
		case p.Real != shell.Unknown && relative(p.Real, realPath(f.root)) != relative(p.Clean, f.root):
			return nil, "it goes through a symbolic link"
		}
	}
	switch {
	case f.shell:
		return f.rememberScript(j.tool.Name)
	case pathOps[j.tool.Builtin] != "" && len(f.paths) > 0:
		return f.rememberPaths(j.tool)
	}
	return j.rememberArgs(in)
}

// kept is in the folder of a repository.
var kept = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)/[.]git/`) })

func relative(p, root string) string { return strings.TrimPrefix(strings.TrimPrefix(p, root), "/") }

// rememberScript takes each command by as many words as say what it is.
func (f *facts) rememberScript(tool string) ([]message.Grant, string) {
	s := &f.script
	switch {
	case s.Dynamic && len(s.Reasons) > 0:
		return nil, "only the run can tell what it does: " + s.Reasons[0]
	case s.Dynamic || len(s.Commands) == 0:
		return nil, "only the run can tell what it does"
	case len(s.Redirects) > 0:
		return nil, "it redirects to or from a file"
	}
	var grants []message.Grant
	for i := range s.Commands {
		c := &s.Commands[i]
		words, once := c.kind()
		switch {
		case once != "":
		case len(words) == 1 && s.Network:
			once = c.Name + " reaches other hosts"
		case len(s.Hosts) > 0:
			once = "it reaches " + s.Hosts[0]
		}
		if once != "" {
			return nil, once
		}
		pattern := strings.Join(words, " ")
		if len(words) == arity(c.Argv) {
			pattern += " *"
		}
		grants = add(grants, message.Grant{Permission: tool, Pattern: pattern})
	}
	return grants, ""
}

// kind returns the words that say what a command is.
func (c *command) kind() (words []string, once string) {
	switch {
	case len(c.Argv) == 0 || c.Name == shell.Unknown:
		return nil, "only the run can tell which command it is"
	case len(c.Wrappers) > 0:
		return nil, c.Wrappers[0] + " starts other programs"
	case len(c.Env) > 0:
		return nil, "it sets " + c.Env[0] + " for " + c.Name
	case c.elsewhere || strings.Contains(c.program(), "/"):
		return nil, c.Argv[0] + " is a program that may be changed"
	case starters()[version().ReplaceAllString(c.Name, "")]:
		return nil, c.Name + " runs whatever it is given"
	}
	if o := slices.IndexFunc(c.Argv, writesOutput); c.Name == "git" && o > 0 {
		return nil, "it writes to a file by " + strconv.Quote(c.Argv[o])
	}
	words = slices.Clone(c.Argv[:min(arity(c.Argv), len(c.Argv))])
	words[0] = c.Name
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, " \t\n*?") || i > 0 && w[0] == '-' {
			return nil, strconv.Quote(w) + " is no plain word"
		}
	}
	if len(words) > 1 && slices.Contains(starting[c.Name], words[1]) {
		return nil, c.Name + " " + words[1] + " runs whatever it is given"
	}
	return words, ""
}

// writesOutput says whether an option makes a command of git that shows write a
// file instead; git accepts it cut short.
func writesOutput(arg string) bool {
	name, _, _ := strings.Cut(arg, "=")
	return len(name) > 3 && strings.HasPrefix("--output", name)
}

// version is what may stand behind the name of a program: python3.12.
var version = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[-.]?[0-9][0-9.]*$`) })

// arity is the number of words that say what a command is.
func arity(argv []string) int {
	name := path.Base(argv[0])
	if len(argv) > 1 && slices.Contains(threeWords[name], argv[1]) || slices.Contains(threeWords[name], "") {
		return 3
	}
	if slices.Contains(twoWords, name) {
		return 2
	}
	return 1
}

// twoWords are programs that are many programs in one.
var twoWords = []string{
	"git", "hg", "svn", "jj", "gh", "glab",
	"npm", "pnpm", "yarn", "pip", "pip3", "pipx", "poetry", "uv", "conda", "gem", "bundle", "rake", "composer", "cargo", "rustup", "go", "dotnet",
	"mvn", "gradle", "make", "just", "task", "cmake", "meson", "bazel", "nx", "turbo",
	"docker", "podman", "nerdctl", "kubectl", "helm", "kind", "k3d", "minikube", "oc", "argocd", "flux", "istioctl",
	"terraform", "tofu", "pulumi", "vault", "consul", "nomad", "packer", "vagrant", "fly", "heroku", "vercel", "netlify", "wrangler", "firebase", "supabase",
	"apt", "apt-get", "apk", "dnf", "yum", "pacman", "brew", "snap", "flatpak", "systemctl", "service", "journalctl",
}

// threeWords are those whose second word is no more than a group; "" is any.
var threeWords = map[string][]string{
	"npm": {"run"}, "pnpm": {"run"}, "yarn": {"run"},
	"docker":  {"compose", "container", "image", "volume", "network", "buildx", "builder", "system", "context"},
	"podman":  {"compose", "container", "image", "volume", "network", "system"},
	"git":     {"remote", "stash", "submodule", "worktree", "bisect", "notes", "lfs"},
	"kubectl": {"config", "rollout", "auth"},
	"aws":     {""}, "gcloud": {""}, "az": {""}, "doctl": {""}, "oci": {""}, "ibmcloud": {""}, "aliyun": {""}, "hcloud": {""}, "scw": {""},
}

// starters are interpreters and wrappers: to allow one is to allow everything.
// A name stands here without its version.
var starters = sync.OnceValue(func() map[string]bool {
	m := map[string]bool{}
	for name := range strings.FieldsSeq(`
		sh bash zsh dash ksh mksh ash fish csh tcsh pwsh powershell rbash busybox toybox
		python pypy ipython node nodejs deno bun ruby jruby irb perl php lua luajit tclsh wish expect guile racket scheme
		R Rscript julia java jshell groovy scala kotlin ghci runghc erl escript elixir iex ocaml clojure bb osascript swift tsx ts-node
		awk gawk mawk nawk sed ed ex vi vim nvim emacs nano gdb lldb sqlite sqlite3 psql mysql m4 dc
		sudo doas su runuser pkexec env nohup nice ionice chrt taskset timeout setsid stdbuf unbuffer script time command builtin exec eval
		xargs parallel watch entr find fd trap source . alias chroot unshare nsenter strace ltrace perf ssh mosh rsync tmux screen
		npx bunx uvx pnpx dlx flock at batch crontab systemd-run start-stop-daemon man less more git-shell
		proot fakeroot fakechroot firejail bwrap numactl cpulimit valgrind setarch linux32 linux64 prlimit choom faketime dbus-run-session dbus-launch xvfb-run
		rlwrap direnv dotenv dotenvx op doppler aws-vault chamber envdir envchain sem gosu su-exec tini dumb-init catatonit s6-setuidgid setuidgid chpst
		hyperfine chronic ifne ts tsp nq run-parts ssh-agent gpg-agent systemd-inhibit caffeinate qemu-x86_64 qemu-aarch64 wine wine64 box64 ld.so ld-linux
		nix nix-shell guix mise asdf rbenv pyenv nodenv goenv jenv volta corepack nvm fnm rvm pipenv hatch pdm rye pixi micromamba mamba lerna concurrently nodemon
		elvish nu xonsh osh ysh oil rc es yash sbcl clisp csi chicken gosh racket octave gnuplot maxima gp raku perl6 rakudo crystal zig nim dart flutter mix lein sbt
		gradlew mvnw bazelisk vimdiff view rview rvim gvim vimtutor emacsclient kak hx helix joe pico micro busctl dbus-send logrotate fzf tig lazygit gitui k9s ranger mc
	`) {
		m[name] = true
	}
	return m
})

// starting are the commands of programs that run something else, or decide what
// will be run later.
var starting = map[string][]string{
	"git": {"config", "bisect", "filter-branch", "submodule", "difftool", "mergetool", "rebase"}, "go": {"run", "generate", "tool"}, "cargo": {"run"}, "dotnet": {"run"},
	"npm": {"exec", "x", "config", "set"}, "pnpm": {"exec", "dlx"}, "yarn": {"exec", "dlx", "node"}, "uv": {"run", "tool"}, "poetry": {"run"}, "pipx": {"run"}, "conda": {"run"}, "bundle": {"exec"},
	"docker": {"run", "exec"}, "podman": {"run", "exec"}, "nerdctl": {"run", "exec"}, "kubectl": {"run", "exec", "debug", "attach"}, "gh": {"alias", "extension"}, "oc": {"exec", "rsh", "run"},
	"nomad": {"exec"}, "vagrant": {"ssh"}, "rustup": {"run"},
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

// rememberArgs takes a tool with the arguments it was given, by name, and the
// hosts that stood in them.
func (j *judged) rememberArgs(in *input) ([]message.Grant, string) {
	call, _ := in.vars["call"].(map[string]any)
	given, _ := call["args"].(map[string]any)
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
		when = append(when, "paths.all(p, p.inWorkspace)")
	}
	if hosts := in.facts.net.Hosts; len(hosts) > 0 {
		when = append(when, "net.hosts.all(h, h in "+quoted(slices.Sorted(slices.Values(hosts)))+")")
	}
	if len(when) == 0 {
		when = []string{"true"}
	}
	return []message.Grant{{Tool: j.tool.Name, When: strings.Join(when, " && ")}}, ""
}

// identifier is a name that can stand behind a dot.
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
