package export

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/journal"
)

// exported is the export of a small run without files, as its entries.
func exported(t *testing.T) (Manifest, []entry) {
	t.Helper()
	state := t.TempDir()
	dir := journal.Dir(state, "r")
	w, err := journal.Create(t.Context(), journal.Options{Dir: dir, Run: "r"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Append(event.Event{Data: event.RunStarted{Agent: "a", Prompt: "go"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.PutBlob([]byte("a blob")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "r"+Suffix)
	if _, err := Write(t.Context(), Options{State: state, Ref: "r", File: file, WithoutFiles: true}); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var m Manifest
	var all []entry
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return m, all
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Name == manifestName {
			if err := json.Unmarshal(b, &m); err != nil {
				t.Fatal(err)
			}
			continue
		}
		all = append(all, entry{tar.Header{Name: h.Name, Typeflag: h.Typeflag, Mode: h.Mode}, string(b)})
	}
}

type entry struct {
	tar.Header

	content string
}

// archive writes entries behind a manifest.
func archive(t *testing.T, m any, all ...entry) string {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range append([]entry{{tar.Header{Name: manifestName, Typeflag: tar.TypeReg}, string(b)}}, all...) {
		e.Size = int64(len(e.content))
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "x"+Suffix)
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAnExportIsOpenedAndRemoved(t *testing.T) {
	m, all := exported(t)
	m.HasFiles = true
	all = append(all,
		entry{tar.Header{Name: "files/d/", Typeflag: tar.TypeDir, Mode: 0o500}, ""},
		entry{tar.Header{Name: "files/d/f", Typeflag: tar.TypeReg, Mode: 0o640}, "text"},
		entry{tar.Header{Name: "files/link", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}, ""})
	o, err := Open(t.Context(), archive(t, m, all...))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(o.Files, "d", "f")); err != nil || string(b) != "text" {
		t.Errorf("file: %q, %v", b, err)
	}
	if to, err := os.Readlink(filepath.Join(o.Files, "link")); err != nil || to != "/etc/passwd" {
		t.Errorf("link to %q, %v: it is made as it is", to, err)
	}
	if info, err := os.Stat(filepath.Join(o.Files, "d", "f")); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info, err)
	}
	if _, err := journal.Verify(t.Context(), journal.Dir(o.State, o.Run)); err != nil {
		t.Error(err)
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(o.State); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
}

// What an attacker may send as an export.
func TestHostileExportsAreRefused(t *testing.T) {
	m, all := exported(t)
	m.HasFiles = true
	regular := func(name string) entry {
		return entry{tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o600}, "hostile"}
	}
	link := func(name, to string) entry {
		return entry{tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: to}, ""}
	}
	outside := filepath.Join(t.TempDir(), "outside")
	for name, c := range map[string]struct {
		more []entry
		want string
	}{
		"parent":              {[]entry{regular("files/../../outside")}, "nothing that an export holds"},
		"absolute":            {[]entry{regular(outside)}, "nothing that an export holds"},
		"below a link":        {[]entry{link("files/l", filepath.Dir(outside)), regular("files/l/outside")}, "below a link"},
		"through its journal": {[]entry{link("files/l", "../runs/r"), regular("files/l/blobs")}, "below a link"},
		"over a link":         {[]entry{link("files/l", outside), regular("files/l")}, "exists"},
		"twice":               {[]entry{regular("files/f"), regular("files/f")}, "exists"},
		"other run":           {[]entry{regular("runs/other/head.json")}, "nothing that an export holds"},
		"lock of a run":       {[]entry{regular("runs/r/lock")}, "nothing that an export holds"},
		"link in a run":       {[]entry{link("runs/r/blobs/x", outside)}, "nothing that an export holds"},
		"credentials":         {[]entry{regular("credentials/KEY")}, "nothing that an export holds"},
		"hard link":           {[]entry{{tar.Header{Name: "files/h", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}, ""}}, "nothing that an export holds"},
		"device":              {[]entry{{tar.Header{Name: "files/d", Typeflag: tar.TypeChar}, ""}}, "nothing that an export holds"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := Open(t.Context(), archive(t, m, append(append([]entry{}, all...), c.more...)...))
			if err == nil {
				t.Fatalf("opened: %v", o.Close())
			}
			if _, usage := errors.AsType[*reason.UsageError](err); !usage || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if _, err := os.Lstat(outside); err == nil {
				t.Error("it wrote outside its folder")
			}
		})
	}
}

func TestAnExportThatIsNotWhatItSaysIsRefused(t *testing.T) {
	m, all := exported(t)
	for name, c := range map[string]struct {
		change func(*Manifest)
		all    []entry
		want   string
	}{
		"newer":      {func(m *Manifest) { m.Format = 2 }, all, "version 2"},
		"no such":    {func(m *Manifest) { m.Run = "other" }, all, "does not hold run"},
		"cut":        {func(m *Manifest) { m.Seq = 7 }, all, "it was changed"},
		"other end":  {func(m *Manifest) { m.Hash = "sha256:00" }, all, "it was changed"},
		"no files":   {func(*Manifest) {}, append(all[:len(all):len(all)], entry{tar.Header{Name: "files/f", Typeflag: tar.TypeReg}, ""}), "nothing that an export holds"},
		"no journal": {func(*Manifest) {}, nil, "open export"},
	} {
		t.Run(name, func(t *testing.T) {
			m := m
			c.change(&m)
			if o, err := Open(t.Context(), archive(t, m, c.all...)); err == nil {
				t.Fatalf("opened: %v", o.Close())
			} else if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	if o, err := Open(t.Context(), t.TempDir()); err == nil {
		t.Errorf("a folder was opened: %v", o.Close())
	}
}

// A file of a few kilobytes must not fill the disk.
func TestWhatDecompressesToMoreThanTheBoundIsRefused(t *testing.T) {
	b := &bounded{from: zeros{}, left: 10_000}
	if n, err := io.Copy(io.Discard, b); err == nil || n != 10_000 {
		t.Errorf("read %d bytes, %v", n, err)
	}
}

type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }
