package workspace

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// maxDiff bounds the whole text; what is left out is said.
const maxDiff = 32 << 20

// differ writes a unified diff that git apply and patch -p1 accept.
type differ struct {
	old            func(p Path, v *Version) ([]byte, bool)
	buf            bytes.Buffer
	added, removed int
	omitted        int
}

func (d *differ) text() []byte {
	if d.omitted > 0 {
		fmt.Fprintf(&d.buf, "# %d more files were left out: the diff would be longer than %d bytes\n", d.omitted, maxDiff)
	}
	return d.buf.Bytes()
}

// unlisted names the folders of which nothing is known.
func (d *differ) unlisted(folders []Path) {
	for _, dir := range folders {
		fmt.Fprintf(&d.buf, "# the folder %s cannot be read: what it holds now is not known\n", quote(string(dir)))
	}
}

// file writes one change; text is the new content of a file.
func (d *differ) file(f *FileChange, text []byte) {
	if d.buf.Len() > maxDiff {
		d.omitted++
		return
	}
	if f.NotApplicable != "" {
		fmt.Fprintf(&d.buf, "# the content of %s is not recorded: %s\n", quote(string(f.Path)), strings.ToValidUTF8(strings.ReplaceAll(f.NotApplicable, "\n", " "), "?"))
	}
	if f.Old != nil && f.New != nil && f.Old.Type != f.New.Type {
		// A file that became a link is, as in git, one gone and one new.
		d.part(f.Path, f.Old, nil, nil)
		d.part(f.Path, nil, f.New, text)
		return
	}
	d.part(f.Path, f.Old, f.New, text)
}

func (d *differ) part(p Path, old, neu *Version, text []byte) {
	if old != nil && neu != nil && old.Mode != neu.Mode && gitMode(old) == gitMode(neu) {
		// Git knows only whether a file is executable.
		fmt.Fprintf(&d.buf, "# mode of %s: %04o, now %04o\n", quote(string(p)), old.Mode, neu.Mode)
	}
	a, b := quote("a/"+string(p)), quote("b/"+string(p))
	fmt.Fprintf(&d.buf, "diff --git %s %s\n", a, b)
	a, b = label(a), label(b)
	switch {
	case old == nil:
		fmt.Fprintf(&d.buf, "new file mode %s\n", gitMode(neu))
		a = "/dev/null"
	case neu == nil:
		fmt.Fprintf(&d.buf, "deleted file mode %s\n", gitMode(old))
		b = "/dev/null"
	case gitMode(old) != gitMode(neu):
		fmt.Fprintf(&d.buf, "old mode %s\nnew mode %s\n", gitMode(old), gitMode(neu))
	}
	if old != nil && neu != nil && old.Hash == neu.Hash && old.Target == neu.Target {
		return
	}
	before, ok1 := d.content(p, old, nil)
	after, ok2 := d.content(p, neu, text)
	if !ok1 || !ok2 {
		fmt.Fprintf(&d.buf, "Binary files %s and %s differ\n", a, b)
		return
	}
	d.hunks(a, b, before, after)
}

// content returns what is compared, and whether it can be compared by lines.
func (d *differ) content(p Path, v *Version, text []byte) (string, bool) {
	switch {
	case v == nil:
		return "", true
	case v.Type == TypeLink:
		return string(v.Target), true
	case v.Size == 0:
		return "", true
	case text == nil:
		text, ok := d.old(p, v)
		return string(text), ok
	}
	return string(text), isText(text)
}

func (d *differ) hunks(a, b, before, after string) {
	edits := udiff.Lines(before, after)
	text, err := udiff.ToUnified(a, b, before, edits, udiff.DefaultContextLines)
	if err != nil {
		fmt.Fprintf(&d.buf, "Binary files %s and %s differ\n", a, b)
		return
	}
	_, body, _ := strings.Cut(text, "\n@@ ") // a removed line may look like a header
	_, body, _ = strings.Cut(body, "\n")
	for line := range strings.SplitSeq(body, "\n") {
		switch {
		case strings.HasPrefix(line, "+"):
			d.added++
		case strings.HasPrefix(line, "-"):
			d.removed++
		}
	}
	d.buf.WriteString(text)
}

func gitMode(v *Version) string {
	switch {
	case v.Type == TypeLink:
		return "120000"
	case v.Mode&0o100 != 0:
		return "100755"
	}
	return "100644"
}

// label ends a name with blanks in it, for git and for patch.
func label(quoted string) string {
	if strings.ContainsRune(quoted, ' ') && !strings.HasPrefix(quoted, `"`) {
		return quoted + "\t"
	}
	return quoted
}

// quote writes a name as git does: in C's way when it holds anything special,
// so that no name can forge a line of the diff.
func quote(name string) string {
	plain := true
	for i := range len(name) {
		if c := name[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			plain = false
		}
	}
	if plain {
		return name
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
