package policy

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"agentctl.dev/agentctl/runner/policy/shell"
)

// pattern is the command as an approval for always has it, and how many of its
// words say what it is. Where files, a repository or something elsewhere may be
// changed the options belong to it: rm is not rm -rf.
func (c *command) pattern(changes bool) (pattern string, count int, once string) {
	words, once := c.kind()
	if once != "" {
		return "", 0, once
	}
	n := len(words)
	if c.exact() {
		for _, w := range c.Argv[n:] {
			if !plainWord(w) {
				return "", 0, strconv.Quote(w) + " is no plain word"
			}
		}
		return strings.Join(append(words, c.Argv[n:]...), " "), n, ""
	}
	if n < arity(c.Argv) {
		return strings.Join(words, " "), n, ""
	}
	if changes || c.Name == "git" && n > 1 && !slices.Contains(onlyShowing, words[1]) {
		options, once := c.options(n)
		if once != "" {
			return "", 0, once
		}
		words = append(words, options...)
	}
	return strings.Join(words, " ") + " *", n, ""
}

// exact reports whether an approval covers only the very same arguments: git push names a
// place elsewhere and what happens to it, and the others name things that are not files.
func (c *command) exact() bool {
	return c.Name == "git" && len(c.Argv) > 1 && c.Argv[1] == "push" || slices.Contains(wholly, c.Name)
}

var (
	wholly = []string{"cd", "kill", "pkill", "killall", "mount", "umount", "systemctl", "service", "shutdown", "reboot", "iptables", "nft", "useradd", "usermod", "passwd"}
	// onlyShowing are the commands of git that only show.
	onlyShowing = []string{
		"status", "log", "diff", "show", "blame", "grep", "ls-files", "ls-tree", "ls-remote", "rev-parse", "rev-list", "describe", "shortlog", "cat-file", "name-rev", "merge-base",
		"for-each-ref", "show-ref", "diff-tree", "diff-index", "whatchanged", "count-objects", "help", "version", "check-ignore", "var",
	}
)

// options are those directly after the first words. A later option looks the same as the
// value of another option.
func (c *command) options(n int) (options []string, once string) {
	rest := c.Argv[n:]
	for len(rest) > 0 && len(rest[0]) > 1 && rest[0][0] == '-' && rest[0] != "--" {
		if !plainWord(rest[0]) {
			return nil, strconv.Quote(rest[0]) + " is no plain word"
		}
		options, rest = append(options, rest[0]), rest[1:]
	}
	for _, w := range rest {
		if w == "--" {
			break
		}
		if len(w) > 1 && w[0] == '-' {
			return nil, "the option " + strconv.Quote(w) + " stands behind what it is about"
		}
	}
	return options, ""
}

func plainWord(w string) bool { return w != "" && !strings.ContainsAny(w, " \t\n*?") }

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
		if !plainWord(w) || i > 0 && w[0] == '-' {
			return nil, strconv.Quote(w) + " is no plain word"
		}
	}
	if once := c.fetches(); once != "" {
		return nil, once
	}
	if o := slices.IndexFunc(c.Argv[1:], steers(c.Name)); o >= 0 {
		return nil, c.Name + " is told by " + strconv.Quote(c.Argv[o+1]) + " what to work on"
	}
	return words, ""
}

// fetches returns why a command of a program with many sub-commands is never remembered.
func (c *command) fetches() (once string) {
	name, sub := version().ReplaceAllString(c.Name, ""), ""
	if len(c.Argv) > 1 {
		sub = c.Argv[1]
	}
	// Cut short or misspelt, an install is one still: of these programs the
	// harmless commands are listed.
	harmless, listed := building[name]
	switch {
	case sub != "" && slices.Contains(starting[name], sub):
		return c.Name + " " + sub + " runs whatever it is given"
	case sub == "" && slices.Contains(bare, name), sub != "" && slices.Contains(fetching[name], sub),
		sub != "" && listed && !slices.Contains(harmless, sub):
		return strings.TrimSpace(c.Name+" "+sub) + " may fetch foreign code and run it"
	}
	return ""
}

// writesOutput reports whether an option makes a read-only command of git write a file;
// git accepts a shortened name of it.
func writesOutput(arg string) bool {
	name, _, _ := strings.Cut(arg, "=")
	return len(name) > 3 && strings.HasPrefix("--output", name)
}

// steers recognises the options that give a program another folder or another file of
// instructions: a Makefile is a program.
func steers(name string) func(string) bool {
	letters, long, _ := strings.Cut(steering[name], " ")
	return func(arg string) bool {
		if text, ok := strings.CutPrefix(arg, "--"); ok {
			text, _, _ = strings.Cut(text, "=")
			return text != "" && slices.ContainsFunc(strings.Fields(long), func(l string) bool { return strings.HasPrefix(l, text) })
		}
		short, _, _ := strings.Cut(arg, "=")
		return len(short) > 1 && short[0] == '-' && letters != "" && strings.ContainsAny(short[1:], letters)
	}
}

