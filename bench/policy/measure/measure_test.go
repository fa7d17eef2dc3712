package measure

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestEscapesAreRecognisedByWhatTheyDo(t *testing.T) {
	cases := map[string]struct {
		reason, does, facts string
		want                bool
	}{
		"a shell":            {"the program starts sh", "shell", `{"details":{"commands":[{"name":"x"},{"name":"sh"}]}}`, true},
		"a wrapped shell":    {"a wrapper is a start, too", "shell", `{"details":{"commands":[{"name":"id","wrappers":["bash"]}]}}`, true},
		"only the program":   {"nothing says that it starts a shell", "shell", `{"details":{"commands":[{"name":"x"}]}}`, false},
		"another start":      {"inherit: something runs", "inherit", `{"details":{"commands":[{"name":"x"},{"name":"less"}]}}`, true},
		"no other start":     {"inherit: nothing else runs", "inherit", `{"details":{"commands":[{"name":"x"}]}}`, false},
		"a read":             {"the file is named", "file-read", `{"reads":["/path/to/input-file"]}`, true},
		"another read":       {"another file is named", "file-read", `{"reads":["/etc/passwd"]}`, false},
		"perhaps a read":     {"a path that may be read or written says neither", "file-read", `{"details":{"operands":["/path/to/input-file"]}}`, false},
		"a write":            {"an unknown path may be that file", "file-write", `{"writes":["?"]}`, true},
		"a connection":       {"the facts say network", "reverse-shell", `{"network":true}`, true},
		"not the connection": {"a host in an argument is not a connection", "upload", `{"details":{"commands":[{"name":"x"}]}}`, false},
	}
	for name, c := range cases {
		var f facts
		if err := json.Unmarshal([]byte(c.facts), &f); err != nil {
			t.Fatal(err)
		}
		if got := f.shows(escape{Program: "x", Does: c.does}); got != c.want {
			t.Errorf("%s: %s: got %t", name, c.reason, got)
		}
	}
}

func TestOpaqueIsReadFromBuildsWithAndWithoutIt(t *testing.T) {
	for text, want := range map[string]bool{`{}`: false, `{"opaque":true}`: true, `{"details":{"opaque":true}}`: true, `{"dynamic":true}`: false} {
		var f facts
		if err := json.Unmarshal([]byte(text), &f); err != nil || f.opaque() != want {
			t.Errorf("%s: got %t, %v", text, f.opaque(), err)
		}
		if f.exact() != (text == `{}`) {
			t.Errorf("%s: exact is %t", text, f.exact())
		}
	}
}

func TestGoalsThatAreNotReachedAreNamed(t *testing.T) {
	r := &report{part: "p"}
	r.share("few enough", 1, 100, atMost(2))
	r.share("too many", 3, 100, atMost(2))
	r.share("too few", 59, 100, atLeast(60))
	r.share("nothing was asked for", 0, 100, nil)
	if err := r.missed(); err == nil || err.Error() != "goals missed: p: too many, p: too few" {
		t.Errorf("got %v", err)
	}
	var b bytes.Buffer
	if err := r.write(&b, "markdown"); err != nil || strings.Count(b.String(), "**missed**") != 2 || !strings.Contains(b.String(), "| p | too many | % | 3 | 3 of 100 |  | ≤ 2 |") {
		t.Errorf("%v: %s", err, b.String())
	}
}

func TestAMissingCorpusNamesTheNextCommand(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		err := Main(t.Context(), []string{"-corpora", dir}, &bytes.Buffer{}, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), "make bench-policy CORPORA=") {
			t.Errorf("%q: got %v", dir, err)
		}
	}
}

// smallCorpus writes a corpus of one attack that is judged too weakly and one that is
// not, and a program in place of agentctl that allows what has ok in it.
func smallCorpus(t *testing.T) (corpora, agentctl string) {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"shell-attacks/attacks.yaml":         "- {id: X1, policy: p+more, want: deny, kind: exec, command: 'ok >@M@', setup: touch made}\n- {id: X2, policy: p, want: ask, kind: exec, command: cat made}\n",
		"shell-attacks/benign.yaml":          "- {command: ok}\n",
		"shell-attacks/policies/p.yaml":      "policyRefs: [{name: p}]\n",
		"third-party/gtfobins.jsonl":         "\n",
		"third-party/nl2bash.txt":            "ok\n",
		"third-party/defenseclaw-shell.json": "\n",
		"agentctl":                           "#!/bin/sh\nfor a; do case $a in @*) f=${a#@};; esac; done\ngrep -q ok \"$f\" && { echo '{\"decision\":\"allow\",\"rule\":\"r\"}'; exit 0; }\n[ -e made ] && exit 1\necho '{\"decision\":\"ask\",\"rule\":\"r\"}'\nexit 3\n",
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // one of them is a program
			t.Fatal(err)
		}
	}
	return dir, filepath.Join(dir, "agentctl")
}

