package files

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"agentctl.dev/agentctl/plugins/sdk"
)

const (
	aboutCodeSearch = "Find the files of the workspace that are about something, the best first, by words and parts of identifiers (parseURL, parse_url and \"parse url\" are alike). " +
		"Definitions count more than uses. Shows lines with numbers. For an exact text use grep."

	codeSearchSchema = `{"type":"object","properties":{"query":{"type":"string","minLength":1,"maxLength":500,"description":"words or identifiers"},` +
		`"path":{"type":"string","description":"folder, default: the workspace"},"include":{"type":"string","description":"only such files, for example *.go"},` +
		`"limit":{"type":"integer","minimum":1,"maximum":20,"description":"files, default 8"}},"required":["query"],"additionalProperties":false}`

	usualFiles, mostFiles = 8, 20
	// maxCode is the largest file that is ranked: code that people write is smaller.
	maxCode = 1 << 20
	// codeTime is how long files are read; then what was read is ranked.
	codeTime = 10 * time.Second
)

type codeSearchIn struct {
	Query   string `json:"query"`
	Path    string `json:"path,omitempty"`
	Include string `json:"include,omitempty"`
	Limit   int    `json:"limit,omitempty"`
}

// codesearch ranks the files of the workspace for a query. Nothing is kept between calls:
// every file is read.
func (s *set) codesearch(ctx context.Context, call *sdk.Call, in codeSearchIn) (*sdk.Result, error) {
	q := &query{include: in.Include, hidden: call.Hidden}
	t := newTerms(in.Query)
	if t.len() == 0 {
		return nil, sdk.Errorf("query has no word: write words, or names such as parseURL")
	}
	if in.Include != "" {
		if err := checkPattern("include", in.Include); err != nil {
			return nil, err
		}
	}
	w, base, err := start(call, in.Path, "codesearch")
	if err != nil {
		return nil, err
	}
	defer w.close()
	within := s.codeTime
	if within == 0 {
		within = codeTime
	}
	reading, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	all, err := readCode(reading, w, base, q, t)
	cut := errors.Is(reading.Err(), context.DeadlineExceeded) && ctx.Err() == nil
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil && !cut:
		return nil, w.fail("codesearch", base, err)
	}
	most := min(cmp.Or(in.Limit, usualFiles), mostFiles)
	best, matching := all.rank(t, most)
	text, shown := w.excerpts(best, t)
	switch {
	case matching == 0:
		text = fmt.Sprintf("no file of %d has one of these words", all.files)
	case matching > len(shown):
		text += fmt.Sprintf("(the best %d of %s; narrow query, path or include)", len(shown), count(matching, "file"))
	}
	if cut {
		text += fmt.Sprintf("\n(not all was read: %s within %s; narrow path or include)", count(all.files, "file"), within)
	}
	return &sdk.Result{Title: in.Query, Text: text, Metadata: foundData{Matches: matching, Files: shown}}, nil
}

// corpus is what was read.
type corpus struct {
	files int
	size  int
	// has counts the files with each term.
	has   [maxTerms]int
	found []*codeFile
}

// codeFile is a file with a term of the query in it, or in its path.
type codeFile struct {
	rel  string
	size int
	// uses and defined count the terms, named are those in the path.
	uses, defined [maxTerms]int
	named         termSet
	lines         []codeLine
	score         float64
}

// codeLine is a line with terms.
type codeLine struct {
	number         int
	terms, defined termSet
}

// maxCodeLines bounds the lines that are remembered of one file.
const maxCodeLines = 500

// readCode reads the files beneath base, several at once.
func readCode(ctx context.Context, w *workspace, base string, q *query, t *terms) (*corpus, error) {
	workers := min(runtime.NumCPU(), 8)
	todo := make(chan *job, maxWaiting)
	parts := make([]corpus, workers)
	var wg sync.WaitGroup
	for i := range parts {
		wg.Go(func() {
			buffer := make([]byte, 0, 64<<10)
			for j := range todo {
				if ctx.Err() == nil {
					buffer = parts[i].read(j, t, buffer[:0])
				}
				j.in.release()
			}
		})
	}
	files := 0
	k := &walker{w: w, ignore: true, visit: func(in *folder, rel string, e entry) error {
		if !e.mode.IsRegular() || slices.Contains(q.hidden, w.show(rel)) || !q.wants(base, rel) {
			return nil
		}
		if files++; files == manyFiles {
			processors.enter()
		}
		select {
		case todo <- &job{in: in.keep(), name: e.name, rel: rel}:
			return nil
		case <-ctx.Done():
			in.release()
			return ctx.Err()
		}
	}}
	err := k.walk(ctx, base)
	close(todo)
	wg.Wait()
	if files >= manyFiles {
		processors.leave()
	}
	all := &corpus{}
	for _, p := range parts {
		all.files += p.files
		all.size += p.size
		for i, n := range p.has {
			all.has[i] += n
		}
		all.found = append(all.found, p.found...)
	}
	return all, err
}

