package statedir

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// inPlaceOfAFile are what may stand where a file is looked for.
var inPlaceOfAFile = map[string]func(path, victim string) error{
	"a FIFO":                  func(path, _ string) error { return syscall.Mkfifo(path, 0o600) },
	"a folder":                func(path, _ string) error { return os.Mkdir(path, 0o700) },
	"a device without an end": func(path, _ string) error { return os.Symlink("/dev/zero", path) },
	"a link to a file":        func(path, victim string) error { return os.Symlink(victim, path) },
	"a link to nothing":       func(path, _ string) error { return os.Symlink(path+".gone", path) },
	"a socket": func(path, _ string) error {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
		if err == nil {
			l.SetUnlinkOnClose(false)
			err = l.Close()
		}
		return err
	},
}

func TestWhatIsNoFileIsNeitherWaitedForNorFollowed(t *testing.T) {
	for name, put := range inPlaceOfAFile {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f")
			victim := filepath.Join(t.TempDir(), "victim")
			if err := errors.Join(os.WriteFile(victim, []byte("precious"), 0o600), put(path, victim)); err != nil {
				t.Fatal(err)
			}
			for what, flag := range map[string]int{
				"read": os.O_RDONLY, "append": os.O_WRONLY | os.O_APPEND | os.O_CREATE, "replace": os.O_WRONLY | os.O_TRUNC | os.O_CREATE, "lock": os.O_RDWR | os.O_CREATE,
			} {
				if f, err := OpenFile(path, flag); !errors.Is(err, ErrNotRegular) {
					t.Errorf("%s: got %v, %v", what, f, err)
				}
			}
			if b, err := ReadFile(path, 10); !errors.Is(err, ErrNotRegular) {
				t.Errorf("read: %q, %v", b, err)
			}
			if b, err := os.ReadFile(victim); err != nil || string(b) != "precious" {
				t.Errorf("the file that a link leads to has become %q, %v", b, err)
			}
			if _, err := os.Lstat(path + ".gone"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("where a link leads to there is now: %v", err)
			}
		})
	}
}

func TestFilesAreReadUpToTheirLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if _, err := ReadFile(path, 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
	f, err := OpenFile(path, os.O_WRONLY|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("12345"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("made with %v, %v", info.Mode(), err)
	}
	if b, err := ReadFile(path, 5); err != nil || string(b) != "12345" {
		t.Errorf("of its limit: %q, %v", b, err)
	}
	if _, err := ReadFile(path, 4); !errors.Is(err, ErrTooLarge) {
		t.Errorf("beyond its limit: %v", err)
	}
	if err := os.Truncate(path, 1<<40); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(path, 4<<20); !errors.Is(err, ErrTooLarge) {
		t.Errorf("of a terabyte: %v", err)
	}
	f, err = OpenFile(path, os.O_WRONLY|os.O_TRUNC)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := f.Stat(); err != nil || info.Size() != 0 {
		t.Errorf("cut off: %v, %v", info, err)
	}
	_ = f.Close()
}
