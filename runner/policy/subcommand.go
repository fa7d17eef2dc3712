package policy

import (
	"path"
	"slices"
	"strings"
)

// globals are the options that programs with subcommands take before the subcommand: a
// colon follows those with a value, an exclamation mark those that decide which program or
// which settings are used, or whom the command acts as. A folder is judged as a path.
var globals = map[string]string{
	"git": "C: P no-pager bare literal-pathspecs glob-pathspecs noglob-pathspecs icase-pathspecs no-optional-locks no-replace-objects no-advice " +
		"c:! config-env:! git-dir:! work-tree:! exec-path! namespace:! super-prefix:! attr-source:! p! paginate!",
	"npm": "s silent q quiet d dd ddd verbose loglevel: no-color color no-update-notifier C:! prefix:! w:! workspace:! workspaces! g! global! userconfig:! globalconfig:! registry:! " +
		"script-shell:! cache:! node-options:! include:! omit:!",
	"pnpm":  "s silent reporter: loglevel: color no-color C:! dir:! F:! filter:! r! recursive! w! workspace-root! g! global!",
	"yarn":  "s silent json verbose no-progress cwd:! modules-folder:! use-yarnrc:! cache-folder:!",
	"go":    "C:",
	"cargo": "q quiet v vv verbose color: locked offline frozen Z:! C:! config:! manifest-path:! target-dir:!",
	"docker": "D debug l: log-level: H:! host:! c:! context:! config:! tls! tlscacert:! tlscert:! tlskey:! tlsverify! " +
		"n:! namespace:! a:! address:! url:! connection:! r! remote! identity:! root:! runroot:! storage-driver:! storage-opt:! runtime:! module:! cgroup-manager:! hooks-dir:! conmon:!",
	"kubectl": "n: namespace: context: cluster: request-timeout: v: v warnings-as-errors match-server-version kubeconfig:! s:! server:! token:! user:! as:! as-group:! as-uid:! " +
		"certificate-authority:! client-certificate:! client-key:! cache-dir:! insecure-skip-tls-verify! tls-server-name:! password:! username:! profile:! profile-output:!",
	"helm": "n: namespace: debug kube-context: burst-limit: qps: kubeconfig:! kube-apiserver:! kube-token:! kube-as-user:! kube-as-group:! kube-ca-file:! registry-config:! repository-config:! " +
		"repository-cache:! kube-insecure-skip-tls-verify! kube-tls-server-name:!",
	"terraform": "chdir:!",
	"gh":        "R: repo: hostname:!",
	"aws": "region: output: query: color: no-cli-pager no-paginate debug no-sign-request cli-read-timeout: cli-connect-timeout: cli-binary-format: " +
		"profile:! endpoint-url:! ca-bundle:! no-verify-ssl! cli-auto-prompt!",
}

// families are programs that take the same commands: a deny or an ask for one of them is
// one for all.
var families = [][]string{{"docker", "podman", "nerdctl"}, {"kubectl", "oc"}, {"terraform", "tofu"}}

// family returns the programs that take the same commands as one, itself first.
func family(name string) []string {
	for _, f := range families {
		if slices.Contains(f, name) {
			return append([]string{name}, slices.DeleteFunc(slices.Clone(f), func(n string) bool { return n == name })...)
		}
	}
	return []string{name}
}

// globalOption is what the table knows of an option.
type globalOption struct{ listed, value, steers bool }

// globalOf finds an option among those that a program takes before its subcommand.
func globalOf(name, option string) globalOption {
	table := ""
	for _, n := range family(name) {
		table += " " + globals[n]
	}
	for f := range strings.FieldsSeq(table) {
		f, steers := strings.CutSuffix(f, "!")
		if f, value := strings.CutSuffix(f, ":"); f == option {
			return globalOption{true, value, steers}
		}
	}
	return globalOption{}
}

// subcommand takes a command apart: the options before its subcommand, and the words from
// that on. Harmless reports that each of the options is known and changes neither what
// the subcommand does nor for whom.
func subcommand(argv []string) (global, rest []string, harmless bool) {
	if len(argv) == 0 {
		return nil, nil, false
	}
	name, at := path.Base(argv[0]), 1
	for at < len(argv) && len(argv[at]) > 1 && argv[at][0] == '-' {
		option, _, attached := strings.Cut(strings.TrimLeft(argv[at], "-"), "=")
		o := globalOf(name, option)
		if !o.listed || o.steers {
			return nil, argv[1:], false
		}
		if at++; o.value && !attached {
			at++
		}
	}
	at = min(at, len(argv))
	return argv[1:at], argv[at:], true
}

// skips returns how many words an option that a pattern does not name may take: itself, and
// maybe its value.
func skips(name, word string) (least, most int) {
	option, _, attached := strings.Cut(strings.TrimLeft(word, "-"), "=")
	switch o := globalOf(name, option); {
	case attached:
		return 1, 1
	case o.listed && o.value:
		return 2, 2
	case o.listed:
		return 1, 1
	}
	return 1, 2
}
