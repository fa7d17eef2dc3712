package shell

import "testing"

// TestEveryWayToSetAVariableIsSeen: a variable that decides what runs is set in each
// of these ways.
func TestEveryWayToSetAVariableIsSeen(t *testing.T) {
	for _, script := range []string{
		"PATH=.; ls", "PATH+=:.; ls", "PATH=. ls", "PATH[0]=.; ls", "PATH=(.); ls", "export PATH=.; ls", "declare PATH=.", "typeset PATH=.", "readonly PATH=.", "f() { local PATH=.; ls; }; f",
		"for PATH in .; do ls; done", "for PATH; do ls; done", "select PATH in .; do ls; done", "((PATH=1))", "((PATH++))", "((++PATH))", "((x=1, PATH=2))", "echo $((PATH=1))", "for ((PATH=0;;)); do ls; done",
		"let PATH=1", "let 'PATH=1'", "command let PATH=1", "builtin let PATH=1", "x[PATH=1]=2", "echo ${x[PATH=1]}", "echo ${x:PATH=1}", "[[ 1 -eq PATH=1 ]]",
		"exec {PATH}<f", "{PATH}<f ls", "ls {PATH}>f", "coproc PATH { ls; }", "read PATH <f", "read -r a PATH <f", "read -a PATH <f", "read -aPATH <f", "read -ra PATH <f", "mapfile PATH <f", "mapfile -t PATH <f", "readarray PATH <f",
		"printf -v PATH x", "printf -vPATH x", "getopts a PATH", "wait -n -p PATH", "wait -pPATH", "echo ${PATH:=x}", "echo ${PATH=x}", "declare -n r=PATH; r=.", "typeset -n r=PATH", "local -n r=PATH", "command declare -n r=PATH", "builtin declare PATH=.", "command export PATH=.",
		"command -p declare -x PATH=.", "unset PATH; ls", "env PATH=. ls", "env -u PATH ls", "env --unset=PATH ls", "sudo PATH=. ls", "strace -E PATH=. ls", "xargs --process-slot-var=PATH ls",
		"BASH_ALIASES[ls]='rm x'", "BASH_CMDS[ls]=./ls; ls", "XDG_CONFIG_HOME=. git log", "COMPILER_PATH=. gcc a.c", "GOENV=f go build", "GOTOOLCHAIN=path go build", "GCC_EXEC_PREFIX=. gcc a.c", "PYTHONPATH=. python3 a.py", "CARGO_BUILD_RUSTC=./x cargo build",
		"NPM_CONFIG_SCRIPT_SHELL=./x npm test", "OPENSSL_CONF=f curl https://a.test", "POSIXLY_CORRECT=1; ls", "for PS4 in x; do ls; done", "for GIT_DIR in x; do git log; done", "for f in a; do read f <g; cat $f; done", "set -o posix", "set -H", "set -o history -o histexpand",
		"shopt -so allexport", "shopt -os physical", "shopt -s dotglob", "shopt -u sourcepath", "shopt -uo history", "shopt -su dotglob", "shopt $x dotglob", "shopt [-]s dotglob", "history -r f", "history -c", "history -d 3", "history 1 2",
		"for f in a; do for f in b; do cat $f; done; done", "g() { f=b; }; for f in a; do g; cat $f; done", "trap 'f=b' DEBUG; for f in a; do cat $f; done",
	} {
		if f := Parse(script, ""); !f.Dynamic {
			t.Errorf("%q is known: %v", script, names(f))
		}
	}
	for _, script := range []string{
		"x=1; ls", "export X=1", "for x in 1 2; do ls; done", "read -r x <f", "printf -v x %s 1", "mapfile -t lines <f", "GOOS=linux go build", "CGO_ENABLED=0 go build", "PYTHONUNBUFFERED=1 python3 a.py", "NODE_ENV=test npm test", "exec 3<f", "exec {fd}<f", "RUST_BACKTRACE=1 cargo test",
		"FOO_BAR=1 ./run.sh", "wait", "wait $!", "unset x", "i=0; ((i++)); let i+=1; echo $((i*2))", "for ((i=0;i<3;i++)); do echo $i; done", "env A=1 ls", "n=5; head -n $((n+1)) f", "for i in {1..100}; do echo $((i*2)); done", "now=$(date +%s)", "echo $(( $(date +%s) + 1 ))",
		"shopt extglob", "shopt -p dotglob", "shopt -qo posix", "shopt -s nullglob", "shopt -u dotglob extglob", "history 10",
	} {
		if f := Parse(script, ""); f.Dynamic {
			t.Errorf("%q is dynamic: %q", script, f.Reasons)
		}
	}
}

