package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// assigned records that the script gives a variable a value. Every way to do so passes
// here: assignments, declarations, loops, arithmetic, expansions, redirections and the
// builtins that take the name of a variable. The name may have a subscript, which bash
// evaluates. numeric: the value is certainly a number.
func (a *analyser) assigned(name word, numeric bool, sc *scope) {
	plain, subscript, indexed := strings.Cut(name.text, "[")
	switch {
	case !name.known || name.glob && !indexed || name.split || !plainName().MatchString(plain):
		a.dynamic("the name of a variable that is set is not known")
		return
	case indexed:
		a.subscript(strings.TrimSuffix(subscript, "]"), sc)
		numeric = false
	}
	if selects(plain) {
		a.dynamic("the variable " + plain + " decides what runs")
	}
	if _, bound := a.bound[plain]; bound {
		a.dynamic("the variable " + plain + " of a loop is changed")
		delete(a.bound, plain)
	}
	if !numeric && slices.Contains(integerVariables, plain) {
		a.dynamic("the shell evaluates the value of " + plain + " as arithmetic")
	}
	a.changed[plain] = true
	if a.inside > 0 {
		a.elsewhere[plain]++
	}
	sc.vars = sc.vars.with(plain, numeric)
	if !numeric {
		a.taint(plain)
	}
}

// given are the variables that surely have a value which the script has given them.
type given struct {
	all []string
	// numbers are those of them whose value is a number.
	numbers []string
}

// with adds a variable. It shares no memory that is written later.
func (g given) with(name string, number bool) given {
	if !slices.Contains(g.all, name) {
		g.all = append(slices.Clip(g.all), name)
	}
	if number && !slices.Contains(g.numbers, name) {
		g.numbers = append(slices.Clip(g.numbers), name)
	}
	return g
}

func (g given) without(name string) given {
	is := func(n string) bool { return n == name }
	return given{slices.DeleteFunc(slices.Clone(g.all), is), slices.DeleteFunc(slices.Clone(g.numbers), is)}
}

// everyVariable stands for all variables of the environment.
const everyVariable = "*"

// uses notes that the script uses the value of a variable.
func (a *analyser) uses(name string, sc *scope) {
	if _, bound := a.bound[name]; !bound && !slices.Contains(sc.vars.all, name) {
		a.inherits(name)
	}
}

func (a *analyser) inherits(name string) {
	if len(a.facts.Inherited) <= variablesLimit {
		a.facts.Inherited = appendNew(a.facts.Inherited, name)
	}
}

// listed notes that a declaration without a name, or with -p, shows variables.
func (a *analyser) listed(name string, words []word) {
	names, flags := []string{}, ""
	for _, w := range words {
		if w.known && len(w.text) > 1 && (w.text[0] == '-' || w.text[0] == '+') {
			flags += w.text
		} else {
			names = append(names, w.shown())
		}
	}
	shows := len(names) == 0 && !(name == "set" && flags != "") && name != "unset" && name != "shopt" || strings.Contains(flags, "p") && name != "set" && name != "shopt"
	switch {
	case !shows || strings.ContainsAny(flags, "fF"):
	case len(names) == 0 || slices.Contains(names, Unknown):
		a.inherits(everyVariable)
	default:
		for _, n := range names {
			a.inherits(n)
		}
	}
}

// taint notes that a variable may hold text that is not a number.
func (a *analyser) taint(name string) { a.tainted[name] = true }

// literal is a name that the script spells out.
func literal(name string) word { return word{text: name, known: true} }

// numericParameters are variables whose values the shell computes as numbers.
var numericParameters = []string{
	"?", "#", "$", "!", "RANDOM", "SRANDOM", "SECONDS", "LINENO", "BASHPID", "BASH_SUBSHELL", "EPOCHSECONDS", "PPID", "UID", "EUID",
}

// integerVariables are variables of the shell whose values are evaluated as arithmetic when
// they are set.
var integerVariables = append([]string{"OPTIND", "HISTCMD"}, numericParameters...)

