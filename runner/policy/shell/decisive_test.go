package shell

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Which commands have ended with 0 where the script has, provided that they ran.
func TestWhichCommandsDecideTheStatus(t *testing.T) {
	for script, want := range map[string]string{
		"go test ./...": "go test ./...", "go test; ls": "ls", "go vet && go test": "go vet|go test", "cd a && go test ./... 2>&1": "cd a|go test ./...",
		"go test || true": "true", "cd nowhere || exit 0; go test": "go test", "true || go test": "go test", "go test | cat": "cat", "! go test": "", "go test &": "",
		"go test & wait": "wait", "if [ -f go.mod ]; then go test; fi": "go test", "if go test; then echo ok; else echo no; fi": "echo ok|echo no",
		"if a; then b; elif c; then d; fi": "b|d", "case $x in a) go test;; b) go vet; ls;; esac": "go test|ls", "while go test; do ls; done": "", "for i in 1 2; do go test; done": "",
		"(cd a; go test)": "go test", "{ go vet; go test; }": "go test", "time go test": "go test", "go test; exit 0": "exit 0", "echo $(go test)": "echo ?", "x=$(go test)": "",
		"f() { go test; }; f": "f",
		// Wrappers.
		"timeout 60 go test": "timeout 60 go test|go test", "env A=1 nice go test": "env A=1 nice go test|nice go test|go test", "bash -c 'go vet; go test'": "bash -c go vet; go test|go test",
		"find . -exec go test {} +": "find . -exec go test {} +", "printf a | xargs -n1 go test": "", "watch go test": "watch go test", "exec go test": "exec go test|go test",
		"eval 'go test'": "eval go test|go test", "sudo go test": "sudo go test|go test",
		// set -e and pipefail.
		"set -e; go test; echo done": "go test|echo done", "set -euo pipefail\ngo test | tee log\necho done": "go test|tee log|echo done", "set -e; go test | tee log; ls": "tee log|ls",
		"set -e; go vet && go test; ls": "go test|ls", "set -e; go vet || go test; ls": "go test|ls", "set -e; go test; set +e; go vet; ls": "go test|set +e|ls", "(set -e); go test; ls": "ls",
		"set -e; (go vet; go test); ls": "go vet|go test|ls", "set -e; { go vet; ls; } && echo x": "ls|echo x", "set -o errexit; go test; ls": "go test|ls", "set -e; ! go test; ls": "ls",
		"set -e; go test & ls": "ls", "set -e; if go test; then :; fi; ls": ":|ls", "a || set -e; go test; ls": "ls",
		// Where more than the text decides.
		"trap 'exit 0' EXIT; go test": "", "go() { true; }; go test": "", "PATH=.; go test": "", "$x; go test": "",
		// Equal commands cannot be told apart by what was executed.
		"go test; true || go test": "", "go test && go test": "go test|go test",
	} {
		var got []string
		for _, c := range Parse(script, "").Commands {
			if c.Decisive {
				got = append(got, strings.Join(c.Argv, " "))
			}
		}
		if diff := cmp.Diff(want, strings.Join(got, "|")); diff != "" {
			t.Errorf("%q (want, got): %s", script, diff)
		}
	}
}