// read adds a file to what was read. It returns the buffer, which may have grown.
func (c *corpus) read(j *job, t *terms, buffer []byte) []byte {
	f, err := j.in.regular(j.name)
	if err != nil {
		return buffer
	}
	defer f.Close()
	if f.size > maxCode {
		return buffer
	}
	b := bytes.NewBuffer(buffer)
	if _, err := b.ReadFrom(io.LimitReader(f, maxCode)); err != nil {
		return b.Bytes()
	}
	text := b.Bytes()
	if binary(text[:min(len(text), sniffLen)]) {
		return text
	}
	code := &codeFile{rel: j.rel, size: len(text), named: t.inPath(j.rel)}
	code.scan(text, t)
	c.files++
	c.size += code.size
	present := code.named
	for i := range t.len() {
		if code.uses[i] > 0 {
			present |= 1 << i
		}
	}
	if present == 0 {
		return text
	}
	for i := range t.len() {
		if present&(1<<i) != 0 {
			c.has[i]++
		}
	}
	c.found = append(c.found, code)
	return text
}

// scan counts the terms in a text.
func (f *codeFile) scan(text []byte, t *terms) {
	for number := 1; len(text) > 0; number++ {
		line, rest, _ := bytes.Cut(text, []byte{'\n'})
		text = rest
		var hits termSet
		t.find(line, func(i int) {
			f.uses[i]++
			hits |= 1 << i
		})
		if hits == 0 {
			continue
		}
		l := codeLine{number: number, terms: hits}
		if name := definedName(line); len(name) > 0 {
			t.find(name, func(i int) {
				if l.defined&(1<<i) == 0 {
					f.defined[i]++
				}
				l.defined |= 1 << i
			})
		}
		if len(f.lines) < maxCodeLines || l.defined != 0 {
			f.lines = append(f.lines, l)
		}
	}
}

// excerpts are the lines of the best files that say most about the query, and the files
// of which something is shown.
func (w *workspace) excerpts(best []*codeFile, t *terms) (text string, shown []string) {
	var b strings.Builder
	for _, f := range best {
		part := w.excerpt(f, t)
		if b.Len()+len(part) > maxText-4*remark {
			break
		}
		b.WriteString(part)
		shown = append(shown, w.show(f.rel))
	}
	return b.String(), shown
}

const (
	// around each of the best lines, so many are shown, and of one file so many stretches.
	linesBefore, linesAfter = 1, 3
	maxStretches            = 3
	maxCodeShown            = 200
)

// excerpt is a file with its best lines.
func (w *workspace) excerpt(f *codeFile, t *terms) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", readable([]byte(w.show(f.rel))))
	file, _, err := openRegular(w.root, f.rel)
	if err != nil {
		return b.String()
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxCode))
	if err != nil {
		return b.String()
	}
	lines := bytes.Split(bytes.TrimSuffix(text, []byte{'\n'}), []byte{'\n'})
	end := 0
	for _, at := range f.best(t) {
		from, to := max(at-linesBefore, end+1), min(at+linesAfter, len(lines))
		if from > to {
			continue
		}
		if end > 0 && from > end+1 {
			b.WriteString("  ...\n")
		}
		for n := from; n <= to; n++ {
			line, cut := shorten(readable(bytes.TrimRight(lines[n-1], "\r")), maxCodeShown)
			if cut > 0 {
				line += "…"
			}
			fmt.Fprintf(&b, "  %d: %s\n", n, line)
		}
		end = to
	}
	b.WriteByte('\n')
	return b.String()
}
