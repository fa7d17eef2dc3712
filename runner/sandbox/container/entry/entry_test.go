package entry

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAGreetingArrivesAsItWasSent(t *testing.T) {
	for _, want := range []Greeting{{}, {Input: true}, {Env: []string{"A=1", "B=", "C=x=y\nz"}}, {Env: []string{"A=" + strings.Repeat("x", 100_000)}, Input: true}} {
		sent, err := want.Encode()
		if err != nil {
			t.Fatal(err)
		}
		r := strings.NewReader(string(sent) + `{"the program's": "own"}`)
		got, err := ReadGreeting(r)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
		if rest, _ := io.ReadAll(r); string(rest) != `{"the program's": "own"}` {
			t.Errorf("left for the program: %q", rest)
		}
	}
}

func TestABadGreetingIsRefused(t *testing.T) {
	for _, env := range [][]string{{"novalue"}, {"=x"}, {"A=\x00"}, {"A=" + strings.Repeat("x", maxEnvironment)}} {
		if _, err := (Greeting{Env: env}).Encode(); err == nil {
			t.Errorf("%.20q was sent", env)
		}
	}
	for name, text := range map[string]string{
		"nothing": "", "short": "\x01\x00", "version": "\x02\x00\x00\x00\x00\x00", "flag": "\x01\x02\x00\x00\x00\x00",
		"endless": "\x01\x00\xff\xff\xff\xff", "cut": "\x01\x00\x00\x00\x00\x05A=1", "no variable": "\x01\x00\x00\x00\x00\x03ABC",
		"no name": "\x01\x00\x00\x00\x00\x02=x", "empty one": "\x01\x00\x00\x00\x00\x04A=1\x00",
	} {
		if g, err := ReadGreeting(strings.NewReader(text)); err == nil {
			t.Errorf("%s was taken for %+v", name, g)
		}
	}
}

func FuzzGreeting(f *testing.F) {
	for _, g := range []Greeting{{}, {Env: []string{"A=1", "B=2"}, Input: true}} {
		text, err := g.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("\x01\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, text []byte) {
		g, err := ReadGreeting(bytes.NewReader(text))
		if err != nil {
			return
		}
		again, err := g.Encode()
		if err != nil {
			t.Fatalf("%+v: %v", g, err)
		}
		if !bytes.HasPrefix(text, again) {
			t.Errorf("%q became %q", text, again)
		}
	})
}

func TestLaterVariablesReplaceEarlierOnes(t *testing.T) {
	got := merge([]string{"PATH=/bin", "A=1"}, []string{"A=2", "B=3"}, []string{"A=4"})
	if d := cmp.Diff([]string{"PATH=/bin", "A=4", "B=3"}, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestAProgramIsFoundInThePathOfItsEnvironment(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"tool": 0o755, "text": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for name, want := range map[string]string{"tool": dir + "/tool", dir + "/tool": dir + "/tool", "./tool": "./tool", "text": "", "./text": "", "none": "", "./none": "", dir: ""} {
		got, err := lookup(name, []string{"PATH=.:relative:/none:" + dir})
		if got != want && want != "" || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, %v; want %q", name, got, err, want)
		}
	}
	if _, err := lookup("tool", []string{"PATH=."}); err == nil {
		t.Error("a relative entry of PATH was searched")
	}
}

func TestMainSaysWhatItIs(t *testing.T) {
	for _, args := range [][]string{nil, {"run"}, {"help"}, {"hold", "x"}} {
		var b bytes.Buffer
		if code := Main(args, &b); code != exitUsage || !strings.Contains(b.String(), "started by agentctl") {
			t.Errorf("%q: %d, %q", args, code, b.String())
		}
	}
}
