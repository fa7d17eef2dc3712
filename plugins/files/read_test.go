package files

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// numbered makes n lines.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "l%d\n", i+1)
	}
	return b.String()
}

func TestReadShowsNumberedLines(t *testing.T) {
	d := newDesk(t, map[string]string{
		"a.txt": "one\ntwo\nthree\n", "noeol": "one\ntwo", "crlf": "one\r\ntwo\r\n", "bom": "\xef\xbb\xbfone\n", "empty": "", "blank": "\n\n",
		"latin1": "caf\xe9\n", "ansi": "\x1b[1mx\x1b[0m\n", "BM": "BM is two letters of text\n",
		"long": strings.Repeat("ä", 2500) + "\nnext\n", "huge": strings.Repeat("x", 300_000) + "\nnext\n",
		"2000": numbered(2000), "2001": numbered(2001), "5000": numbered(5000),
	})
	for _, tc := range []struct {
		reason string
		in     args
		want   string
	}{
		{"whole", args{"path": "a.txt"}, "1: one\n2: two\n3: three\n"},
		{"from the middle", args{"path": "a.txt", "offset": 2}, "2: two\n3: three\n(end of file)"},
		{"a window", args{"path": "a.txt", "offset": 2, "limit": 1}, "2: two\n(lines 2-2 of 3; go on with offset 3)"},
		{"a window to the end", args{"path": "a.txt", "limit": 3}, "1: one\n2: two\n3: three\n"},
		{"no end of line", args{"path": "noeol"}, "1: one\n2: two\n"},
		{"no end of line, counted", args{"path": "noeol", "limit": 1}, "1: one\n(lines 1-1 of 2; go on with offset 2)"},
		{"CRLF is an end of line", args{"path": "crlf"}, "1: one\n2: two\n"},
		{"a byte order mark is no text", args{"path": "bom"}, "1: one\n"},
		{"an empty file", args{"path": "empty"}, "(empty file)"},
		{"blank lines", args{"path": "blank"}, "1: \n2: \n"},
		{"what is no UTF-8 is replaced", args{"path": "latin1"}, "1: caf\uFFFD\n"},
		{"escapes are text", args{"path": "ansi"}, "1: \x1b[1mx\x1b[0m\n"},
		{"not an image", args{"path": "BM"}, "1: BM is two letters of text\n"},
		{"a long line is cut at a character", args{"path": "long"}, "1: " + strings.Repeat("ä", 2000) + "… (line cut, 500 more characters)\n2: next\n"},
		{"a huge line", args{"path": "huge"}, "1: " + strings.Repeat("x", 2000) + "… (line cut, 300001 bytes in all)\n2: next\n"},
		{"past the end", args{"path": "5000", "offset": 4999}, "4999: l4999\n5000: l5000\n(end of file)"},
		{"offset 0 is not given", args{"path": "a.txt", "offset": 0}, "1: one\n2: two\n3: three\n"},
	} {
		d.want(tc.reason, d.ok("read", tc.in), tc.want)
	}
	for name, end := range map[string]string{"2000": "2000: l2000\n", "2001": "1999: l1999\n(lines 1-1999 of 2001; go on with offset 2000)", "5000": "1999: l1999\n(lines 1-1999 of 5000; go on with offset 2000)"} {
		got := d.ok("read", args{"path": name, "limit": 9999})
		if !strings.HasSuffix(got, end) || strings.Count(strings.TrimSuffix(got, "\n"), "\n") > maxLines-1 {
			t.Errorf("%s ends in %q", name, got[len(got)-80:])
		}
	}
}

func TestReadStaysBelowTheByteLimit(t *testing.T) {
	d := newDesk(t, map[string]string{"wide": strings.Repeat(strings.Repeat("w", 999)+"\n", 200), "cjk": strings.Repeat(strings.Repeat("語", 3000)+"\n", 50)})
	for _, name := range []string{"wide", "cjk"} {
		seen, offset := 0, 1
		for {
			got := d.ok("read", args{"path": name, "offset": offset})
			if len(got) > maxText {
				t.Fatalf("%s: %d bytes", name, len(got))
			}
			n := strings.Count(got, ": w") + strings.Count(got, ": 語")
			seen, offset = seen+n, offset+n
			if !strings.Contains(got, "go on with offset") {
				break
			}
			if !strings.HasSuffix(got, fmt.Sprintf("go on with offset %d)", offset)) {
				t.Fatalf("%s: wrong offset in %q", name, got[len(got)-60:])
			}
		}
		if want := strings.Count(d.get(name), "\n"); seen != want {
			t.Errorf("%s: %d of %d lines seen in pages", name, seen, want)
		}
	}
}

