package shell

import (
	"slices"
	"strings"
	"testing"
)

func TestSpellingSeparatesGlobalOptions(t *testing.T) {
	for _, c := range []struct {
		command, global, rest string
		known                 bool
	}{
		{"git -C . --no-pager push origin", "-C . --no-pager", "push origin", true},
		{"git --git-dir=x status -s", "--git-dir=x", "status -s", true},
		{"git --frob push", "--frob", "push", false},
		{"git", "", "", true},
		{"npm -s publish --tag x", "-s", "publish --tag x", true},
		{"pnpm --filter web -r build", "--filter web -r", "build", true},
		{"docker -H tcp://a:1 compose -f c.yml up -d", "-H tcp://a:1 -f c.yml", "compose up -d", true},
		{"podman --log-level debug ps", "--log-level debug", "ps", true},
		{"oc -n x get pods", "-n x", "get pods", true},
		{"helm --kube-context a list", "--kube-context a", "list", true},
		{"go -C sub test ./...", "-C sub", "test ./...", true},
		{"cargo +nightly -q test", "+nightly -q", "test", true},
		{"terraform -chdir=infra apply", "-chdir=infra", "apply", true},
		{"gh -R a/b pr list", "-R a/b", "pr list", true},
		{"aws --region x s3 ls", "--region x", "s3 ls", true},
		{"rm -r x", "", "-r x", true},
		{"frobnicate -x push", "", "-x push", false},
	} {
		global, rest, known := Spelling(strings.Fields(c.command))
		if strings.Join(global, " ") != c.global || strings.Join(rest, " ") != c.rest || known != c.known {
			t.Errorf("%s: global %q, rest %q, known %v", c.command, global, rest, known)
		}
	}
}

func TestCanonicalIsOneSpelling(t *testing.T) {
	for _, c := range []struct{ command, want string }{
		{"rm --rec --fo x", "rm --force --recursive x"},
		{"rm -rf x", "rm --force --recursive x"},
		{"rm x -fR", "rm --force --recursive x"},
		{"rm -r -- -x", "rm --recursive -- -x"},
		{"rm -- x", "rm x"},
		{"sort -ofile -n", "sort --numeric-sort --output=file"},
		{"sort --out file", "sort --output=file"},
		{"head -5 x", "head -5 x"},
		{"ls --color=auto -la", "ls --all --color=auto -l"},
		{"rm -rQ x", "rm --recursive -Q x"},
		{"rm --frob x", "rm --frob x"},
		{"git -C . -P push --force", "git --no-pager -C . push --force"},
		{"oc -nx get pods -o yaml", "kubectl --namespace=x get --output=yaml pods"},
		{"podman container ls -aq", "docker container ls --all --quiet"},
		{"npm i -D x", "npm install --save-dev x"},
		{"git remote rm x", "git remote remove x"},
		{"dir -a", "dir --all"},
		{"frobnicate -rf x", "frobnicate -rf x"},
		{"echo -n x", "echo -n x"},
	} {
		got := Canonical(strings.Fields(c.command))
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q", c.command, got)
		}
		if again := Canonical(got); !slices.Equal(got, again) {
			t.Errorf("%s: %q becomes %q", c.command, got, again)
		}
	}
}

func BenchmarkCanonical(b *testing.B) {
	argv := strings.Fields("git -C . --no-pager push --force origin main")
	for b.Loop() {
		Canonical(argv)
	}
}
