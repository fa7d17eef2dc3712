package regular

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
var inPlaceOfAFile = map[string]func(t *testing.T, path string){
	"a FIFO": func(t *testing.T, path string) {
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	},
	"a folder": func(t *testing.T, path string) {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	},
	"a device without an end": func(t *testing.T, path string) { link(t, "/dev/zero", path) },
	"a link to a file": func(t *testing.T, path string) {
		link(t, victim(t), path)
	},
	"a link to nothing": func(t *testing.T, path string) { link(t, path+".gone", path) },
	"a socket": func(t *testing.T, path string) {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
	},
}

func link(t *testing.T, to, path string) {
	t.Helper()
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
}

func victim(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if b, err := os.ReadFile(path); err != nil || string(b) != "precious" {
			t.Errorf("the file that a link leads to has become %q, %v", b, err)
		}
	})
	return path
}

func TestWhatIsNoFileIsNeitherWaitedForNorFollowed(t *testing.T) {
	for name, put := range inPlaceOfAFile {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f")
			put(t, path)
			for what, flag := range map[string]int{
				"read": os.O_RDONLY, "append": os.O_WRONLY | os.O_APPEND | os.O_CREATE, "replace": os.O_WRONLY | os.O_TRUNC | os.O_CREATE, "lock": os.O_RDWR | os.O_CREATE,
			} {
				if f, err := Open(path, flag); !errors.Is(err, ErrNotRegular) {
					t.Errorf("%s: got %v, %v", what, f, err)
				}
			}
			if b, err := Read(path, 10); !errors.Is(err, ErrNotRegular) {
				t.Errorf("read: %q, %v", b, err)
			}
		})
	}
}

func TestFilesAreReadUpToTheirLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if _, err := Read(path, 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
	f, err := Open(path, os.O_WRONLY|os.O_CREATE)
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
	if b, err := Read(path, 5); err != nil || string(b) != "12345" {
		t.Errorf("of its limit: %q, %v", b, err)
	}
	if _, err := Read(path, 4); !errors.Is(err, ErrTooLarge) {
		t.Errorf("beyond its limit: %v", err)
	}
	if err := os.Truncate(path, 1<<40); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path, 4<<20); !errors.Is(err, ErrTooLarge) {
		t.Errorf("of a terabyte: %v", err)
	}
	f, err = Open(path, os.O_WRONLY|os.O_TRUNC)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := f.Stat(); err != nil || info.Size() != 0 {
		t.Errorf("cut off: %v, %v", info, err)
	}
	_ = f.Close()
}
