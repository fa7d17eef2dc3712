package shell

import (
	"slices"
	"strings"
	"testing"
)

var hostile = []string{
	"rm x", "/bin/rm x", "./rm x", `"r"m x`, `r\m x`, "r''m x", "$'\\162m' x", "$'\\x72m' x", "{rm,x}", "r{m,n} x", "$(echo rm) x", "`echo rm` x", "${X:-rm} x",
	"ls;rm x", "ls&rm x", "ls|rm x", "ls||rm x", "ls&&rm x", "ls |& rm x", "(rm x)", "{ rm x; }", "! rm x", "time rm x", "coproc rm x", "coproc N { rm x; }",
	"if rm x; then :; fi", "if :; then :; elif rm x; then :; fi", "if :; then :; else rm x; fi", "while rm x; do :; done", "until :; do rm x; done", "for i in $(rm x); do :; done",
	"for i in a; do rm x; done", "for ((i=0;i<$(rm x);i++)); do :; done", "case x in x) rm x;; esac", "case $(rm x) in *) :;; esac", "case x in $(rm x)) :;; esac", "select i in a; do rm x; done",
	"f() { rm x; }; f", "function f { rm x; }", "f() ( rm x )", "echo $(rm x)", "echo `rm x`", "echo \"$(rm x)\"", "echo \"`rm x`\"", "x=$(rm x)", "x[$(rm x)]=1", "x=([1]=$(rm x))", "echo ${x[$(rm x)]}",
	"echo ${x:-$(rm x)}", "echo ${x:$(rm x)}", "echo ${x/$(rm x)/}", "echo $(( $(rm x) ))", "(( $(rm x) ))", "[[ $(rm x) ]]", "[[ a -eq $(rm x) ]]", "[[ -v x[$(rm x)] ]]", "let x=$(rm x)", "let 'a[$(rm x)]=1'", "declare x=$(rm x)", "export x=$(rm x)",
	"cat <<EOF\n$(rm x)\nEOF", "cat <<< $(rm x)", "cat < <(rm x)", "ls > >(rm x)", "ls > $(rm x)", "cat <<-EOF\n\t`rm x`\n\tEOF", "echo ${x@P}", "echo ${!x}", "x='$(rm x)'; echo ${x@P}", "x='a[$(rm x)]'; echo $((x))", "x='a[$(rm x)]'; [[ x -eq 1 ]]", "read x < f; (( x ))", "x='a[$(rm x)]'; y=${z:x}", "x='a[$(rm x)]'; test -v $x", "[ -v 'a[$(rm x)]' ]", "printf -v 'a[$(rm x)]' 1",
	"sudo rm x", "sudo -u root rm x", "sudo -uroot rm x", "sudo -- rm x", "sudo A=1 rm x", "sudo -s rm x", "sudo -i", "doas rm x", "env rm x", "env -i A=1 rm x", "env -S 'rm x'", "env -S'rm x'", "env -vS 'rm x'", "env --split-string='rm x'", "env -u A rm x", "env -- rm x", "env -C / rm x", "env -S 'bash -c \"rm x\"'",
	"nohup rm x", "nice rm x", "nice -n 5 rm x", "nice -5 rm x", "ionice -c 3 rm x", "timeout 5 rm x", "timeout -s KILL 5 rm x", "timeout -k 1 5 rm x", "timeout --signal=KILL 5 rm x", "timeout --foreground 5 rm x", "setsid rm x", "setsid -w rm x", "stdbuf -o0 rm x", "stdbuf -o 0 rm x", "command rm x", "command -p rm x", "builtin eval 'rm x'", "exec rm x", "exec -a z rm x", "exec -l rm x",
	"xargs rm < f", "xargs -n 1 rm", "xargs -I{} rm {}", "xargs -I {} sh -c 'rm {}'", "xargs -0 -r rm", "xargs -P4 -n1 rm", "find . -exec rm {} +", "find . -exec rm {} ';'", "find . -ok rm {} ';'", "find . -execdir sh -c 'rm $0' {} ';'", "find -delete", "parallel rm ::: x", "watch rm x", "watch -n 1 -d rm x",
	"sh -c 'rm x'", "bash -c 'rm x'", "bash -xc 'rm x'", "bash -c -- 'rm x'", "bash -ec 'rm x'", "bash +x -c 'rm x'", "bash -o pipefail -c 'rm x'", "bash --norc -c 'rm x'", "bash -O extglob -c 'rm x'", "zsh -c 'rm x'", "dash -c 'rm x'", "bash x.sh", "bash < x.sh", "bash", "bash -s < f", "bash -l -c :", "bash --login -c :", "bash -i -c :", "bash --rcfile f", "bash <<< 'rm x'", "bash <<'E'\nrm x\nE", "busybox rm x", "busybox sh -c 'rm x'", "su -c 'rm x'", "script -c 'rm x'", "flock f rm x", "flock f -c 'rm x'",
	"eval rm x", "eval 'rm x'", "eval \"rm x\"", "eval -- rm x", "eval $x", "trap 'rm x' EXIT", "trap -- 'rm x' 0", "source f", ". f", ". ./f", "alias ls='rm x'; ls", "ls() { rm x; }; ls", "enable -f ./x.so y", "hash -p /bin/rm ls; ls", "mapfile -C 'rm x' -c 1 a", "readarray -C'rm x' a", "complete -C 'rm x' y", "bind -x '\"a\":rm x'", "PROMPT_COMMAND='rm x'", "shopt -s expand_aliases", "fc -s", "history -s x",
	"git -c alias.x='!rm x' x", "git -c core.pager='rm x' log", "git --exec-path=. status", "git --git-dir=x status", "git x", "git rebase --exec 'rm x' HEAD", "git rebase -x 'rm x' HEAD", "git bisect run rm x", "git submodule foreach rm x", "git clone --upload-pack='rm x' a b", "git clone -u 'rm x' a b", "git clone --upload-p='rm x' a b", "git ls-remote --upload-pack='rm x' a", "git fetch --upload-pack 'rm x'", "git clone 'ext::rm x' y", "git grep -O'rm x' y", "git grep --open-files-in-pager='rm x' y", "git diff --ext-diff", "git log --ext-diff", "git difftool -x 'rm x'", "git push --receive-pack='rm x'", "git push --exec='rm x'", "git config core.pager 'rm x'", "git filter-branch --tree-filter 'rm x'", "git archive --remote=x --exec='rm x' HEAD",
	"rg --pre 'rm' x", "rg --pre=rm x", "rg --hostname-bin rm x", "tar xf a --checkpoint=1 --checkpoint-action=exec='rm x'", "tar xf a --to-command='rm x'", "tar -I 'rm x' -xf a", "tar xf a --use-compress-program='rm x'", "tar -F 'rm x' -xf a", "sort --compress-program=rm x", "sort --compress-prog rm x", "sed e", "sed '1e rm x' f", "sed 's/a/rm x/e' f", "sed -e 's/a/b/;s/c/d/e' f", "sed -f f x", "sed -n '/x/e rm' f", "sed --expression='1e rm' f", "gsed '1e rm' f", "awk 'BEGIN{system(\"rm x\")}'", "awk '{print | \"rm x\"}'", "awk '\"rm x\" | getline'", "awk -f f", "gawk '@load \"x\"'", "man -P 'rm x' ls", "vim -c '!rm x'", "perl -e 'unlink x'", "perl -pe 's/a/`rm x`/e' f", "python3 -c 'import os'", "python -c x", "python3 - < f", "python3", "ruby -e x", "node -e x", "node --eval=x", "php -r x", "lua -e x", "split --filter='rm x' f", "ssh h rm x", "docker run a rm x", "kubectl exec p -- rm x", "npx rm", "npm exec rm", "go run x.go", "go test -exec 'rm x'", "go build -toolexec 'rm x'", "go vet -vettool=rm", "go generate ./...", "make x SHELL=rm", "make --eval='x:;rm x'", "strace rm x", "strace -o f rm x", "nc -e rm h 1", "ncat --exec rm h", "socat - EXEC:rm", "rsync -e 'rm x' a b", "rsync --rsh='rm x' a b", "scp -S rm a b", "curl -K f", "wget --use-askpass=rm h", "wget -e use_askpass=rm h", "crontab f", "at now", "install --strip-program=rm -s a b", "gcc -wrapper rm x.c",
	"PATH=. ls", "LD_PRELOAD=x ls", "BASH_ENV=f bash -c :", "GIT_PAGER='rm x' git log", "PAGER=rm man ls", "GIT_EXTERNAL_DIFF=rm git diff", "NODE_OPTIONS='-r x' node y.js", "PYTHONPATH=. python x.py", "IFS=x; ls", "env PATH=. ls", "env LD_PRELOAD=x ls", "export PATH=.; ls", "declare PATH=.; ls", "HOME=/etc; rm ~/x",
	"ls\nrm x", "ls #\nrm x", "ls\\\n;rm x", "echo hi#; rm x", "\trm x", "rm\tx", "ls $'\\n' rm; rm x", "[ -f x ] && rm x", "true && { ls; rm x; }", "ls 2>&1; rm x", "ls <<< x; rm x", "ls >&2 & rm x", "x=1 rm x", "x=1 y=2 rm x", ">f rm x", "2>&1 rm x", "<f rm x", "$x rm x", "${x} rm x", "\"$@\" rm x", "$1", "*", "/bin/r?", "./*", "r[m] x", "~/rm x", "../rm x", "\x00rm", "ls\r\nrm x", "echo 'x", "if", "()000", "tar 0 -C", "&& rm x", "rm x &&", "ls ) rm x", "$'rm\\0' x", "$'\\u0072m' x", "$\"rm\" x", "@(rm) x", "!(x) y", "test \"$(rm x)\"", "cd $(rm x)", "printf \"$(rm x)\"", "echo ${x:=$(rm x)}", "echo ${x:?$(rm x)}", "echo ${x:+$(rm x)}", "echo ${x%$(rm x)}", "echo \"${x:-\"$(rm x)\"}\"", "echo ${x^^$(rm x)}", "echo $[ $(rm x) ]", "cat <(cat <(rm x))", "while read x; do eval $x; done", "echo rm x | sh", "echo rm x | bash -s", "curl x | sudo bash", "sudo bash -c 'rm x'", "sudo sh -c \"$x\"", "sh -c \"$(cat f)\"", "bash -c \"$x\"", "env bash -c 'rm x'", "xargs -a f -I% bash -c 'rm %'", "exec 3<>/dev/tcp/h/1; rm x", "unset -f x; rm x", "popd; rm x", "export -f f; bash -c f; rm x",
}

// TestNothingRunsUnseen: each script runs rm, or a command that is known only at run time.
// Either rm is reported, or the script is dynamic or opaque.
func TestNothingRunsUnseen(t *testing.T) {
	for _, script := range hostile {
		f := Parse(script, "")
		if !f.Dynamic && !f.Opaque && !slices.Contains(names(f), "rm") && !(script == "find -delete" && len(f.Writes) > 0) {
			t.Errorf("%q: %v, writes %v, known", script, names(f), f.Writes)
		}
	}
}

var harmless = []string{
	"ls -la src", "git status", "git diff --stat HEAD~1", "git log --oneline -n 5", "git add -A && git commit -m 'fix: x'", "git show HEAD:README.md", "git commit -m \"$(cat <<'EOF'\nfix\nEOF\n)\"",
	"go test ./... -run TestX -count=1", "go build ./... && go vet ./...", "go test -race ./... 2>&1 | tail -20", "grep -rn 'func main' --include='*.go' .", "rg -n 'TODO|FIXME' src", "find . -name '*.go' -not -path './vendor/*' | head -50", "find . -type f -newer x | wc -l",
	"sed -n '10,20p' f.go", "sed -i 's/foo/bar/g' f.go", "sed -e 's|a/b|c|' -e '/^$/d' f", "awk '{print $1}' f", "awk -F: '$3>500 {print $1}' f", "cat a b | sort | uniq -c | sort -rn | head", "wc -l *.go", "mkdir -p a/b && cd a/b && touch c", "cp -r a b", "mv a b", "rm -f x.o", "chmod +x run.sh", "diff -u a b", "jq '.a | .b' f.json", "echo \"$USER\"", "echo done", "printf '%s\\n' a b", "test -f x && echo yes", "[ -n \"$X\" ] && echo set", "[[ -f x && ! -d y ]] || echo no", "for f in *.go; do echo \"$f\"; done", "if [ $? -eq 0 ]; then echo ok; fi", "npm test", "npm run build", "cargo build --release", "cargo test", "python3 script.py --flag x", "python3 -m pytest -q tests", "pytest -q", "make build", "make -j4 test", "tar czf out.tgz src", "tar tzf a.tgz", "curl -sSf https://example.com/x -o x", "du -sh .", "ps aux", "date +%s", "which go", "node --version", "docker --version", "true", "sleep 1", "x=$((1+2)); echo $x", "export FOO=bar", "set -euo pipefail\nls", "cd src && ls", "pushd a; ls; popd", "head -n 5 f 2>/dev/null || true", "timeout 10 go test ./...", "time go build ./...", "nohup ./server > log 2>&1 &", "./run.sh --fast", "echo a > f.txt", "cat > f <<'EOF'\n$(x)\nEOF", "tr a-z A-Z < f", "xxd f | head", "env | grep FOO", "seq 1 10", "basename \"$(pwd)\"", "command -v go", "type ls", "wait", "echo $PATH", "gofmt -l .", "pip install -r requirements.txt", "apt-get install -y jq",
}

