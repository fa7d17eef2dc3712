package files

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"

	"agentctl.dev/agentctl/plugins/sdk"
)

const (
	// maxLines and maxText bound a result, its closing remark included, so that
	// no caller has to cut it a second time.
	maxLines = 2000
	maxText  = 51200
	// remark is room for the closing remark.
	remark = 128
	// maxEdit is the largest file that can be edited, and so the largest that
	// read looks at beyond the lines it shows.
	maxEdit = 16 << 20
)

type readIn struct {
	Path   string `json:"path"`
	Offset int    `json:"offset,omitempty" jsonschema:"first line, from 1"`
	Limit  int    `json:"limit,omitempty" jsonschema:"lines, at most 2000"`
}

// fileData is the metadata of a result about one file.
type fileData struct {
	Path string `json:"path"`
	Hash string `json:"hash,omitempty"`
	Size int64  `json:"size"`
	Diff string `json:"diff,omitempty"`
	// DiffCut is true if Diff is incomplete.
	DiffCut bool `json:"diffCut,omitempty"`
}

func (s *set) read(ctx context.Context, call *sdk.Call, in readIn) (*sdk.Result, error) {
	if in.Offset < 0 || in.Limit < 0 {
		return nil, sdk.Errorf("offset and limit count from 1")
	}
	w, rel, err := openFor(call, in.Path)
	if err != nil {
		return nil, err
	}
	defer w.close()
	win := window{first: max(in.Offset, 1), lines: maxLines}
	if in.Limit > 0 {
		win.lines = min(in.Limit, maxLines)
	}
	f, info, err := w.open(rel)
	if err != nil {
		if st, e := w.root.Stat(rel); e == nil && st.IsDir() {
			return w.readFolder(rel, win)
		}
		return nil, err
	}
	defer f.Close()
	return s.readFile(ctx, call, w.show(rel), f, info, win)
}

// window is the part of a file that was asked for.
type window struct{ first, lines int }

func (s *set) readFile(ctx context.Context, call *sdk.Call, rel string, f *os.File, info fs.FileInfo, win window) (*sdk.Result, error) {
	data := fileData{Path: rel, Size: info.Size()}
	res := &sdk.Result{Title: rel}
	sum := sha256.New()
	small := info.Size() <= maxEdit
	var src io.Reader = f
	if small {
		src = io.TeeReader(io.LimitReader(f, maxEdit), sum)
	}
	r := bufio.NewReaderSize(&ctxReader{ctx, src}, 64<<10)
	head, err := r.Peek(sniffLen)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, sdk.Errorf("read %s: %w", rel, err)
	}
	if kind, ok := attachment(head); ok {
		return attach(rel, kind, r, data)
	}
	if binary(head) {
		return nil, sdk.Errorf("%s is not text but %s (%s): it cannot be read as lines", rel, binaryKind(head), count(int(info.Size()), "byte"))
	}
	if string(head[:min(len(bom), len(head))]) == string(bom) {
		_, _ = r.Discard(len(bom))
	}
	page, err := readPage(r, win, small)
	if err != nil {
		return nil, sdk.Errorf("read %s: %w", rel, err)
	}
	if page.shown == 0 && (win.first > 1 || page.passed > 0) {
		return nil, sdk.Errorf("offset %d is past the end of %s, which has %s", win.first, rel, count(page.passed, "line"))
	}
	if small {
		data.Hash = s.remember(call.Run, f, sum)
	}
	res.Text, res.Metadata = page.text, data
	return res, nil
}

// maxMedia is the largest image or PDF that is shown to a model.
const maxMedia = 10 << 20

// attach is read for a file that people look at: it is shown to a model that can see, as
// it is. What the content really is, the caller checks.
func attach(rel, kind string, r io.Reader, data fileData) (*sdk.Result, error) {
	res := &sdk.Result{Title: rel, Text: rel + ": " + kind + ", " + count(int(data.Size), "byte"), Metadata: data}
	content, err := io.ReadAll(io.LimitReader(r, maxMedia+1))
	switch {
	case err != nil:
		return nil, sdk.Errorf("read %s: %w", rel, err)
	case len(content) > maxMedia:
		res.Text += fmt.Sprintf("; more than the %d that can be shown", maxMedia)
	default:
		res.Attachments = []sdk.Attachment{{Name: path.Base(rel), Type: kind, Data: content}}
	}
	return res, nil
}

// remember records that the run has read f as it is now. Without a real path the file only
// has to be read again before an edit, so that is not an error.
func (s *set) remember(run string, f *os.File, sum hash.Hash) string {
	d := digest(sum.Sum(nil))
	if p, err := realFile(f); err == nil {
		if info, err := f.Stat(); err == nil && unlinked(info) {
			p = strings.TrimSuffix(p, " (deleted)") // which Linux appends to the path it had
		}
		s.seen.put(run, p, d)
	}
	return d.String()
}

// unlinked reports whether a file has no name any more: another process has removed it, or
// put a file in its place.
func unlinked(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink == 0
}

// page is what read shows of a file.
type page struct {
	text string
	// passed lines come before the window, shown are in it, and taken were read
	// in all to fill it.
	passed, shown, taken int
}

// readPage takes the window from r. With all it reads r to its end, for the
// hash and the number of lines.
func readPage(r *bufio.Reader, win window, all bool) (page, error) {
	l := &lines{r: r}
	var p page
	var err error
	if p.passed, err = l.skip(win.first - 1); err != nil {
		return p, ignoreEOF(err)
	}
	b := make([]byte, 0, 4096)
	before := 0 // where the last line begins
	full := false
	for !full {
		text, err := l.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return p, err
		}
		p.taken++
		prefix := strconv.Itoa(win.first+p.shown) + ": "
		full = p.shown == win.lines || len(b)+len(prefix)+len(text)+1 > maxText-remark
		if !full {
			before = len(b)
			b = append(append(append(b, prefix...), text...), '\n')
			p.shown++
		}
	}
	if full && p.shown == maxLines { // the remark needs a line too
		b, p.shown = b[:before], p.shown-1
	}
	if !full {
		p.text = string(b) + p.ending(win)
		return p, nil
	}
	rest, err := p.rest(r, all)
	p.text = string(b) + fmt.Sprintf("(lines %d-%d%s; go on with offset %d)", win.first, p.passed+p.shown, rest, p.passed+p.shown+1)
	return p, err
}

// ending is the remark on a page that reaches the end of the file.
func (p *page) ending(win window) string {
	switch {
	case p.shown > 0 && win.first > 1:
		return "(end of file)"
	case p.shown > 0:
		return ""
	}
	return "(empty file)"
}

// rest describes how much there is besides the page.
func (p *page) rest(r io.Reader, all bool) (string, error) {
	if !all {
		return ", more follow", nil
	}
	n, err := countLines(r)
	return fmt.Sprintf(" of %d", p.passed+p.taken+n), err
}

// countLines counts the lines of the rest of r.
func countLines(r io.Reader) (int, error) {
	buf := make([]byte, 32<<10)
	n, last := 0, byte('\n')
	for {
		k, err := r.Read(buf)
		if k > 0 {
			n += bytes.Count(buf[:k], []byte{'\n'})
			last = buf[k-1]
		}
		if errors.Is(err, io.EOF) {
			if last != '\n' {
				n++
			}
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// ctxReader stops reading when the call ends.
type ctxReader struct {
	ctx context.Context //nolint:containedctx // a reader cannot be given one
	r   io.Reader
}

func (c *ctxReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