// TestArithmeticOnTextIsNotKnown: arithmetic evaluates the text of a variable, and a
// subscript in it runs commands.
func TestArithmeticOnTextIsNotKnown(t *testing.T) {
	for _, script := range []string{
		"echo 'a[$(rm x)]'; ((_))", "echo 'a[$(rm x)]'; echo $((_))", "read <f; ((REPLY))", "[[ 'a[$(rm x)]' =~ .+ ]]; ((BASH_REMATCH))", "mapfile <f; ((MAPFILE))", "mapfile -t <f; ((MAPFILE[0]))", "getopts a: o; ((OPTARG))", "select x in a; do ((REPLY)); done",
		"((PWD))", "((OLDPWD))", "((DIRSTACK))", "((BASH_COMMAND))", "((FUNCNAME))", "(($1))", "((${@}))", "((ANY))", "echo $((ANY+1))", "echo ${x:ANY}", "echo ${x[ANY]}", "x[ANY]=1", "[[ ANY -eq 1 ]]", "[[ $ANY -gt 1 ]]", "for ((;ANY;)); do :; done", "let ANY", "let 'ANY+1'",
		"unset 'a[$(rm x)]'", "f() { local 'a[$(rm x)]=1'; }; f", "declare 'a[$(rm x)]=1'", "read 'a[$(rm x)]' <f", "wait -n -p 'a[$(rm x)]'", "printf -v 'a[$(rm x)]' 1", "test -v 'a[$(rm x)]'", "command let 'a[$(rm x)]=1'", "env 'x=a[$(rm x)]' bash -c '((x))'", "x='a[$(rm x)]' bash -c '((x))'",
		"if false; then x=1; fi; ((x))", "false && x=1; ((x))", "(x=1); ((x))", "x=1 true; ((x))", "x=1; x=$y; ((x))", "for x in a b; do ((x)); done", "x=$(cat f); ((x))", "echo $(( $(cat f) ))", "echo $((a$x))", "x=1; x+=$y; ((x))", "RANDOM=$y; ((RANDOM))", "true | x=1; ((x))", "x=1 & ((x))",
		"declare -i x; x='a[$(rm x)]'", "typeset -i x=1", "command declare -i x", "x='y'; ((x))", "echo ${x:=a}; ((x))",
	} {
		if f := Parse(script, ""); !f.Dynamic {
			t.Errorf("%q is known: %v", script, names(f))
		}
	}
}

// TestAnotherShellHasItsOwnVariables: a text that another shell runs does not see what is
// known of this one, and variables that the shell evaluates are judged where they are set.
func TestAnotherShellHasItsOwnVariables(t *testing.T) {
	for _, script := range []string{
		"for f in a b; do sh -c 'rm -rf x/$f'; done", "for f in a; do bash -c 'rm $f/*'; done", "x=1; bash -c '((x))'", "RANDOM='a[$(rm x)]'", "OPTIND='a[$(rm x)]'", "SECONDS='b[$(rm x)]'",
		"for RANDOM in 'a[$(rm x)]'; do :; done", "x='a[$(rm y)'$((1))']'; ((x))", "f() { ls; }; bash -c 'f a'",
	} {
		if f := Parse(script, ""); !f.Dynamic && !f.Opaque {
			t.Errorf("%q is called exact: %v", script, names(f))
		}
	}
}