// steering holds the letters, then the names of such options.
var steering = map[string]string{
	"make": "CfIE directory file makefile include-dir eval", "gmake": "CfIE directory file makefile include-dir eval",
	"rake": "fCrRIg rakefile libdir require system nosystem rakelibdir", "just": "fd justfile working-directory shell set",
	"task": "tdg taskfile dir global", "ninja": "Cf", "meson": "C", "cmake": "PECc",
	"mvn": "fs file settings global-settings toolchains", "gradle": "pbcIg project-dir build-file settings-file init-script include-build gradle-user-home",
	"npm": "C prefix dir userconfig globalconfig script-shell node-options", "pnpm": "C dir prefix filter shell config", "yarn": " cwd modules-folder use-yarnrc scripts-prepend-node-path",
	"cargo": "CZ manifest-path config target-dir", "go": "C exec toolexec vettool modfile overlay", "composer": "d working-dir",
	"poetry": "CP directory project", "uv": " directory project", "bundle": " gemfile", "dotnet": " project", "bazel": " package_path override_repository workspace_status_command",
	"pytest": "cpo rootdir confcutdir override-ini plugins", "eslint": "c config rulesdir resolve-plugins-relative-to parser plugin", "prettier": " config plugin plugin-search-dir",
	"jest": "c config rootDir runner globalSetup testRunner transform", "tsc": "pb project build", "mypy": " config-file python-executable", "golangci-lint": "c config",
	"terraform": " chdir plugin-dir", "tofu": " chdir plugin-dir", "helm": " post-renderer kubeconfig", "gh": "RXfF repo method field raw-field hostname",
}

// version matches the suffix of a program's name: python3.12.
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
	"git", "hg", "svn", "jj", "chmod", "chown", "chgrp",
	"npm", "pnpm", "yarn", "pip", "pip3", "pipx", "poetry", "uv", "conda", "gem", "bundle", "rake", "composer", "cargo", "rustup", "go", "dotnet",
	"mvn", "gradle", "make", "just", "task", "cmake", "meson", "bazel", "nx", "turbo",
	"docker", "podman", "nerdctl", "kubectl", "helm", "kind", "k3d", "minikube", "oc", "argocd", "flux", "istioctl",
	"terraform", "tofu", "pulumi", "vault", "consul", "nomad", "packer", "vagrant", "fly", "heroku", "vercel", "netlify", "wrangler", "firebase", "supabase",
	"apt", "apt-get", "apk", "dnf", "yum", "pacman", "brew", "snap", "flatpak", "systemctl", "service", "journalctl",
	"bun", "deno", "pipenv", "gmake", "hugo", "ip", "cdk", "cf", "crictl", "eksctl", "flyctl", "kustomize", "mc", "ng", "openssl", "rails", "sam", "serverless", "sls", "skaffold",
	"sst", "swift", "tmux", "ufw", "wp", "pre-commit", "ruff", "golangci-lint", "buf", "ansible-galaxy", "vite", "next", "playwright", "cypress", "prisma",
}

// threeWords are the commands whose second word only names a group; "" matches any.
var threeWords = map[string][]string{
	"npm": {"run", "run-script"}, "pnpm": {"run"}, "yarn": {"run", "workspace"}, "bun": {"run"}, "deno": {"task"}, "composer": {"run", "run-script"},
	"pulumi": {"stack", "config"}, "terraform": {"workspace", "state", "providers"}, "tofu": {"workspace", "state", "providers"}, "vault": {"auth", "kv", "secrets", "token"}, "consul": {"kv"}, "mc": {"admin"},
	"ip": {"addr", "link", "netns", "route"}, "eksctl": {"create", "delete"}, "kind": {"create", "delete"}, "helm": {"repo", "plugin"}, "go": {"mod", "work"}, "uv": {"pip"}, "npx": {""},
	"gh": {""}, "glab": {""},
	"docker":  {"compose", "container", "image", "volume", "network", "buildx", "builder", "system", "context"},
	"podman":  {"compose", "container", "image", "volume", "network", "system"},
	"git":     {"config", "remote", "stash", "submodule", "worktree", "bisect", "notes", "lfs", "reflog", "sparse-checkout"},
	"kubectl": {"config", "rollout", "auth", "kustomize"},
	"aws":     {""}, "gcloud": {""}, "az": {""}, "doctl": {""}, "oci": {""}, "ibmcloud": {""}, "aliyun": {""}, "hcloud": {""}, "scw": {""},
}