// computes records that arithmetic reads a variable. It evaluates the variable's
// text, so that a subscript in it runs commands: the value must be a number, and
// that must be certain wherever the value comes from. A variable that the script has
// not set by then has its value from the environment or from the shell: $_, REPLY,
// MAPFILE and others hold text that a command chooses.
func (a *analyser) computes(name string, sc *scope) {
	if slices.Contains(numericParameters, name) {
		// It can be set to text as well, where it loses its meaning.
		a.computed[name] = true
		return
	}
	if !slices.Contains(sc.vars.numbers, name) {
		a.dynamic("arithmetic on a variable that may hold text")
		return
	}
	a.computed[name] = true
}

// evaluated checks the arithmetic of the whole script: a loop may read a variable
// before the line that fills it.
func (a *analyser) evaluated() {
	for name := range a.computed {
		if a.tainted[name] {
			a.dynamic("arithmetic on a variable that may hold text")
		}
	}
}

// subscript judges the text of a subscript that bash evaluates.
func (a *analyser) subscript(text string, sc *scope) {
	if text == "@" || text == "*" || isNumber(text) {
		return
	}
	a.arithmText(text, sc)
}

// arithmText judges a text that bash evaluates as arithmetic.
func (a *analyser) arithmText(text string, sc *scope) {
	if strings.ContainsAny(text, "[$`") {
		a.dynamic("arithmetic that evaluates an index")
		return
	}
	a.depth++
	defer func() { a.depth-- }()
	if a.depth > depthLimit {
		a.dynamic("arithmetic that is not understood")
		return
	}
	x, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Arithmetic(strings.NewReader(text))
	if err != nil {
		a.dynamic("arithmetic that does not parse")
		return
	}
	a.arithm(x, sc)
}

// environment judges NAME=value that a program is handed as a part of its
// environment.
func (a *analyser) environment(w word, sc *scope) {
	name, value, _ := strings.Cut(w.text, "=")
	if !w.known {
		a.dynamic("a variable of the environment is not known")
		return
	}
	if loads(name) {
		a.facts.Reads = appendNew(a.facts.Reads, value)
	}
	if !plainName().MatchString(name) {
		// A shell does not read it, other programs may.
		return
	}
	a.assigned(literal(name), isNumber(value), sc)
}

// declares judges a word that declare, export and the like take: NAME or NAME=value.
func (a *analyser) declares(w word, sc *scope) {
	name, value, has := strings.Cut(w.text, "=")
	switch {
	case !w.known:
		a.dynamic("a declaration that is not known")
		return
	case !has:
		if plain, subscript, indexed := strings.Cut(name, "["); indexed {
			a.subscript(strings.TrimSuffix(subscript, "]"), sc)
			name = plain
		}
		if selects(name) {
			a.dynamic("the variable " + name + " decides what runs")
		}
		return
	}
	name = strings.TrimSuffix(name, "+")
	if loads(name) {
		a.read(value, sc)
	}
	a.assigned(literal(name), isNumber(value) && !strings.HasPrefix(value, "("), sc)
}

// declare judges the builtins that declare variables, and those that change options
// of the shell, where they are called as ordinary commands.
func declare(a *analyser, name string, args []word, sc *scope) {
	switch name {
	case "set":
		a.listed(name, args)
		a.setOptions(args)
		return
	case "shopt":
		a.shoptOptions(args)
		return
	}
	a.listed(name, args)
	options := true
	for _, w := range args {
		switch {
		case options && w.known && w.text == "--":
			options = false
		case options && w.known && len(w.text) > 1 && (w.text[0] == '-' || w.text[0] == '+'):
			a.declareFlags(name, w.text)
		case name == "unset":
			a.unset(w, sc)
		default:
			a.declares(w, sc)
		}
	}
}

// declareFlags analyses the options of a declaration: -n makes a name an alias of another
// one, -i makes every value arithmetic, -f is about functions.
func (a *analyser) declareFlags(name, flags string) {
	if strings.ContainsAny(flags, "nifF") && !(name == "export" && !strings.Contains(flags, "f")) && !(name == "unset" && flags == "-v") {
		a.dynamic("a declaration that changes how variables are read")
	}
}

// unset judges the name of a variable that is removed: what programs and the shell
// assume without it differs, and a subscript is evaluated.
func (a *analyser) unset(w word, sc *scope) {
	if !w.known {
		a.dynamic("a declaration that is not known")
		return
	}
	plain, subscript, indexed := strings.Cut(w.text, "[")
	if indexed {
		a.subscript(strings.TrimSuffix(subscript, "]"), sc)
	}
	if selects(plain) {
		a.dynamic("the variable " + plain + " decides what runs")
	}
	if _, ok := a.funcs[plain]; ok {
		a.dynamic("a function is removed")
	}
	sc.vars = sc.vars.without(plain)
}

