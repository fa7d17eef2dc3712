package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/runner/fstree"
)

// A sparse file of 100 GB costs a program nothing. To read it would take minutes.
func TestLargeFilesAreListedByMetadata(t *testing.T) {
	w, spec := setup(t, files{"a": "x", "small": "x", "kept": "x"})
	kept := bytes.Repeat([]byte("k"), maxApply+1)
	must(t, os.WriteFile(filepath.Join(spec.Source, "kept"), kept, 0o644))
	w, err := Prepare(t.Context(), Spec{Source: spec.Source, Dir: spec.Dir + "2", Blobs: spec.Blobs})
	must(t, err)
	t.Cleanup(func() { _ = w.Close() })
	ready(t, w)
	const size = 100 << 30
	for _, name := range []string{"sparse", "small"} {
		f, err := os.OpenFile(filepath.Join(w.Dir(), name), os.O_RDWR|os.O_CREATE, 0o644)
		must(t, err)
		must(t, errors.Join(f.Truncate(size), f.Close()))
	}
	// Written again with the same content it is read, and has not changed.
	must(t, os.WriteFile(filepath.Join(w.Dir(), "kept"), kept, 0o644))
	check := func(c *Change) {
		t.Helper()
		if diff := cmp.Diff(map[string]string{"sparse": Added, "small": Modified}, kinds(c)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for _, f := range c.Files {
			if f.New.Size != size || f.NotApplicable == "" || !strings.Contains(string(c.Diff), "# the content of "+string(f.Path)+" is not recorded: larger than") {
				t.Errorf("%+v\n%s", f, c.Diff)
			}
		}
		if err := Apply(t.Context(), application(spec, c)); err == nil || !strings.Contains(err.Error(), "its content was not recorded") {
			t.Errorf("apply: %v", err)
		}
	}
	check(changes(t, w))
	check(changes(t, w))
	base := w.Base()
	must(t, w.Leave())
	again, err := Open(t.Context(), Spec{Source: spec.Source, Dir: spec.Dir + "2", Blobs: spec.Blobs}, base)
	must(t, err)
	t.Cleanup(func() { _ = again.Close() })
	ready(t, again)
	check(changes(t, again))
	// One that has other content of the same size has.
	must(t, os.WriteFile(filepath.Join(again.Dir(), "kept"), append(kept[:maxApply:maxApply], 'x'), 0o644))
	if got := kinds(changes(t, again)); got["kept"] != Modified {
		t.Errorf("%v", got)
	}
}

func TestMoreFilesThanCanBeListedAreAnError(t *testing.T) {
	w, _ := setup(t, files{"a": "x"}, func(s *Spec) { s.MaxListed = 10 })
	ready(t, w)
	for i := range 11 {
		must(t, os.WriteFile(filepath.Join(w.Dir(), fmt.Sprint("f", i)), nil, 0o600))
	}
	if c, err := w.Changes(t.Context()); !errors.Is(err, ErrTooLarge) || c != nil {
		t.Errorf("%+v, %v", c, err)
	}
	small, err := Prepare(t.Context(), Spec{Source: w.Dir(), Dir: w.Dir() + "2", MaxFiles: 5})
	must(t, err)
	t.Cleanup(func() { _ = small.Close() })
	if err := small.Ready(t.Context()); !errors.Is(err, ErrTooLarge) {
		t.Errorf("to begin with: %v", err)
	}
}

func TestAChangeOfManyFilesIsRecordedInParts(t *testing.T) {
	blobs := &memory{}
	c := &Change{Files: []FileChange{}}
	name := strings.Repeat("n", 200)
	for i := range 100_000 {
		hash := hashOf([]byte{byte(i)})
		c.Files = append(c.Files, FileChange{Path: Path(fmt.Sprintf("%s/%06d", name, i)), Change: Added, New: &Version{Type: TypeFile, Mode: 0o644, Hash: hash, Blob: hash}})
	}
	patch, err := c.Record(blobs)
	must(t, err)
	if len(patch.Files)+patch.Omitted != len(c.Files) || patch.Omitted == 0 {
		t.Errorf("%d files are named, %d omitted", len(patch.Files), patch.Omitted)
	}
	for id, b := range blobs.m {
		if len(b) > maxPart {
			t.Errorf("blob %s has %d bytes", id, len(b))
		}
	}
	got, err := ReadChange(blobs, patch.Change)
	must(t, err)
	if diff := cmp.Diff(c.Files, got.Files); diff != "" {
		t.Error("what is read is not what was recorded")
	}
}

func TestContentsBeyondTheLimitsAreNotRecorded(t *testing.T) {
	room := contents{files: 2, bytes: 10}
	for i, want := range []string{"", "bytes", ""} {
		if why := room.take([]int64{4, 7, 6}[i]); (want == "") != (why == "") || !strings.Contains(why, want) {
			t.Errorf("file %d: %q", i, why)
		}
	}
	if why := room.take(0); !strings.Contains(why, "files") {
		t.Errorf("a third file: %q", why)
	}
}

// A folder that its owner has closed is not one without files.
func TestAFolderThatCannotBeReadIsAnError(t *testing.T) {
	unprivileged(t)
	for _, mode := range []os.FileMode{0o000, 0o400, 0o100} {
		for _, place := range []string{"before", "during"} {
			w, spec := setup(t, files{"a": "1\n", "dir/b": "2\n", "closed/x": "3\n"}, func(s *Spec) { s.Strategy = "InPlace" })
			if place == "before" { // one that could not be read before the run either
				must(t, w.Close())
				must(t, os.Chmod(filepath.Join(spec.Source, "dir"), mode))
				var err error
				w, err = Prepare(context.Background(), spec)
				must(t, err)
			}
			ready(t, w)
			must(t, os.WriteFile(filepath.Join(w.Dir(), "a"), []byte("changed\n"), 0o644))
			must(t, os.Chmod(filepath.Join(w.Dir(), "dir"), mode))
			c := changes(t, w)
			patch, err := c.Record(spec.Blobs)
			must(t, err)
			must(t, os.Chmod(filepath.Join(w.Dir(), "dir"), 0o700))
			if got := kinds(c); len(got) != 1 || got["a"] != Modified {
				t.Errorf("mode %o, %s: %v", mode, place, got)
			}
			if told := strings.Contains(patch.Error, `folder "dir" cannot be read`) && strings.Contains(string(c.Diff), "# the folder dir cannot be read"); told != (place == "during") {
				t.Errorf("mode %o, %s: %q\n%s", mode, place, patch.Error, c.Diff)
			}
			c.Strategy = "Copy"
			if err := Apply(t.Context(), application(spec, c)); place == "during" && (err == nil || !strings.Contains(err.Error(), "cannot be read")) {
				t.Errorf("mode %o, %s: applied: %v", mode, place, err)
			}
			_ = w.Close()
		}
	}
}

// A program can make folders in folders until no system call takes their path. The
// rest of the change is listed, and the first folder that is too deep is named.
func TestAFolderThatIsTooDeepIsAnError(t *testing.T) {
	for name, step := range map[string]string{"short names": "d", "long names": strings.Repeat("n", 255)} {
		t.Run(name, func(t *testing.T) {
			w, spec := setup(t, files{"a": "1\n"})
			ready(t, w)
			must(t, os.WriteFile(filepath.Join(w.Dir(), "a"), []byte("changed\n"), 0o644))
			fd, err := unix.Open(w.Dir(), unix.O_RDONLY|unix.O_DIRECTORY, 0)
			must(t, err)
			for range unix.PathMax/(len(step)+1) + 5 {
				must(t, unix.Mkdirat(fd, step, 0o700))
				next, err := unix.Openat(fd, step, unix.O_RDONLY|unix.O_DIRECTORY, 0)
				must(t, errors.Join(err, unix.Close(fd)))
				fd = next
			}
			must(t, unix.Close(fd))
			check := func(w *Workspace) {
				t.Helper()
				c := changes(t, w)
				patch, err := c.Record(spec.Blobs)
				must(t, err)
				if got := kinds(c); len(got) != 1 || got["a"] != Modified {
					t.Errorf("%v", got)
				}
				if len(c.Unlisted) != 1 || !strings.HasPrefix(patch.Error, `the folder "`+step[:1]) || len(patch.Error) > 500 || !strings.Contains(patch.Error, "cannot be read") {
					t.Errorf("%d folders are not listed: %q", len(c.Unlisted), patch.Error)
				}
				if err := Apply(t.Context(), application(spec, c)); err == nil || !strings.Contains(err.Error(), "cannot be read") {
					t.Errorf("applied: %v", err)
				}
			}
			check(w)
			base := w.Base()
			must(t, w.Leave())
			again, err := Open(t.Context(), spec, base)
			must(t, err)
			t.Cleanup(func() { _ = again.Close(); must(t, fstree.Remove(spec.Dir)) })
			ready(t, again)
			check(again)
		})
	}
}
