package keys

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const value = "sk-test-0123456789"

func testStore(t *testing.T) keystore {
	t.Helper()
	return keystore{Dir: filepath.Join(t.TempDir(), "state", "credentials")}
}

func set(t *testing.T, s keystore, name, value string) {
	t.Helper()
	if err := s.Set(name, value); err != nil {
		t.Fatal(err)
	}
}

func TestWhatWasSetIsGotUntilItIsRemoved(t *testing.T) {
	s := testStore(t)
	if v, found, err := s.Get("KEY"); v != "" || found || err != nil {
		t.Errorf("of no store: %q, %t, %v", v, found, err)
	}
	if l, err := s.List(); len(l) != 0 || err != nil {
		t.Errorf("of no store: %v, %v", l, err)
	}
	if err := s.Remove("KEY"); !errors.Is(err, errNotStored) {
		t.Errorf("of no store: %v", err)
	}
	set(t, s, "KEY", "first\r\n")
	set(t, s, "KEY", value+"\n")
	set(t, s, "_b2", "other")
	if v, found, err := s.Get("KEY"); v != value || !found || err != nil {
		t.Errorf("got %q, %t, %v", v, found, err)
	}
	if v, found, err := s.Get("NOPE"); v != "" || found || err != nil {
		t.Errorf("what was never set: %q, %t, %v", v, found, err)
	}
	list, err := s.List()
	if err != nil || len(list) != 2 || list[0].Name != "KEY" || list[1].Name != "_b2" || list[0].Problem != nil || time.Since(list[0].Set) > time.Minute {
		t.Errorf("listed %v, %v", list, err)
	}
	if err := s.Remove("KEY"); err != nil {
		t.Error(err)
	}
	if _, found, err := s.Get("KEY"); found || err != nil {
		t.Errorf("after it was removed: %t, %v", found, err)
	}
	if err := s.Remove("KEY"); !errors.Is(err, errNotStored) || !strings.Contains(err.Error(), "KEY") {
		t.Errorf("removed twice: %v", err)
	}
}

func TestFilesAreTheOwnersAlone(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	s := testStore(t)
	set(t, s, "KEY", value)
	got := map[string]os.FileMode{}
	err := filepath.Walk(filepath.Dir(s.Dir), func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		got[filepath.Base(path)] = info.Mode().Perm()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]os.FileMode{"state": 0o700, "credentials": 0o700, "KEY": 0o600}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNames(t *testing.T) {
	for name, c := range map[string]struct {
		name string
		ok   bool
	}{
		"usual":        {"OPENAI_API_KEY", true},
		"lower case":   {"my_key2", true},
		"underscore":   {"_", true},
		"empty":        {"", false},
		"digit first":  {"2KEY", false},
		"dash":         {"MY-KEY", false},
		"path":         {"../KEY", false},
		"dot":          {"..", false},
		"hidden":       {".new-x", false},
		"slash":        {"a/b", false},
		"assignment":   {"KEY=" + value, false},
		"a value":      {value, false},
		"NUL":          {"KEY\x00", false},
		"line break":   {"KEY\n", false},
		"not ASCII":    {"SCHLÜSSEL", false},
		"too long":     {strings.Repeat("A", maxName+1), false},
		"a GitHub key": {"ghp_0123456789abcdefghijklmnopqrstuvwxyz", false},
		"an AWS key":   {"AKIAIOSFODNN7EXAMPLE", false},
	} {
		err := checkName(c.name)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && len(c.name) > 3 && strings.Contains(err.Error(), c.name) {
			t.Errorf("%s: the error repeats what may be a value: %v", name, err)
		}
		if c.ok {
			continue
		}
		s := testStore(t)
		_, found, getErr := s.Get(c.name)
		if setErr, removeErr := s.Set(c.name, value), s.Remove(c.name); setErr == nil || removeErr == nil || getErr == nil || found {
			t.Errorf("%s: set %v, get %v, remove %v", name, setErr, getErr, removeErr)
		}
		if _, err := os.Lstat(filepath.Dir(s.Dir)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: a folder was made: %v", name, err)
		}
	}
}

func TestValues(t *testing.T) {
	for name, c := range map[string]struct{ value, want, says string }{
		"line":        {value + "\n", value, ""},
		"CRLF":        {value + "\r\n", value, ""},
		"spaces":      {" a b ", " a b ", ""},
		"largest":     {strings.Repeat("x", MaxSize) + "\r\n", strings.Repeat("x", MaxSize), ""},
		"empty":       {"", "", "empty"},
		"only a line": {"\n", "", "empty"},
		"two breaks":  {value + "\n\n", "", "line break"},
		"two lines":   {"a\nb", "", "line break"},
		"old Mac":     {"a\rb", "", "line break"},
		"NUL":         {"a\x00b", "", "NUL"},
		"too large":   {strings.Repeat("x", MaxSize+1), "", "longer than"},
	} {
		s := testStore(t)
		err := s.Set("KEY", c.value)
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v, want %q", name, err, c.says)
			}
			continue
		}
		if got, _, getErr := s.Get("KEY"); err != nil || got != c.want || getErr != nil {
			t.Errorf("%s: %v, then %d bytes, %v", name, err, len(got), getErr)
		}
	}
}

// What others could have read or put there is no value.
func TestWhatIsNotPrivateIsRefused(t *testing.T) {
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		spoil func(s keystore, path string)
		says  string
		hint  string
	}{
		"readable":    {func(_ keystore, p string) { check(os.Chmod(p, 0o644)) }, "has mode 0644", "chmod 600 "},
		"writable":    {func(_ keystore, p string) { check(os.Chmod(p, 0o602)) }, "has mode 0602", "chmod 600 "},
		"open folder": {func(s keystore, _ string) { check(os.Chmod(s.Dir, 0o750)) }, "has mode 0750", "chmod 700 "},
		"link inside": {func(_ keystore, p string) { check(os.Rename(p, p+"2")); check(os.Symlink("KEY2", p)) }, "not a regular file", "auth set KEY"},
		"link out": {func(s keystore, p string) {
			check(os.Rename(p, filepath.Join(filepath.Dir(s.Dir), "x")))
			check(os.Symlink("../x", p))
		}, "not a regular file", "auth set KEY"},
		"linked folder": {func(s keystore, _ string) { check(os.Rename(s.Dir, s.Dir+"2")); check(os.Symlink(s.Dir+"2", s.Dir)) }, "is no folder", ""},
		"a file":        {func(s keystore, _ string) { check(os.RemoveAll(s.Dir)); check(os.WriteFile(s.Dir, nil, 0o600)) }, "is no folder", ""},
		"folder":        {func(_ keystore, p string) { check(os.Remove(p)); check(os.Mkdir(p, 0o700)) }, "not a regular file", "auth set KEY"},
		"pipe":          {func(_ keystore, p string) { check(os.Remove(p)); check(syscall.Mkfifo(p, 0o600)) }, "not a regular file", "auth set KEY"},
		"emptied":       {func(_ keystore, p string) { check(os.Truncate(p, 0)) }, "is empty", "auth set KEY"},
		"swollen":       {func(_ keystore, p string) { check(os.Truncate(p, 1<<40)) }, "longer than", "auth set KEY"},
		"damaged":       {func(_ keystore, p string) { check(os.WriteFile(p, []byte("two\nlines"), 0o600)) }, "line break", "auth set KEY"},
	} {
		s := testStore(t)
		set(t, s, "KEY", value)
		c.spoil(s, filepath.Join(s.Dir, "KEY"))
		v, found, err := s.Get("KEY")
		if v != "" || found || err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %q, %t, %v", name, v, found, err)
			continue
		}
		if p, ok := errors.AsType[*StoreError](err); !ok || !strings.Contains(p.Hint, c.hint) {
			t.Errorf("%s: %#v has no hint %q", name, err, c.hint)
		}
		if strings.Contains(err.Error(), value) || strings.Contains(err.Error(), "two") {
			t.Errorf("%s: the error tells of the value: %v", name, err)
		}
	}
}

func TestWhatBelongsToAnotherIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	s := testStore(t)
	set(t, s, "KEY", value)
	if err := os.Chown(filepath.Join(s.Dir, "KEY"), 12345, -1); err != nil {
		t.Fatal(err)
	}
	if _, found, err := s.Get("KEY"); found || err == nil || !strings.Contains(err.Error(), "belongs to user 12345") {
		t.Errorf("%t, %v", found, err)
	}
	if l, err := s.List(); err != nil || len(l) != 1 || l[0].Problem == nil {
		t.Errorf("listed %v, %v", l, err)
	}
	if err := os.Chown(s.Dir, 12345, -1); err != nil {
		t.Fatal(err)
	}
	if err := s.Set("KEY", value); err == nil || !strings.Contains(err.Error(), "belongs to user 12345") {
		t.Errorf("set in another's folder: %v", err)
	}
	if _, err := s.List(); err == nil {
		t.Error("another's folder was listed")
	}
}

func TestSetReplacesALinkAndNotWhatItLeadsTo(t *testing.T) {
	s := testStore(t)
	set(t, s, "OTHER", "untouched")
	if err := os.Symlink("OTHER", filepath.Join(s.Dir, "KEY")); err != nil {
		t.Fatal(err)
	}
	set(t, s, "KEY", value)
	if v, _, err := s.Get("OTHER"); v != "untouched" || err != nil {
		t.Errorf("what the link led to: %q, %v", v, err)
	}
	if v, _, err := s.Get("KEY"); v != value || err != nil {
		t.Errorf("got %q, %v", v, err)
	}
}

func TestWhatAKilledSetLeftIsSweptAway(t *testing.T) {
	s := testStore(t)
	set(t, s, "KEY", value)
	left := filepath.Join(s.Dir, halfWritten+"ABC")
	if err := os.WriteFile(left, []byte(value), 0o600); err != nil {
		t.Fatal(err)
	}
	set(t, s, "KEY", value)
	if _, err := os.Lstat(left); err != nil {
		t.Errorf("another Set may still be writing it: %v", err)
	}
	if l, err := s.List(); err != nil || len(l) != 1 {
		t.Errorf("a half written value is listed: %v, %v", l, err)
	}
	s.Now = func() time.Time { return time.Now().Add(2 * abandoned) }
	set(t, s, "KEY", value)
	if _, err := os.Lstat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is left: %v", err)
	}
}

func TestSetsAtOnceLeaveOneWholeValue(t *testing.T) {
	s := testStore(t)
	values := []string{strings.Repeat("a", 5000), strings.Repeat("b", 5000), strings.Repeat("c", 5000)}
	done := make(chan error)
	for _, v := range values {
		go func() { done <- s.Set("KEY", v) }()
	}
	for range values {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	v, found, err := s.Get("KEY")
	if err != nil || !found || len(v) != 5000 || strings.Trim(v, v[:1]) != "" {
		t.Errorf("%d bytes, %t, %v", len(v), found, err)
	}
	if left, err := filepath.Glob(filepath.Join(s.Dir, halfWritten+"*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestAFolderThatCannotBeWrittenIsTold(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := keystore{Dir: filepath.Join(dir, "f", "credentials")}
	if err := s.Set("KEY", value); err == nil || strings.Contains(err.Error(), value) {
		t.Errorf("set: %v", err)
	}
	if _, found, err := s.Get("KEY"); found || err == nil {
		t.Errorf("get: %t, %v", found, err)
	}
	if _, err := s.List(); err == nil {
		t.Error("it was listed")
	}
	if err := s.Remove("KEY"); err == nil || errors.Is(err, errNotStored) {
		t.Errorf("remove: %v", err)
	}
}

func FuzzCheckName(f *testing.F) {
	for _, n := range []string{"KEY", "", "..", "a/b", "KEY\n", "\x00", "ghp_0123456789abcdefghijklmnopqrstuvwxyz", "Ä"} {
		f.Add(n)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if checkName(name) == nil && (filepath.Base(name) != name || strings.HasPrefix(name, ".") || len(name) > maxName || strings.ContainsAny(name, "= \n\x00/")) {
			t.Errorf("%q is taken", name)
		}
	})
}

func FuzzClean(f *testing.F) {
	for _, v := range []string{"k", "k\n", "\r\n", "a\rb", "\x00", ""} {
		f.Add([]byte(v))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := clean(b)
		if (v == "") != (err != nil) || strings.ContainsAny(v, "\r\n\x00") || len(v) > MaxSize {
			t.Errorf("%q: %q, %v", b, v, err)
		}
		if again, err2 := clean([]byte(v)); err == nil && (again != v || err2 != nil) {
			t.Errorf("%q is cleaned again to %q, %v", v, again, err2)
		}
	})
}