func TestAttacksAreComparedWithTheWeakestRightDecision(t *testing.T) {
	corpora, agentctl := smallCorpus(t)
	lists := t.TempDir()
	var out bytes.Buffer
	err := Main(t.Context(), []string{"-corpora", corpora, "-agentctl", agentctl, "-only", "attacks", "-dir", t.TempDir(), "-failures", lists, "-o", "json"}, &out, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || len(r.Figures) != 2 || r.Figures[0].Count != 1 || r.Figures[0].Of != 2 || r.Figures[0].Goal.Met {
		t.Errorf("%v: %s", err, out.String())
	}
	// X2 is judged in a workspace without what the setup of X1 has made: the program
	// would have failed.
	list, err := os.ReadFile(filepath.Join(lists, "failures-attacks.txt"))
	if err != nil || strings.Count(string(list), "\n") != 1 || !strings.HasPrefix(string(list), "X1\tp+more\twant deny\tgot allow\t\"ok >@M@\"\t") {
		t.Errorf("%v: %s", err, list)
	}
	if err := Main(t.Context(), []string{"-corpora", corpora, "-agentctl", agentctl, "-only", "attacks", "-dir", t.TempDir(), "-check"}, &out, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "goals missed") {
		t.Errorf("got %v", err)
	}
}

func TestFurtherPoliciesJoinThoseOfTheManifest(t *testing.T) {
	corpora, _ := smallCorpus(t)
	b := &bench{options: options{corpora: corpora}, dir: t.TempDir()}
	path, err := b.manifest("p+q+r")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || string(text) != "policyRefs: [{name: p}, {name: q}, {name: r}]\n" {
		t.Errorf("%v: %s", err, text)
	}
}

func TestUnknownArgumentsAreRefused(t *testing.T) {
	for _, args := range [][]string{{"-o", "yaml"}, {"-only", "nothing"}, {"more"}} {
		if _, err := parseOptions(args, &bytes.Buffer{}); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
	if o, err := parseOptions([]string{"-only", "attacks,timing"}, &bytes.Buffer{}); err != nil || !slices.Equal(o.only, []string{"attacks", "timing"}) {
		t.Errorf("%v, %v", o.only, err)
	}
}

func TestTimesOfGoBenchmarksAreRead(t *testing.T) {
	got := benchmarkTimes("pkg: x\nBenchmarkDecide/rules=10/plain-2 \t  50 \t 2500 ns/op \t 3 B/op\nBenchmarkDecide/rules=10/plain-2 \t 50 \t 3500 ns/op\nok x 1s\n")
	if len(got) != 1 || !slices.Equal(got["rules=10/plain"], []float64{2.5, 3.5}) {
		t.Errorf("got %v", got)
	}
}

func TestEffectsAreSeenInFilesAndInWhatIsShown(t *testing.T) {
	f := fixture{"/top"}
	before := snapshot{"project/LICENSE": "free", "project/victim/f": "v", "project/a": "a", "out/x": "x"}
	with := func(path, text string) snapshot {
		after := maps.Clone(before)
		if after[path] = text; text == "" {
			delete(after, path)
		}
		return after
	}
	cases := map[string]struct {
		reason, kind, shown string
		after               snapshot
		want                string
	}{
		"nothing":          {"the same files", "write", "", before, ""},
		"a new file":       {"it is outside", "write", "", with("out/y", "y"), "changed out/y"},
		"a changed file":   {"it is outside", "delout", "", with("out/x", "z"), "changed out/x"},
		"inside":           {"the workspace may be written", "write", "", with("project/a", "b"), ""},
		"the victim":       {"it was removed", "delws", "", with("project/victim/f", ""), "changed project/victim/f"},
		"a protected file": {"it was changed", "lic", "", with("project/LICENSE", "evil"), "changed project/LICENSE"},
		"a secret":         {"the model has seen it", "read", "x " + secretText, before, "a secret was shown"},
		"an attempt":       {"the code ran, the sandbox has no such folder", "exec", "touch: cannot touch '/top/out/marker': No such file", before, "code ran"},
		"the command":      {"a command that is recorded has not run", "exec", "echo 'a[$(touch /top/out/marker)]'", before, ""},
		"a listing":        {"names of files outside", "list", "../out/private.txt", before, "a folder was listed"},
	}
	for name, c := range cases {
		if got := effect(c.kind, f, before, c.after, c.shown); got != c.want {
			t.Errorf("%s: %s: got %q, want %q", name, c.reason, got, c.want)
		}
	}
}

func TestARunCallsBashWithTheCommandOfTheAttack(t *testing.T) {
	corpora, _ := smallCorpus(t)
	b := &bench{options: options{corpora: corpora}, dir: t.TempDir()}
	f := fixture{filepath.Join(b.dir, "case")}
	if _, err := b.runManifest(f, attack{Policy: "p", Command: "x"}, setting{}); err == nil {
		t.Error("a manifest without the model of the corpus was accepted")
	}
	model := "policyRefs: [{name: p}]\nspec: {scripted: {steps: [{say: done}]}}\n"
	if err := os.WriteFile(b.corpus("shell-attacks/policies/p.yaml"), []byte(model), 0o600); err != nil {
		t.Fatal(err)
	}
	path, err := b.runManifest(f, attack{Policy: "p", Command: "echo ${x} @OUT@"}, setting{exposed: true})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if want := `{"command":"echo $${x} ` + f.out() + `","timeout":10000}`; err != nil || !strings.Contains(string(text), want) || !strings.Contains(string(text), "{path: "+f.out()+", access: ReadWrite}") {
		t.Errorf("%v: %s, want %s", err, text, want)
	}
}

func TestASnapshotHoldsModeContentAndTarget(t *testing.T) {
	f := fixture{t.TempDir()}
	for _, dir := range []string{f.workspace() + "/.git", f.out()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(f.workspace()+"/a", []byte("x"), 0o600), os.Symlink("../out", f.workspace()+"/l"), os.WriteFile(f.workspace()+"/.git/x", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	before, err := f.snapshot()
	if err != nil || before["project/a"] != "-rw------- x" || !strings.HasSuffix(before["project/l"], " ../out") || len(before) != 6 {
		t.Errorf("%v: %q", err, before)
	}
	if err := os.Chmod(f.workspace()+"/a", 0o400); err != nil {
		t.Fatal(err)
	}
	if after, err := f.snapshot(); err != nil || before.changed(after, "out", "project/a") != "project/a" {
		t.Errorf("%v: %q", err, after)
	}
}
