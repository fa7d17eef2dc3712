package installed

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// place is a memory with a clock that is an hour ahead: all files were left alone since.
type place struct {
	*testing.T
	memory              Memory
	dir, path, packages string
}

func newPlace(t *testing.T) place {
	t.Helper()
	dir := t.TempDir()
	p := place{T: t, dir: dir, packages: filepath.Join(dir, "node_modules"), path: filepath.Join(dir, "node_modules", "agent", "bin", "agent")}
	p.memory = Memory{Dir: filepath.Join(dir, "state", "cache", "coders"), Now: func() time.Time { return time.Now().Add(time.Hour) }}
	p.write(p.path, "#!/bin/sh\n")
	p.write(filepath.Join(p.packages, "agent-linux", "agent"), "binary")
	p.check(os.Symlink("../agent/bin/agent", filepath.Join(p.packages, "agent-linux", "link")))
	return p
}

func (p place) check(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p place) write(file, text string) {
	p.Helper()
	p.check(errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)))
}

func (p place) look() Program {
	p.Helper()
	program, err := Look(p.Context(), p.path, p.packages)
	p.check(err)
	return program
}

// kept keeps version 1.0.0 and returns the file that it is in.
func (p place) kept() string {
	p.Helper()
	program := p.look()
	p.check(p.memory.Keep(p.Context(), program, p.packages, "1.0.0"))
	if v := p.memory.Version(p.look()); v != "1.0.0" {
		p.Fatalf("kept, and found %q", v)
	}
	return p.memory.file(program)
}

func TestAVersionIsForgottenWhenAFileHasChanged(t *testing.T) {
	for name, change := range map[string]func(p place, binary string) error{
		"its script":               func(p place, _ string) error { return os.WriteFile(p.path, []byte("#!/bin/sh\n:\n"), 0o600) },
		"what its script starts":   func(_ place, binary string) error { return os.WriteFile(binary, []byte("others"), 0o600) },
		"a file was added":         func(p place, _ string) error { return os.WriteFile(filepath.Join(p.packages, "new"), nil, 0o600) },
		"a file was removed":       func(_ place, binary string) error { return os.Remove(binary) },
		"its mode":                 func(_ place, binary string) error { return os.Chmod(binary, 0o700) },
		"a link leads to another":  func(p place, _ string) error { return relink(p, "../agent") },
		"same size, time put back": sameTime,
		"another file in place":    replaced,
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.kept()
			p.check(change(p, filepath.Join(p.packages, "agent-linux", "agent")))
			if v := p.memory.Version(p.look()); v != "" {
				t.Errorf("found %q", v)
			}
		})
	}
}

func relink(p place, to string) error {
	link := filepath.Join(p.packages, "agent-linux", "link")
	return errors.Join(os.Remove(link), os.Symlink(to, link))
}

// sameTime changes a file, and sets its time to what it was.
func sameTime(_ place, binary string) error {
	info, err := os.Stat(binary)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(binary, []byte("yranib"), 0o600), os.Chtimes(binary, info.ModTime(), info.ModTime()))
}

// replaced puts a file of the same size and time in the place of one.
func replaced(_ place, binary string) error {
	info, err := os.Stat(binary)
	if err != nil {
		return err
	}
	other := binary + ".other"
	return errors.Join(os.WriteFile(other, []byte("yranib"), 0o600), os.Chtimes(other, info.ModTime(), info.ModTime()), os.Rename(other, binary))
}