func TestReadRefusesWhatIsNoText(t *testing.T) {
	d := newDesk(t, map[string]string{
		"nul": "a\x00b", "control": strings.Repeat("\x01\x02a", 100), "elf": "\x7fELF\x02\x01\x01\x00\x00", "utf16": "\xff\xfea\x00b\x00",
		"zip": "PK\x03\x04\x00\x00", "pic.png": "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "doc.pdf": "%PDF-1.7\n%text", "main.go": "package main\n", "mane.go": "package main\n", "maid.txt": "x\n", "deep/er/other.go": "x\n", "dir/x": "",
	})
	if err := syscall.Mkfifo(filepath.Join(d.dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	d.link("self", "self")
	for _, tc := range []struct {
		reason string
		in     args
		want   string
	}{
		{"a NUL", args{"path": "nul"}, "nul is not text but binary data (3 bytes): it cannot be read as lines"},
		{"control bytes", args{"path": "control"}, "control is not text but binary data (300 bytes): it cannot be read as lines"},
		{"a program", args{"path": "elf"}, "elf is not text but an ELF program (9 bytes): it cannot be read as lines"},
		{"an archive", args{"path": "zip"}, "zip is not text but application/zip (6 bytes): it cannot be read as lines"},
		{"UTF-16 is named", args{"path": "utf16"}, "utf16 is not text but UTF-16 text (6 bytes): it cannot be read as lines"},
		{"a pipe is not waited for", args{"path": "pipe"}, "pipe is a named pipe, not a file"},
		{"a link to itself", args{"path": "self"}, "open self: *"},
		{"past the end", args{"path": "main.go", "offset": 3}, "offset 3 is past the end of main.go, which has 1 line"},
		{"past the end of nothing", args{"path": "dir/x", "offset": 2}, "offset 2 is past the end of dir/x, which has 0 lines"},
		{"negative", args{"path": "main.go", "offset": -1}, "offset and limit count from 1"},
		{"empty path", args{"path": ""}, "path is empty: *"},
		{"three similar names", args{"path": "maim.go"}, "maim.go does not exist. Similar: main.go, mane.go*"},
		{"in another folder", args{"path": "src/other.go"}, "src/other.go does not exist. Similar: deep/er/other.go"},
		{"a folder that is misspelt", args{"path": "dep/er/other.go"}, "dep/er/other.go does not exist. Similar: deep, deep/er/other.go"},
		{"nothing is like it", args{"path": "qqqqqqqqqqqqqqqq"}, "qqqqqqqqqqqqqqqq does not exist"},
		{"beneath a file", args{"path": "main.go/x"}, "open main.go/x: a part of the path is a file, not a folder"},
		{"no permission needed: name too long", args{"path": strings.Repeat("n", 300)}, "open " + strings.Repeat("n", 300) + ": file name too long"},
	} {
		d.want(tc.reason, d.refused("read", tc.in), tc.want)
	}
	d.want("an image is described", d.ok("read", args{"path": "pic.png"}), "pic.png: image/png, 16 bytes")
	d.want("a PDF is described", d.ok("read", args{"path": "doc.pdf"}), "doc.pdf: application/pdf, 14 bytes")
	res := d.call(t.Context(), "read", args{"path": "doc.pdf"})
	if a := res.Attachments; len(a) != 1 || a[0].Name != "doc.pdf" || a[0].Type != "application/pdf" || string(a[0].Data) != d.get("doc.pdf") {
		t.Errorf("what is shown: %+v", a)
	}
	d.put("large.pdf", "%PDF-1.7\n"+strings.Repeat("\x00", maxMedia))
	if res := d.call(t.Context(), "read", args{"path": "large.pdf"}); len(res.Attachments) != 0 || !strings.Contains(res.Text, "more than the 10485760 that can be shown") {
		t.Errorf("a large one: %s, %d attached", res.Text, len(res.Attachments))
	}
}

func TestReadOfAFolderListsIt(t *testing.T) {
	d := newDesk(t, map[string]string{"b.txt": "", "a/x": "", ".hid": "", ".git/config": ""})
	d.want("entries", d.ok("read", args{"path": "."}), ".git/\n.hid\na/\nb.txt\n")
	d.want("a page", d.ok("read", args{"path": ".", "offset": 2, "limit": 2}), ".hid\na/\n(entries 2-3 of 4; go on with offset 4)")
	d.want("past the end", d.refused("read", args{"path": ".", "offset": 9}), "offset 9 is past the end of ., which has 4 entries")
	if err := os.Mkdir(filepath.Join(d.dir, "none"), 0o755); err != nil {
		t.Fatal(err)
	}
	d.want("empty", d.ok("read", args{"path": "none"}), "(empty folder)")
}

func TestReadTellsPathAndHash(t *testing.T) {
	d := newDesk(t, map[string]string{"a/b": "x\ny\n"})
	res := d.call(t.Context(), "read", args{"path": "./a//b", "limit": 1})
	want := fileData{Path: "a/b", Hash: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("x\ny\n"))), Size: 4}
	if res.Metadata != want || res.Title != "a/b" || res.Writes {
		t.Errorf("got %+v", res)
	}
}

func TestReadOfABigFileStreams(t *testing.T) {
	d := newDesk(t, nil)
	f, err := os.Create(filepath.Join(d.dir, "big"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(strings.Repeat("a line of the file\n", 10_000)); err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(8 << 30); err != nil { // sparse: reading all of it would take long
		t.Fatal(err)
	}
	start := time.Now()
	got := d.ok("read", args{"path": "big", "offset": 9000, "limit": 2})
	d.want("the number of lines is not known", got, "9000: a line of the file\n9001: a line of the file\n(lines 9000-9001, more follow; go on with offset 9002)")
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("took %s", took)
	}
}