// TestHarmlessScriptsAreKnown: what people run all day must not be dynamic.
func TestHarmlessScriptsAreKnown(t *testing.T) {
	for _, script := range harmless {
		if f := Parse(script, ""); f.Dynamic {
			t.Errorf("%q is dynamic: %v", script, f.Reasons)
		}
	}
}

func TestFoldersAreFollowed(t *testing.T) {
	for script, want := range map[string]string{
		"cd a; rm b": "a/b", "cd a && cd .. && rm b": "b", "(cd a); rm b": "b", "cd a | rm b": "b", "cd a & rm b": "b", "cd a || exit 1; rm b": "a/b", "cd a || rm b": "b", "cd $x; rm b": Unknown,
		"if true; then cd a; fi; rm b": "a/b", "cd -; rm b": Unknown, "cd; rm b": "~/b", "f() { cd a; }; f; rm b": "a/b", "cd a; cd /x; rm b": "/x/b", "eval 'cd a'; rm b": "a/b", "bash -c 'cd a'; rm b": "b", "source f; rm b": Unknown, "pushd a; popd; rm b": "b", "popd; rm b": Unknown, "while x; do cd a; rm b; done": "a/b",
	} {
		f := Parse(script, "")
		if !slices.Contains(f.Writes, want) || want == Unknown && !f.Dynamic {
			t.Errorf("%q: writes %v, dynamic %v, want %s", script, f.Writes, f.Dynamic, want)
		}
	}
	if f := Parse("rm b; cat ../c > d", "w"); !slices.Equal(f.Writes, []string{"w/b", "w/d"}) || !slices.Equal(f.Reads, []string{"c"}) {
		t.Errorf("a start folder: writes %v, reads %v", f.Writes, f.Reads)
	}
}

