//go:build linux && amd64

package main

import (
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == boxArgument {
		fail(serveBox())
		return
	}
	os.Exit(m.Run())
}

// testBoxes opens boxes.
func testBoxes(t *testing.T) *boxes {
	t.Helper()
	b := openBoxes(t.Context(), runtime.NumCPU())
	t.Cleanup(b.Close)
	if _, err := b.Run(order{Script: ":"}); errors.Is(err, syscall.EPERM) {
		t.Skip("this user may not make namespaces")
	} else if err != nil {
		t.Fatal(err)
	}
	return b
}

// traced runs scripts in a box.
func traced(t *testing.T, scripts ...string) (all []Trace) {
	t.Helper()
	b := testBoxes(t)
	for _, s := range scripts {
		trace, err := b.Run(order{Script: s})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, trace)
	}
	return all
}

func TestTraceRecordsWhatAScriptDoes(t *testing.T) {
	for script, want := range map[string][]string{
		"cat a.txt >n":                            {"exec /usr/bin/cat by bash", "read /project/a.txt by cat", "write /project/n by bash"},
		"cd link && touch n":                      {"exec /usr/bin/touch by bash", "write /project/src/n by touch", "change /project/src/n by touch"},
		"mkdir d; mv a.txt link/m":                {"create /project/d by mkdir", "rename /project/src/m by mv", "remove /project/a.txt by mv"},
		"rm -r src":                               {"remove /project/src/main.go by rm", "remove /project/src/deep/x.txt by rm", "remove /project/src by rm"},
		"ln -s a.txt l; ln a.txt h":               {"link /project/l by ln", "link /project/h by ln"},
		"chmod 600 link/main.go":                  {"change /project/src/main.go by chmod"},
		"(sleep 0.02; echo x >late) &":            {"exec /usr/bin/sleep by bash", "write /project/late by bash"},
		"exec 3<>/dev/tcp/127.0.0.1/80":           {"connect 127.0.0.1:80 by bash"},
		"sh -c 'exec -a other touch n'; ./no":     {"exec /usr/bin/sh by bash"},
		"sh -c '>n'; cat nothing; rm nothing":     {"write /project/n by dash"},
		"setsid sh -c 'sleep 0.02; >n' & :":       {"write /project/n by dash"},
		"truncate -s 1 a.txt; truncate -s 1 k":    {"write /project/k by truncate"},
		"cat /usr/../project/a.txt":               {"read /project/a.txt by cat"},
		"cat </etc/../proc/self/cwd/b.txt":        {"read /project/b.txt by bash"},
		"bin/ls; env -i ./bin/cat":                {"exec /project/bin/ls by bash", "write /project/started by dash", "exec /project/bin/cat by env"},
		"touch -d @0 a.txt; chmod -R 700 src":     {"change /project/a.txt by touch", "change /project/src/deep by chmod"},
		"printf '%1000s' x {1..200} | xargs true": {"exec /usr/bin/true by xargs"},
	} {
		got := traced(t, script)[0]
		var have []string
		for _, e := range got.Effects {
			have = append(have, e.String())
		}
		for _, w := range want {
			if !slices.Contains(have, w) {
				t.Errorf("%s: %q is missing in %q", script, w, have)
			}
		}
	}
}

// One script sees nothing of another, and each ends with all of its processes.
func TestScriptsDoNotDisturbEachOther(t *testing.T) {
	all := traced(t, "rm -r /project/*; touch ../left; touch /root/n; sleep 1000 &", "cat a.txt; cat /root/n; echo $(ls /proc | grep -c '^[0-9]') >count; [ $(ls /proc | grep -c '^[0-9]') -lt 8 ] && touch few; cat ../left")
	var have []string
	for _, e := range all[1].Effects {
		have = append(have, e.String())
	}
	for _, want := range []string{"read /project/a.txt by cat", "write /project/few by touch"} {
		if !slices.Contains(have, want) {
			t.Errorf("%q is missing in %q", want, have)
		}
	}
	for _, left := range []string{"read /root/n by cat", "read /left by cat"} {
		if slices.Contains(have, left) {
			t.Errorf("a file of the first script was there: %s", left)
		}
	}
}