// setOptions judges the arguments of set. What is not an option replaces the
// positional parameters, which nothing here relies on.
func (a *analyser) setOptions(args []word) {
	for i, w := range args {
		if w.known && (w.text == "--" || len(w.text) < 2 || w.text[0] != '-' && w.text[0] != '+') {
			return
		}
		if !w.known && i == 0 && w.split {
			a.dynamic("an option that changes what names mean")
			return
		}
		if !w.known {
			return
		}
		if changesMeaning(w.text) {
			a.dynamic("an option that changes what names mean")
		}
		if strings.HasSuffix(w.text, "o") && i+1 < len(args) {
			if next := args[i+1]; !next.known || changesMeaning(next.text) {
				a.dynamic("an option that changes what names mean")
			}
		}
	}
}

// shoptOptions judges the arguments of shopt. Without -s and -u it only shows options, and
// with -o those of set are meant.
func (a *analyser) shoptOptions(args []word) {
	sets, unsets, matters, mattersOff := false, false, false, false
	for _, w := range args {
		switch {
		case !w.known || w.glob:
			sets, matters = true, true
		case strings.HasPrefix(w.text, "-"):
			sets, unsets = sets || strings.Contains(w.text, "s"), unsets || strings.Contains(w.text, "u")
			if strings.Contains(w.text, "o") {
				matters, mattersOff = true, true
			}
		default:
			matters = matters || meanings[w.text]
			mattersOff = mattersOff || meanings[w.text] && !slices.Contains(offInScripts, w.text)
		}
	}
	if sets && matters || unsets && mattersOff {
		a.dynamic("an option that changes what names mean")
	}
}

// offInScripts are options of shopt that are off when a script begins: to switch them off
// changes nothing, and to switch them on is dynamic.
var offInScripts = []string{
	"autocd", "cdable_vars", "cdspell", "checkhash", "compat31", "direxpand", "dirspell", "dotglob", "extdebug", "extglob", "globstar", "lastpipe", "nocaseglob",
}

// meanings are the options of shopt, and of bash -O, that change the meaning of a name, a
// pattern or an assignment.
var meanings = map[string]bool{
	"expand_aliases": true, "dotglob": true, "extglob": true, "globstar": true, "nocaseglob": true, "cdable_vars": true, "cdspell": true, "autocd": true,
	"globskipdots": true, "globasciiranges": true, "assoc_expand_once": true, "array_expand_once": true, "lastpipe": true, "interactive_comments": true,
	"sourcepath": true, "histexpand": true, "compat31": true, "localvar_inherit": true, "extdebug": true, "direxpand": true, "dirspell": true, "checkhash": true,
	"varredir_close": true, "patsub_replacement": true, "nullglob": false, "failglob": false, "inherit_errexit": false,
}

// changesMeaning reports the same of an argument of set: -a exports each variable that is
// set, -k takes every assignment as one for the command, -H reads ! as a command of the
// history, -P lets cd follow links, posix expands aliases, -x evaluates PS4.
func changesMeaning(option string) bool {
	switch option {
	case "allexport", "physical", "keyword", "posix", "histexpand", "history", "emacs", "vi", "interactive-comments", "hashall":
		return true
	}
	return len(option) > 1 && (option[0] == '-' || option[0] == '+') && option[1] != '-' && strings.ContainsAny(option, "aPkH")
}

// naming judges the builtins that take names of variables as arguments.
func naming(a *analyser, name string, args []word, sc *scope) {
	table := namingOptions[name]
	parsed, ok := table.parse(args, stopAtOperand)
	if !ok {
		a.dynamic("an option of " + name + " that is not known")
		return
	}
	switch name {
	case "printf":
		for _, o := range parsed.options {
			if o.name == "v" {
				a.assigned(o.value, false, sc)
			}
		}
		if len(parsed.operands) > 0 && !parsed.operands[0].known {
			a.dynamic("the format of printf is not known")
		}
		return
	case "getopts":
		if len(parsed.operands) > 1 {
			a.assigned(parsed.operands[1], false, sc)
		}
		a.assigned(literal("OPTARG"), false, sc)
		return
	case "wait":
		for _, o := range parsed.options {
			if o.name == "p" {
				a.assigned(o.value, true, sc)
			}
		}
		return
	}
	for _, o := range parsed.options {
		switch o.name {
		case "a":
			a.assigned(o.value, false, sc)
		case "C":
			a.unresolved(sc.wrapped(name), name+" runs a callback")
		}
	}
	for _, w := range parsed.operands {
		a.assigned(w, false, sc)
	}
}