func TestLimits(t *testing.T) {
	for name, script := range map[string]string{
		"long": strings.Repeat("ls;", sizeLimit), "parentheses": strings.Repeat("(", 100_000), "substitutions": strings.Repeat("$(", 60_000), "ifs": strings.Repeat("if ", 40_000), "braces": strings.Repeat("{ ", 60_000), "quotes": strings.Repeat("\"$(", 40_000),
		"backquotes": strings.Repeat("`", 100_000), "whiles": strings.Repeat("while ", 20_000), "bangs": strings.Repeat("! ", 60_000), "brace words": strings.Repeat("{a,b}", 2000), "sequence": "rm {1..100000000}", "sh -c": nested(40), "arithmetic": "echo $((" + strings.Repeat("(", 50_000), "tests": "[[ " + strings.Repeat("( ", 50_000), "not tests": "[[ " + strings.Repeat("! ", 60_000), "minus": "echo $((" + strings.Repeat("- ", 60_000) + "1))", "expansions": strings.Repeat("${x:-", 20_000), "functions": strings.Repeat("f() ", 30_000), "times": strings.Repeat("time ", 25_000), "ternary": "((" + strings.Repeat("a?", 50_000) + "1))", "pow": "((" + strings.Repeat("2**", 40_000) + "1))", "pipes": strings.Repeat("a|", 60_000) + "a", "and": strings.Repeat("a&&", 40_000) + "a",
	} {
		t.Run(name, func(t *testing.T) {
			f := Parse(script, "")
			if !f.Dynamic && name != "pipes" && name != "and" && name != "brace words" && name != "minus" && name != "ternary" && name != "pow" {
				t.Errorf("not dynamic: %d commands", len(f.Commands))
			}
		})
	}
}

func nested(n int) string {
	s := "rm x"
	for range n {
		s = "sh -c \"" + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + "\""
		if len(s) > sizeLimit/2 {
			return strings.Repeat("eval ", 1) + s
		}
	}
	return s
}

func TestManyCommands(t *testing.T) {
	f := Parse(strings.Repeat("ls;", 5000)+"rm x", "")
	if len(f.Commands) != 5001 || f.Dynamic {
		t.Errorf("%d commands, dynamic %v %v", len(f.Commands), f.Dynamic, f.Reasons)
	}
}

func FuzzParse(f *testing.F) {
	for _, e := range corpus(f) {
		f.Add(e.Command)
	}
	for _, s := range []string{"()000", "tar 0 -C", "{a,{b,c}}$(d)", "$'\\", "cd", "env -S", "find . -exec", "xargs -I", "sed -e", "awk -F", "git -C", "timeout", "[[ ", "x=(", "sudo -u", "dd of=", "watch", "trap", "tar -f", "rsync", "read -a", "printf -v", "flock", "setarch"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, script string) {
		facts := Parse(script, "")
		for _, r := range facts.Reasons {
			if strings.Contains(r, "broke off") {
				t.Errorf("%q: %s", script, r)
			}
		}
		if strings.TrimSpace(script) != "" && len(facts.Commands) == 0 && !facts.Dynamic && len(facts.Redirects) == 0 && facts.Network {
			t.Errorf("%q uses the network without a command", script)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	entries := corpus(b)
	b.ReportAllocs()
	for b.Loop() {
		for _, e := range entries {
			Parse(e.Command, "")
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(entries)), "ns/script")
}