func TestCompareFindsWhatFactsLack(t *testing.T) {
	effects := []Effect{
		{Exec, "/usr/bin/cp", "bash", false},
		{Read, "/project/a.txt", "cp", false},
		{Write, "/project/src/n", "cp", false},
		{Create, "/project/p", "mkdir", false},
		{Write, "/project/src/tmp", "sed", true},
		{Connect, "127.0.0.1:1", "curl", false},
	}
	all := Facts{Exact: true, Commands: []string{"cp"}, Reads: []string{"a.*"}, Writes: []string{"link/n", "p/q"}, Network: true}
	for name, c := range map[string]struct {
		facts Facts
		want  []string
	}{
		"complete":                    {all, nil},
		"dynamic":                     {Facts{}, nil},
		"nothing":                     {Facts{Exact: true}, []string{"/usr/bin/cp", "/project/a.txt", "/project/src/n", "/project/p", "/project/src/tmp", "127.0.0.1:1"}},
		"other file":                  {Facts{Exact: true, Commands: []string{"cp"}, Reads: []string{"b.*"}, Writes: []string{"link/n", "p/q"}, Network: true}, []string{"/project/a.txt"}},
		"patterns lead through links": {Facts{Exact: true, Commands: []string{"cp"}, Reads: []string{"a.txt"}, Trees: []string{"*"}, Writes: []string{"*"}, Network: true}, nil},
		"written files may be read":   {Facts{Exact: true, Commands: []string{"cp"}, Writes: []string{"src/n", "p/q", "~/x", "a.txt"}}, []string{"127.0.0.1:1"}},
	} {
		var got []string
		for _, e := range compare(c.facts, Trace{Effects: effects}) {
			got = append(got, e.Path)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// knowsNothing is an analysis that calls everything exact.
type knowsNothing struct{}

func (knowsNothing) Facts(string) (Facts, error) { return Facts{Exact: true}, nil }
func (knowsNothing) Close() error                { return nil }

func TestFindingsAreMinimised(t *testing.T) {
	e := examiner{judge: knowsNothing{}, boxes: testBoxes(t)}
	for script, want := range map[string]string{
		"echo x; for f in b.txt; do echo \"$(rm $f list)\"; done || :":      "rm list",
		"cd src && { true; cat a.txt >~/n7; }; eval 'chmod +x main.go' # x": "cat a.txt>n1",
	} {
		r := e.Examine(sample{Script: script})
		if r, r.err = e.Minimise(r); r.err != nil || len(r.Script) > len(want) {
			t.Errorf("%s: got %q (%v), want %q", script, r.Script, r.err, want)
		}
	}
}

func TestDashRunsScriptsAsSh(t *testing.T) {
	r := examiner{judge: knowsNothing{}, boxes: testBoxes(t)}.Examine(sample{Script: "x='a b'; >\"$x\"", Dash: true})
	var have []string
	for _, e := range r.Missing {
		have = append(have, e.String())
	}
	if !slices.Contains(have, "write /project/a b by dash") {
		t.Errorf("got %q", have)
	}
}

func TestGrammarHasNoUnusedNames(t *testing.T) {
	g, err := parseGrammar(grammarText)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{"script": true}
	for _, alternatives := range g {
		for _, a := range alternatives {
			for _, m := range reference().FindAllStringSubmatch(a, -1) {
				used[m[1]] = true
			}
		}
	}
	for name := range g {
		if !used[name] {
			t.Errorf("%s is used nowhere", name)
		}
	}
}

func TestGeneratedScriptsAreRepeatable(t *testing.T) {
	make100 := func(seed uint64) []string {
		g, err := newGenerator(rand.New(rand.NewPCG(seed, 1)))
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for range 100 {
			s := g.Script()
			if strings.Contains(s, "<script>") || s == "" {
				t.Fatalf("not expanded: %q", s)
			}
			all = append(all, s)
		}
		return all
	}
	if diff := cmp.Diff(make100(1), make100(1)); diff != "" {
		t.Error(diff)
	}
	if slices.Equal(make100(1), make100(2)) {
		t.Error("two seeds give the same scripts")
	}
}
