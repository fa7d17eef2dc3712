package shell

import (
	"slices"
	"strings"
	"testing"
)

// class is how much of a script is known.
func class(f Facts) string {
	switch {
	case f.Dynamic:
		return "dynamic"
	case f.Opaque:
		return "opaque"
	}
	return "exact"
}

func TestSubcommandsDecide(t *testing.T) {
	for _, c := range []struct{ script, want, commands string }{
		{"kubectl get pods -o wide", "exact", "kubectl"},
		{"oc -n x describe pod y", "exact", "oc"},
		{"kubectl delete pod x", "opaque", "kubectl"},
		{"kubectl --kubeconfig=k get pods", "opaque", "kubectl"},
		{"kubectl exec -it p -c x -- rm -r y", "dynamic", "kubectl rm ?"},
		{"docker ps -a", "exact", "docker"},
		{"podman logs -f --tail 5 x", "exact", "podman"},
		{"nerdctl container ls", "exact", "nerdctl"},
		{"docker run --rm -v .:/w -e A=b image rm x", "dynamic", "docker rm ?"},
		{"docker compose -f c.yaml ps", "exact", "docker"},
		{"docker compose up -d", "dynamic", "docker ?"},
		{"docker rm -f x", "opaque", "docker"},
		{"docker frobnicate", "opaque", "docker"},
		{"helm list -A", "exact", "helm"},
		{"helm install x y", "opaque", "helm"},
		{"terraform fmt -check", "exact", "terraform"},
		{"tofu apply", "opaque", "tofu"},
		{"gh pr list --state all", "exact", "gh"},
		{"gh pr merge 1", "opaque", "gh"},
		{"gh api repos/a/b", "exact", "gh"},
		{"gh api -XDELETE repos/a/b", "opaque", "gh"},
		{"aws --region x s3 ls s3://b", "exact", "aws"},
		{"aws s3 cp a s3://b", "opaque", "aws"},
		{"psql -c 'select 1'", "dynamic", "psql ?"},
		{"psql --version", "exact", "psql"},
		{"redis-cli -h h get k", "exact", "redis-cli"},
		{"npm ls --depth=0", "exact", "npm"},
		{"npm -s run build", "opaque", "npm"},
		{"npm x rm y", "dynamic", "npm ?"},
		{"yarn", "opaque", "yarn"},
		{"npx --version", "exact", "npx"},
		{"pip3 show x", "exact", "pip3"},
		{"python3.11 -m pip install -t d x", "opaque", "python3.11"},
		{"go version", "exact", "go"},
		{"go test -exec 'rm x' ./...", "dynamic", "go rm"},
		{"go -C sub build", "opaque", "go"},
		{"go env -w GOFLAGS=x", "dynamic", "go ?"},
		{"gofmt -l -w src", "exact", "gofmt"},
		{"cargo +nightly test", "opaque", "cargo"},
		{"cargo --version", "exact", "cargo"},
		{"make -n all", "opaque", "make"},
		{"make CC=x", "dynamic", "make"},
		{"make --ev 'x:'", "dynamic", "make ?"},
		{"gcc-12 -O2 -Wall -Isrc -c a.c -oa.o", "opaque", "gcc-12"},
		{"python3 -m json.tool f", "exact", "python3"},
		{"python3 -V", "exact", "python3"},
		{"python3 -Bc 'x'", "dynamic", "python3 ?"},
		{"python3 a.py -c x", "opaque", "python3"},
		{"perl -ne 'print' f", "dynamic", "perl ?"},
		{"node --version", "exact", "node"},
		{"node -r ./x y.js", "dynamic", "node ?"},
		{"java -jar a.jar", "opaque", "java"},
	} {
		f := Parse(c.script, "")
		got := names(f)
		for name := range strings.FieldsSeq(c.commands) {
			if !slices.Contains(got, name) {
				t.Errorf("%s: starts %v, not %s", c.script, got, name)
			}
		}
		if class(f) != c.want {
			t.Errorf("%s: %s, not %s: %+v", c.script, class(f), c.want, f)
		}
	}
}

func TestValuesOfOptionsAreFacts(t *testing.T) {
	for _, c := range []struct{ script, reads, writes string }{
		{"go test -coverprofile=c.out ./a", "", "c.out"},
		{"go build -o bin/x ./a", "", "bin/x"},
		{"gofmt -w a.go", "a.go", "a.go"},
		{"gcc a.c -obin", "a.c", "bin"},
		{"python3 -m json.tool a b", "a", "b"},
		{"docker run --env-file e --cidfile=c image true", "e", "c"},
		{"docker compose -f a.yaml ps", ". a.yaml", ""},
		{"kubectl get -fx.yaml", "x.yaml", ""},
		{"pip install -r r.txt", "r.txt", "."},
		{"node a.js", "a.js", ""},
	} {
		f := Parse(c.script, "")
		if r, w := strings.Join(sorted(f.Reads), " "), strings.Join(sorted(f.Writes), " "); r != c.reads && !strings.HasPrefix(r, "./") || w != c.writes {
			t.Errorf("%s: reads %q, writes %q", c.script, r, w)
		}
	}
}
