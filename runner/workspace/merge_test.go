package workspace

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// onto makes a change in a folder that has the base, once.
func onto(t *testing.T, spec Spec, c *Change, dir string) error {
	t.Helper()
	app := application(spec, c)
	app.Source, app.Record, app.Once = dir, filepath.Join(t.TempDir(), "merge.json"), true
	return Apply(context.Background(), app)
}

func TestOnlyIsExactlyThatPart(t *testing.T) {
	spec, c := changed(t)
	for reason, test := range map[string]struct {
		changed, deleted []string
		want             files
		gone             []string
	}{
		"a modified file, and no other":              {[]string{"mod"}, nil, files{"mod": "new\n"}, nil},
		"a deleted file, its folder stays":           {nil, []string{"mix/a"}, nil, []string{"mix/a", "mix/"}},
		"an added file comes with its folders":       {[]string{"added/deep/f"}, nil, files{"added/deep/f": "!f\n"}, nil},
		"a folder becomes a file with all its files": {[]string{"dir2file"}, []string{"dir2file/a", "dir2file/b/c"}, files{"dir2file": "now\n"}, []string{"dir2file/a", "dir2file/b/c"}},
		"a file becomes a folder":                    {[]string{"file2dir/in"}, []string{"file2dir"}, files{"file2dir/in": "i\n"}, []string{"file2dir"}},
		"a link and the executable bit":              {[]string{"link2file", "mode"}, nil, files{"link2file": "file\n", "mode": "!m\n"}, nil},
	} {
		part, err := c.Only(test.changed, test.deleted)
		if err != nil {
			t.Fatalf("%s: %v", reason, err)
		}
		dir := t.TempDir()
		base.write(t, dir)
		want := maps.Clone(base)
		for _, p := range test.gone {
			delete(want, p)
		}
		maps.Copy(want, test.want)
		if err := onto(t, spec, part, dir); err != nil {
			t.Errorf("%s: %v", reason, err)
		}
		if diff := cmp.Diff(want, read(t, dir)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
}

func TestOnlyTakesNothingElse(t *testing.T) {
	w, _ := setup(t, files{"a": "1\n"})
	ready(t, w)
	for name, to := range map[string]string{
		"absolute": "/etc/passwd", "up": "../x", "deep/up": "../../x", "behind": "a/../../x", "inside": "a", "deep/inside": "../a", "dangling": "not/there",
	} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(w.Dir(), name)), 0o700))
		must(t, os.Symlink(to, filepath.Join(w.Dir(), name)))
	}
	c := changes(t, w)
	for name, ok := range map[string]bool{
		"absolute": false, "up": false, "deep/up": false, "behind": false, "inside": true, "deep/inside": true, "dangling": true,
		"a": false, "../a": false, ".git/HEAD": false, "": false, "/a": false,
	} {
		if _, err := c.Only([]string{name}, nil); (err == nil) != ok {
			t.Errorf("take %q: %v", name, err)
		}
		if _, err := c.Only(nil, []string{name}); err == nil {
			t.Errorf("%q can be deleted", name)
		}
	}
}

func TestAChangeThatWasMadeIsNotMadeAgain(t *testing.T) {
	spec, c := changed(t)
	dir := t.TempDir()
	base.write(t, dir)
	app := application(spec, c)
	app.Source, app.Once = dir, true
	must(t, Apply(context.Background(), app))
	must(t, os.WriteFile(filepath.Join(dir, "mod"), []byte("mine\n"), 0o600))
	must(t, os.Remove(filepath.Join(dir, "top")))
	before := read(t, dir)
	if err := Apply(context.Background(), app); !errors.Is(err, ErrApplied) {
		t.Errorf("again: %v", err)
	}
	if diff := cmp.Diff(before, read(t, dir)); diff != "" {
		t.Errorf("it was made again:\n%s", diff)
	}
	app.Once = false
	var drift *DriftError
	if err := Apply(context.Background(), app); !errors.As(err, &drift) {
		t.Errorf("without Once: %v", err)
	}
}

// TestAFolderThatBecameALinkIsNotFollowed replaces a folder by a link between the end of a
// run and the merge of its changes.
func TestAFolderThatBecameALinkIsNotFollowed(t *testing.T) {
	spec, c := changed(t)
	dir, outside := t.TempDir(), t.TempDir()
	base.write(t, dir)
	must(t, os.MkdirAll(filepath.Join(outside, "deep"), 0o700))
	must(t, os.Symlink(outside, filepath.Join(dir, "added")))
	part, err := c.Only([]string{"added/deep/f", "mod"}, nil)
	must(t, err)
	if err := onto(t, spec, part, dir); err == nil {
		t.Error("it was followed")
	}
	if got := read(t, outside); len(got) != 1 || read(t, dir)["mod"] != base["mod"] {
		t.Errorf("outside: %v; mod: %q", got, read(t, dir)["mod"])
	}
}

// TestACopyMayBeMadeOfFilesInTheStateFolder: those of the run above are there.
func TestACopyMayBeMadeOfFilesInTheStateFolder(t *testing.T) {
	state := t.TempDir()
	from := filepath.Join(state, "runs", "above")
	files{"a": "1\n", "skip/b": "2\n"}.write(t, from)
	spec := Spec{Source: t.TempDir(), From: from, Dir: filepath.Join(state, "runs", "below", "copy"), Skip: []string{state}, Exclude: []string{"skip"}}
	w, err := Prepare(t.Context(), spec)
	must(t, err)
	ready(t, w)
	if diff := cmp.Diff(files{"a": "1\n"}, read(t, w.Dir())); diff != "" {
		t.Error(diff)
	}
	must(t, w.Close())
	spec.Dir += "2"
	spec.From = filepath.Join(state, "gone")
	if _, err := Prepare(t.Context(), spec); !errors.Is(err, ErrGone) {
		t.Errorf("files that are not there: %v", err)
	}
}