// namingOptions are the options of these builtins.
var namingOptions = map[string]optionTable{
	"printf": "v:", "getopts": "", "wait": "n f p:",
	"read":    "a: d: e i: n: N: p: r s t: u: E",
	"mapfile": "d: n: O: s: t u: C: c:", "readarray": "d: n: O: s: t u: C: c:",
}

// let judges the builtin: each argument is arithmetic.
func let(a *analyser, _ string, args []word, sc *scope) {
	for i, w := range args {
		switch {
		case !w.known || w.split || w.glob && strings.ContainsAny(w.text, "?["):
			a.dynamic("arithmetic that is not known")
		case i == 0 && w.text == "--":
		default:
			a.arithmText(w.text, sc)
		}
	}
}

// selects reports whether a variable decides which program runs, which files programs read
// as their settings, or how the shell reads words.
func selects(name string) bool {
	if plainVariables[name] {
		return false
	}
	if selectors[name] {
		return true
	}
	return slices.ContainsFunc(selectorPrefixes, func(p string) bool { return strings.HasPrefix(name, p) }) ||
		slices.ContainsFunc(selectorSuffixes, func(s string) bool { return strings.HasSuffix(name, s) })
}

// loads reports whether a variable names a library or a script that is loaded.
func loads(name string) bool { return name == "LD_PRELOAD" || name == "LD_AUDIT" || name == "BASH_ENV" }

// selectorPrefixes are the families of variables of programs that have settings of
// this kind, or of the shell.
var selectorPrefixes = []string{
	"LD_", "DYLD_", "GIT_", "BASH_", "npm_", "NPM_", "YARN_", "PNPM_", "COREPACK_", "XDG_", "GO", "CGO_", "GCC_", "PYTHON", "PIP_", "UV_", "POETRY_", "CONDA_", "TOX_", "PYTEST_",
	"PERL", "RUBY", "GEM_", "BUNDLE_", "NODE_", "DENO_", "BUN_", "JAVA_", "JDK_", "MAVEN_", "GRADLE_", "CARGO_", "RUST", "CMAKE_", "CTEST_", "MAKE", "LUA_", "PHP_", "COMPOSER_",
	"DOCKER_", "KUBE", "HELM_", "TF_", "AWS_", "AZURE_", "GOOGLE_", "CLOUDSDK_", "SSH_", "GPG_", "LESS", "MALLOC_", "OPENSSL_", "SSL_", "CURL_", "ANSIBLE_", "R_", "JULIA_", "ERL_", "MIX_",
	"EMACS", "VIM", "TERM", "PKG_CONFIG", "PG", "MYSQL_", "SQLITE_", "POSIX", "COMP_", "READLINE_",
}

var selectorSuffixes = []string{
	"_PAGER", "_EDITOR", "_PATH", "_OPTIONS", "_OPTS", "FLAGS", "_CONFIG_FILE", "_CONFIG_HOME", "_COMMAND", "_WRAPPER", "_PRELOAD", "_PLUGINS", "_ASKPASS", "_proxy", "_PROXY",
	"_RC", "_RSH", "_SHELL", "_BROWSER", "_LOADER", "_ENV_ARGS",
}