func TestAnEntryOfOthersIsNone(t *testing.T) {
	for name, change := range map[string]func(p place, file, text string) error{
		"others may write to it": func(_ place, file, _ string) error { return os.Chmod(file, 0o622) },
		"its group may":          func(_ place, file, _ string) error { return os.Chmod(file, 0o660) },
		"a link":                 func(p place, file, _ string) error { return linked(p, file) },
		"a FIFO":                 func(_ place, file, _ string) error { return errors.Join(os.Remove(file), syscall.Mkfifo(file, 0o600)) },
		"of another program": func(_ place, file, text string) error {
			return put(file, strings.Replace(text, "bin/agent", "bin/other", 1))
		},
		"of other files": func(_ place, file, text string) error {
			return put(file, strings.Replace(text, `"files":"`, `"files":"0`, 1))
		},
		"without files":            func(p place, file, _ string) error { return put(file, `{"program":"`+p.path+`","version":"1.0.0"}`) },
		"with a member too many":   func(_ place, file, text string) error { return put(file, strings.Replace(text, "{", `{"any":1,`, 1)) },
		"cut off":                  func(_ place, file, text string) error { return put(file, text[:len(text)-1]) },
		"empty":                    func(_ place, file, _ string) error { return put(file, "") },
		"longer than any could be": func(_ place, file, text string) error { return put(file, text+strings.Repeat(" ", mostEntry)) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			file := p.kept()
			text, err := os.ReadFile(file)
			p.check(err)
			p.check(change(p, file, string(text)))
			if v := p.memory.Version(p.look()); v != "" {
				t.Errorf("found %q", v)
			}
		})
	}
}

func put(file, text string) error { return os.WriteFile(file, []byte(text), 0o600) }

func linked(p place, file string) error {
	to := filepath.Join(p.dir, "elsewhere")
	return errors.Join(os.Rename(file, to), os.Symlink(to, file))
}

func TestWhatIsNotKept(t *testing.T) {
	p := newPlace(t)
	before := p.look()
	p.memory.Now = time.Now
	if err := p.memory.Keep(t.Context(), before, p.packages, "1.0.0"); !errors.Is(err, ErrUnknown) {
		t.Errorf("files that were only just changed: %v", err)
	}
	p.memory.Now = func() time.Time { return time.Now().Add(-time.Hour) }
	if err := p.memory.Keep(t.Context(), before, p.packages, "1.0.0"); !errors.Is(err, ErrUnknown) {
		t.Errorf("files of the future: %v", err)
	}
	p.memory.Now = func() time.Time { return time.Now().Add(time.Hour) }
	p.write(filepath.Join(p.packages, "agent-linux", "agent"), "another")
	if err := p.memory.Keep(t.Context(), before, p.packages, "1.0.0"); !errors.Is(err, ErrUnknown) {
		t.Errorf("changed while it was asked: %v", err)
	}
	if err := p.memory.Keep(t.Context(), Program{}, "", "1.0.0"); !errors.Is(err, ErrUnknown) {
		t.Errorf("nothing is known of it: %v", err)
	}
	if left, err := os.ReadDir(p.memory.Dir); err == nil {
		t.Errorf("kept: %v", left)
	}
}

func TestWhichProgramsCannotBeToldApart(t *testing.T) {
	p := newPlace(t)
	script, program := filepath.Join(p.dir, "script"), filepath.Join(p.dir, "program")
	p.write(script, "#!/bin/sh\nexec other \"$@\"\n")
	p.write(program, "\x7fELF and so on")
	if _, err := Look(t.Context(), script, ""); !errors.Is(err, ErrUnknown) {
		t.Errorf("a script starts anything: %v", err)
	}
	if got, err := Look(t.Context(), program, ""); err != nil || got.digest == "" {
		t.Errorf("a binary: %+v, %v", got, err)
	}
	p.check(os.Symlink(program, filepath.Join(p.packages, "out")))
	if _, err := Look(t.Context(), p.path, p.packages); !errors.Is(err, ErrUnknown) {
		t.Errorf("a link out of the folder of packages: %v", err)
	}
	if _, err := Look(t.Context(), filepath.Join(p.dir, "gone"), ""); err == nil {
		t.Error("a file that is not there")
	}
}

func TestAnotherVersionReplacesTheOneThatIsKept(t *testing.T) {
	p := newPlace(t)
	file := p.kept()
	p.write(p.path, "#!/bin/sh\n# 2\n")
	p.check(p.memory.Keep(t.Context(), p.look(), p.packages, "2.0.0"))
	left, err := os.ReadDir(p.memory.Dir)
	if err != nil || len(left) != 1 || p.memory.Version(p.look()) != "2.0.0" {
		t.Errorf("%v, %v", left, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}