// starters are interpreters and wrappers: to allow one is to allow everything. Names are
// listed without a version.
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
	"git": {"config", "bisect", "filter-branch", "submodule", "difftool", "mergetool", "rebase"}, "go": {"run", "generate", "tool"}, "cargo": {"run", "r"}, "dotnet": {"run"},
	"npm": {"exec", "x", "config", "set", "explore"}, "pnpm": {"exec", "dlx"}, "yarn": {"exec", "dlx", "node"}, "uv": {"run", "tool"}, "poetry": {"run"}, "pipx": {"run"}, "conda": {"run"}, "bundle": {"exec"},
	"docker": {"run", "exec"}, "podman": {"run", "exec"}, "nerdctl": {"run", "exec"}, "kubectl": {"run", "exec", "debug", "attach"}, "gh": {"alias", "extension", "api", "auth", "codespace", "secret"}, "glab": {"alias", "api", "auth"}, "oc": {"exec", "rsh", "run"},
	"swift": {"run"}, "rails": {"runner", "r", "console", "c"}, "cmake": {"build"}, "nomad": {"exec"}, "vagrant": {"ssh"}, "rustup": {"run"},
}

// bare are programs that install packages when they have no arguments.
var bare = []string{"yarn", "bundle", "pod"}

// fetching are the commands that bring foreign code into the workspace or the
// system. Many of them run what they have brought.
var fetching = map[string][]string{
	"yarn":     {"add", "install", "up", "upgrade", "upgrade-interactive", "dlx", "create", "link", "set", "plugin", "import", "global", "rebuild", "policies"},
	"pnpm":     {"add", "install", "i", "update", "up", "upgrade", "dlx", "create", "rebuild", "rb", "import", "link", "ln", "fetch", "env", "self-update", "patch", "setup"},
	"bun":      {"add", "a", "install", "i", "update", "x", "create", "c", "link", "upgrade", "patch", "init"},
	"deno":     {"install", "add", "run", "eval", "upgrade", "i"},
	"composer": {"install", "i", "update", "u", "upgrade", "require", "r", "create-project", "global", "exec", "reinstall", "self-update"},
	"poetry":   {"add", "install", "update", "self", "lock", "sync"}, "uv": {"add", "sync", "pip", "lock", "python", "build", "init", "self"}, "pipx": {"install", "upgrade", "inject", "reinstall", "upgrade-all"},
	"conda": {"install", "create", "update", "upgrade", "env"}, "pipenv": {"install", "update", "sync", "upgrade"},
	"dotnet": {"add", "restore", "tool", "workload", "new", "nuget"}, "rustup": {"install", "update", "toolchain", "component", "target", "self"},
	"apt": {"install", "upgrade", "full-upgrade", "dist-upgrade", "update", "reinstall", "build-dep"}, "apt-get": {"install", "upgrade", "dist-upgrade", "update", "reinstall", "build-dep"},
	"apk": {"add", "upgrade", "update", "fix"}, "dnf": {"install", "upgrade", "update", "reinstall"}, "yum": {"install", "upgrade", "update", "reinstall"}, "pacman": {"-S", "-Syu", "-U"},
	"brew": {"install", "upgrade", "tap", "reinstall", "bundle", "update"}, "snap": {"install", "refresh"}, "flatpak": {"install", "update"},
	"helm": {"install", "upgrade", "pull", "plugin", "repo", "dependency"}, "terraform": {"init", "get"}, "tofu": {"init", "get"}, "pulumi": {"plugin", "install", "new", "up"},
	"docker": {"pull", "build", "load", "import", "buildx", "compose"}, "podman": {"pull", "build", "load", "import", "compose"}, "nerdctl": {"pull", "build", "load", "compose"},
	"vagrant": {"up", "box", "plugin", "provision"}, "playwright": {"install"}, "cypress": {"install"}, "pre-commit": {"install", "autoupdate", "install-hooks", "run"}, "ansible-galaxy": {"install", "collection", "role"},
	"swift": {"package"}, "buf": {"generate"}, "rails": {"new", "plugin"}, "ng": {"add", "update", "new"}, "git": {"clone", "pull", "lfs", "am", "hook"},
}

// building are all commands of a program that only work with what is there.
var building = map[string][]string{
	"npm": {
		"test", "t", "tst", "run", "run-script", "start", "stop", "restart", "ls", "list", "ll", "la", "view", "info", "show", "outdated", "explain", "why", "root", "bin", "prefix",
		"ping", "whoami", "doctor", "search", "fund", "query", "sbom", "help", "version",
	},
	"pip":    {"list", "show", "freeze", "check", "index", "hash", "inspect", "help"},
	"go":     {"build", "test", "vet", "fmt", "doc", "list", "version", "env", "clean", "fix", "mod", "work", "help"},
	"cargo":  {"build", "b", "check", "c", "test", "t", "doc", "d", "fmt", "clippy", "bench", "clean", "tree", "metadata", "search", "version", "help", "locate-project", "nextest", "pkgid"},
	"gem":    {"list", "env", "info", "contents", "search", "which", "specification", "build", "dependency", "outdated", "help"},
	"bundle": {"list", "show", "check", "info", "outdated", "platform", "help"},
}