// plainVariables are variables of these families that select nothing: how much a program
// prints, and for which machine it builds.
var plainVariables = map[string]bool{
	"GOOS": true, "GOARCH": true, "GOARM": true, "GOARM64": true, "GOAMD64": true, "GO386": true, "GOMIPS": true, "GOPPC64": true, "GORISCV64": true, "GOMAXPROCS": true, "GOGC": true, "GOMEMLIMIT": true,
	"GODEBUG": true, "GOTRACEBACK": true, "GO111MODULE": true, "GOEXPERIMENT": true, "CGO_ENABLED": true,
	"PYTHONUNBUFFERED": true, "PYTHONDONTWRITEBYTECODE": true, "PYTHONHASHSEED": true, "PYTHONIOENCODING": true, "PYTHONUTF8": true, "PYTHONFAULTHANDLER": true, "PYTHONOPTIMIZE": true,
	"NODE_ENV": true, "NODE_NO_WARNINGS": true, "RUST_BACKTRACE": true, "RUST_LOG": true, "RUST_TEST_THREADS": true, "RUST_MIN_STACK": true, "CARGO_INCREMENTAL": true, "CARGO_TERM_COLOR": true,
	"PIP_NO_CACHE_DIR": true, "PIP_DISABLE_PIP_VERSION_CHECK": true, "AWS_REGION": true, "AWS_DEFAULT_REGION": true, "TERM": true, "COMPOSER_NO_INTERACTION": true,
	"CTEST_OUTPUT_ON_FAILURE": true, "CTEST_PARALLEL_LEVEL": true, "CMAKE_BUILD_PARALLEL_LEVEL": true, "CMAKE_BUILD_TYPE": true, "BASH_SUBSHELL": true,
}

// selectors are variables that decide which program or library runs, which file of
// settings a program reads, or how the shell reads words.
var selectors = map[string]bool{
	"PATH": true, "ENV": true, "IFS": true, "PROMPT_COMMAND": true, "PS0": true, "PS1": true, "PS2": true, "PS4": true,
	"EDITOR": true, "VISUAL": true, "PAGER": true, "BROWSER": true, "SHELL": true, "SHELLOPTS": true, "BASHOPTS": true, "HOME": true,
	"CDPATH": true, "PWD": true, "OLDPWD": true, "DIRSTACK": true, "GLOBIGNORE": true, "GLOBSORT": true, "FIGNORE": true, "EXECIGNORE": true, "TMPDIR": true,
	"HISTFILE": true, "HISTCMD": true, "histchars": true, "HISTCONTROL": true, "MAILCHECK": true, "MAIL": true, "MAILPATH": true, "INSIDE_EMACS": true, "FUNCNEST": true,
	"_JAVA_OPTIONS": true, "CLASSPATH": true, "M2_HOME": true, "ANT_HOME": true, "ANT_ARGS": true, "KOTLIN_HOME": true, "SBT_OPTS": true,
	"CC": true, "CXX": true, "CPP": true, "LD": true, "AR": true, "AS": true, "FC": true, "NM": true, "OBJCOPY": true, "RANLIB": true, "STRIP": true, "YACC": true, "LEX": true, "CHOST": true,
	"CPATH": true, "SDKROOT": true, "COMPILER_PATH": true, "LIBRARY_PATH": true, "SPECS": true, "DEPENDENCIES_OUTPUT": true, "SUNPRO_DEPENDENCIES": true, "COLLECT_GCC": true,
	"GNUMAKEFLAGS": true, "MFLAGS": true, "M4PATH": true, "AWKPATH": true, "AWKLIBPATH": true, "ZDOTDIR": true, "FPATH": true, "INPUTRC": true, "NLSPATH": true, "LOCPATH": true, "GCONV_PATH": true,
	"TAPE": true, "WGETRC": true, "SYSTEM_WGETRC": true, "MANPATH": true, "MANOPT": true, "MANROFFOPT": true, "NETRC": true, "GNUPGHOME": true, "HOSTALIASES": true, "LOCALDOMAIN": true, "RES_OPTIONS": true, "SSLKEYLOGFILE": true,
	"PHPRC": true, "MYPYPATH": true, "GLIBC_TUNABLES": true, "GTK_MODULES": true, "EXINIT": true, "PSQLRC": true, "SCREENRC": true, "TMUX": true, "MORE": true, "VIRTUAL_ENV": true, "IPYTHONDIR": true,
	"COVERAGE_PROCESS_START": true, "RIPGREP_CONFIG_PATH": true, "TS_NODE_PROJECT": true, "TCLLIBPATH": true, "OCAMLPATH": true, "OCAMLRUNPARAM": true, "GHCRTS": true, "HGRCPATH": true, "HGEDITOR": true, "HGRC": true, "CVS_RSH": true, "SVN_SSH": true, "BZR_SSH": true,
	"http_proxy": true, "https_proxy": true, "ALL_PROXY": true, "all_proxy": true, "no_proxy": true, "ftp_proxy": true,
}
