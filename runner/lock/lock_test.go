package lock

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/reason"
)

func pinned() []Entry {
	return []Entry{
		{Object: "tool/t", Tool: "t", Pins: map[string]string{"command[0]": "sha256:aa", functions: "sha256:bb"}},
		{Object: "model/m", Pins: map[string]string{"provider": "openai", "model": "gpt-5-mini-2025-08-07", "price": "input 0.25"}},
	}
}

func TestALockIsReadAsItWasWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), Name)
	for range 2 { // the second time it replaces the first
		if err := New(pinned()).Write(file); err != nil {
			t.Fatal(err)
		}
	}
	l, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(New(pinned()), l); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"t": "sha256:bb"}, l.Functions()); diff != "" {
		t.Error(diff)
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
		t.Errorf("left beside it: %v, %v", left, err)
	}
}

func TestALockThatIsNotAsItWasWrittenIsRefused(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, Name)
	if err := New(pinned()).Write(file); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(file) //nolint:gosec // of this test
	if err != nil {
		t.Fatal(err)
	}
	whole := string(raw)
	entry := "- object: tool/t"
	for name, c := range map[string]struct{ text, want string }{
		"empty":     {"", "it is empty"},
		"foreign":   {strings.Replace(whole, version, "agentctl.dev/lock/v9", 1), `its version is "agentctl.dev/lock/v9", and this program reads agentctl.dev/lock/v1`},
		"other":     {"lockfileVersion: 3\n", "it is not a lock"},
		"no yaml":   {"{", "it is not a lock"},
		"tampered":  {strings.Replace(whole, "gpt-5-mini-2025-08-07", "gpt-5-mini-2026-01-01", 1), "its digest is not that of its entries"},
		"removed":   {whole[:strings.Index(whole, entry)] + whole[strings.LastIndex(whole, "version:"):], "its digest is not that of its entries"},
		"extra":     {whole + "more: true\n", "it was damaged"},
		"twice":     {whole + "version: " + version + "\n", "it"},
		"type":      {"version: " + version + "\nentries: 1\n", "it was damaged"},
		"no digest": {"version: " + version + "\nentries: []\n", "its digest is not that of its entries"},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Read(file)
		if err == nil || !strings.Contains(err.Error(), c.want) || reason.Hint(err) != again && !hinted(err) {
			t.Errorf("%s: %v, want %q and what to do", name, err, c.want)
		}
	}
	for n := range whole { // cut off anywhere; only the last line feed may be missing
		if err := os.WriteFile(file, []byte(whole[:n]), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(file); err == nil && n < len(whole)-1 {
			t.Fatalf("a lock that was cut off after %d of %d bytes is accepted", n, len(whole))
		}
	}
	for _, path := range []string{filepath.Join(dir, "none"), dir} {
		if _, err := Read(path); err == nil {
			t.Errorf("%s is accepted", path)
		}
	}
}

// hinted reports whether an error of the command line says what to do.
func hinted(err error) bool {
	u, ok := err.(*reason.UsageError) //nolint:errorlint // Read returns it
	return ok && u.Hint == again
}

func TestWhatHasMovedIsNamed(t *testing.T) {
	l := New(pinned())
	for name, c := range map[string]struct {
		reason string
		change func([]Entry) []Entry
		whole  bool
		want   []string
	}{
		"same":    {"nothing has moved", func(e []Entry) []Entry { return e }, true, nil},
		"price":   {"a price", func(e []Entry) []Entry { e[1].Pins["price"] = "input 0.50"; return e }, false, []string{"model/m: price: input 0.25 -> input 0.50"}},
		"unknown": {"a price that is not known any more", func(e []Entry) []Entry { delete(e[1].Pins, "price"); return e }, false, []string{"model/m: price: input 0.25 -> nothing"}},
		"pin":     {"a pin that was not there", func(e []Entry) []Entry { e[1].Pins["baseURL"] = "http://x"; return e }, false, []string{"model/m: baseURL: nothing -> http://x"}},
		"new":     {"an object that was not there", func(e []Entry) []Entry { return append(e, Entry{Object: "skill/s"}) }, false, []string{"skill/s: object: nothing -> new"}},
		"unused":  {"a run uses only a part", func(e []Entry) []Entry { return e[:1] }, false, nil},
		"gone":    {"the manifests have all", func(e []Entry) []Entry { return e[:1] }, true, []string{"model/m: object: pinned -> nothing"}},
		"later":   {"a run compares functions later", func(e []Entry) []Entry { delete(e[0].Pins, functions); return e }, false, nil},
		"asked":   {"what a program describes", func(e []Entry) []Entry { return Describe(e, "t", "t", "sha256:cc") }, true, []string{"tool/t: functions: sha256:bb -> sha256:cc"}},
	} {
		var got []string
		changes := l.Moved(c.change(pinned()), c.whole)
		for _, m := range changes {
			got = append(got, m.String())
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, c.reason, diff)
		}
		err := Error(Name, changes)
		if (err != nil) != (c.want != nil) || err != nil && (reason.Of(err) != reason.LockDrift || reason.Of(err).ExitCode() != reason.ExitUsage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnyChangeOfAFolderChangesItsDigest(t *testing.T) {
	dir := t.TempDir()
	seen := map[string]string{}
	step := func(name string, do func() error) {
		t.Helper()
		if err := do(); err != nil {
			t.Fatal(err)
		}
		sum, err := folderDigest(dir)
		if before, known := seen[sum]; err != nil || known {
			t.Errorf("after %s the digest is that after %s, %v", name, before, err)
		}
		seen[sum] = name
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	step("nothing", func() error { return nil })
	step("a file", func() error { return os.WriteFile(at("a"), []byte("x"), 0o600) })
	step("its content", func() error { return os.WriteFile(at("a"), []byte("y"), 0o600) })
	step("its name", func() error { return os.Rename(at("a"), at("b")) })
	step("its mode", func() error { return os.Chmod(at("b"), 0o700) }) //nolint:gosec // of this test
	step("a link", func() error { return os.Symlink("b", at("c")) })
	step("where it leads", func() error { _ = os.Remove(at("c")); return os.Symlink("x", at("c")) })
	step("a file in a folder", func() error {
		_ = os.Mkdir(at("d"), 0o700)
		return os.WriteFile(at("d/\n"), nil, 0o600)
	})
}
