package files

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"

	"agentctl.dev/agentctl/plugins/sdk"
)

type grepIn struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path,omitempty" jsonschema:"file or folder, default: the workspace"`
	Include string `json:"include,omitempty" jsonschema:"only such files, for example *.go or src/**/*.ts"`
}

func (s *set) grep(ctx context.Context, call *sdk.Call, in grepIn) (*sdk.Result, error) {
	q, err := newQuery(in)
	if err != nil {
		return nil, err
	}
	q.hidden = call.Hidden
	if in.Path == "" {
		in.Path = "."
	}
	w, base, err := openFor(call, in.Path)
	if err != nil {
		return nil, err
	}
	defer w.close()
	info, err := w.root.Stat(base)
	if err != nil {
		return nil, w.fail("grep", base, err)
	}
	var out found
	switch {
	case !info.IsDir() && slices.Contains(q.hidden, w.show(base)):
		return nil, sdk.Errorf("%s may not be read", w.show(base))
	case !info.IsDir():
		err = searchOne(ctx, w, base, q, &out)
	default:
		if err = search(ctx, w, base, q, &out); err != nil {
			err = w.fail("grep", base, err)
		}
	}
	if err != nil {
		return nil, err
	}
	return &sdk.Result{Title: in.Pattern, Text: out.text(), Metadata: foundData{Matches: out.n, Files: out.files}}, nil
}

// searchOne searches a file that was named, so a reason to skip it is an error.
func searchOne(ctx context.Context, w *workspace, rel string, q *query, out *found) error {
	f, _, err := w.open(rel)
	if err != nil {
		return err
	}
	defer f.Close()
	hits, err := q.scan(ctx, f)
	if err != nil {
		return sdk.Errorf("grep %s: %w", w.show(rel), err)
	}
	_ = out.add(w.show(rel), hits) // its text shows that it is full
	return nil
}

// query is what is searched for.
type query struct {
	line *regexp.Regexp
	// whole finds candidates in many lines at once; nil if only single lines can
	// be asked.
	whole   *regexp.Regexp
	include string
	// hidden files are left out.
	hidden []string
	// buffers holds file contents between scans.
	buffers sync.Pool
}

func newQuery(in grepIn) (*query, error) {
	if in.Pattern == "" {
		return nil, sdk.Errorf("pattern is empty")
	}
	if len(in.Pattern) > maxPattern {
		return nil, sdk.Errorf("pattern is longer than %d bytes", maxPattern)
	}
	re, err := regexp.Compile(in.Pattern)
	if err != nil {
		return nil, sdk.Errorf("pattern is no valid regular expression (RE2: no lookaround, no backreferences): %w", err)
	}
	q := &query{line: re, include: in.Include, buffers: sync.Pool{New: func() any { return new(bytes.Buffer) }}}
	if in.Include != "" {
		if err := checkPattern("include", in.Include); err != nil {
			return nil, err
		}
	}
	if tree, err := syntax.Parse(in.Pattern, syntax.Perl); err == nil {
		// It only finds candidates, so a part that cannot be translated back does not
		// matter.
		if re, err := regexp.Compile(withinLine(tree).String()); err == nil {
			q.whole = re
		}
	}
	return q, nil
}

// withinLine changes an expression so that, asked of a whole text, it matches
// what it would match in each line alone. Otherwise a class such as [^)] would
// run on over all the lines that follow, again for each match.
func withinLine(re *syntax.Regexp) *syntax.Regexp {
	switch re.Op {
	case syntax.OpAnyChar:
		re.Op = syntax.OpAnyCharNotNL
	case syntax.OpBeginText:
		re.Op = syntax.OpBeginLine
	case syntax.OpEndText:
		re.Op = syntax.OpEndLine
	case syntax.OpCharClass:
		re.Rune = withoutNewline(re.Rune)
		if len(re.Rune) == 0 {
			re.Op = syntax.OpNoMatch
		}
	default: // nothing else can meet a line's end, but for a literal one
	}
	for _, sub := range re.Sub {
		withinLine(sub)
	}
	return re
}

// withoutNewline takes \n out of ranges of characters.
func withoutNewline(ranges []rune) []rune {
	var out []rune
	for i := 0; i+1 < len(ranges); i += 2 {
		lo, hi := ranges[i], ranges[i+1]
		if lo > '\n' || hi < '\n' {
			out = append(out, lo, hi)
			continue
		}
		if lo < '\n' {
			out = append(out, lo, '\n'-1)
		}
		if hi > '\n' {
			out = append(out, '\n'+1, hi)
		}
	}
	return out
}

// wants reports whether a file is to be searched; a pattern without a slash applies to the
// file's name.
func (q *query) wants(base, rel string) bool {
	switch {
	case q.include == "":
		return true
	case strings.Contains(q.include, "/"):
		return matches(strings.TrimPrefix(q.include, "./"), relative(base, rel))
	}
	return matches(q.include, path.Base(rel))
}

// hit is a line that matches.
type hit struct {
	line int
	text string
}

// maxShown is how many characters of a matching line are shown.
const maxShown = 300

// stretch is how much is searched between two looks at the call's end.
const stretch = 256 << 10

// search returns the matching lines of text, at most one more than are shown.
func (q *query) search(ctx context.Context, text []byte) ([]hit, error) {
	var all []hit
	line := 0
	for len(text) > 0 && len(all) <= maxFound {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		end := len(text)
		if end > stretch {
			if i := bytes.IndexByte(text[stretch:], '\n'); i >= 0 {
				end = stretch + i + 1
			}
		}
		for _, h := range q.hits(text[:end]) {
			h.line += line
			all = append(all, h)
		}
		line += bytes.Count(text[:end], []byte{'\n'})
		text = text[end:]
	}
	return all, nil
}

// hits returns the matching lines of a block, at most one more than are shown.
func (q *query) hits(text []byte) []hit {
	if q.whole == nil || bytes.IndexByte(text, '\r') >= 0 {
		return q.byLine(text)
	}
	var all []hit
	line, at := 1, 0
	for at < len(text) && len(all) <= maxFound {
		loc := q.whole.FindIndex(text[at:])
		if loc == nil {
			break
		}
		// No line before this one can match: a match of a line is a match of the text.
		start := at + loc[0]
		begin := bytes.LastIndexByte(text[:start], '\n') + 1
		begin = max(begin, at)
		if begin >= len(text) {
			break
		}
		line += bytes.Count(text[at:begin], []byte{'\n'})
		end := len(text)
		if i := bytes.IndexByte(text[begin:], '\n'); i >= 0 {
			end = begin + i
		}
		if m := q.line.FindIndex(text[begin:end]); m != nil {
			all = append(all, hit{line, around(text[begin:end], m)})
		}
		line++
		at = end + 1
	}
	return all
}

// byLine asks each line in turn.
func (q *query) byLine(text []byte) []hit {
	var all []hit
	line := 0
	for len(text) > 0 && len(all) <= maxFound {
		line++
		one, rest, _ := bytes.Cut(text, []byte{'\n'})
		text = rest
		one = bytes.TrimSuffix(one, []byte{'\r'})
		if m := q.line.FindIndex(one); m != nil {
			all = append(all, hit{line, around(one, m)})
		}
	}
	return all
}

// around shows a line, or of a long one the part around the match.
func around(line []byte, m []int) string {
	if len(line) <= maxShown {
		return readable(line)
	}
	from := max(0, m[0]-maxShown/3)
	from -= from % 4 // keep the cut still when the match moves a little
	for from > 0 && line[from]&0xc0 == 0x80 {
		from--
	}
	text, cut := shorten(readable(line[from:min(len(line), from+maxShown*4)]), maxShown)
	if from > 0 {
		text = "…" + text
	}
	if cut > 0 || from+maxShown*4 < len(line) {
		text += "…"
	}
	return text
}

// found collects the lines to show.
type found struct {
	b     strings.Builder
	n     int
	files []string
	full  bool
}

// add takes the hits of a file and returns fs.SkipAll when there is no room for more.
func (o *found) add(rel string, hits []hit) error {
	if len(hits) == 0 {
		return nil
	}
	for _, h := range hits {
		line := fmt.Sprintf("%s:%d:%s\n", readable([]byte(rel)), h.line, h.text)
		if o.n == maxFound || o.b.Len()+len(line) > maxText-remark {
			o.full = true
			return fs.SkipAll
		}
		o.b.WriteString(line)
		if len(o.files) == 0 || o.files[len(o.files)-1] != rel {
			o.files = append(o.files, rel)
		}
		o.n++
	}
	return nil
}

func (o *found) text() string {
	switch {
	case o.n == 0:
		return "no line matches"
	case o.full:
		return o.b.String() + fmt.Sprintf("(the first %s; there are more: narrow pattern, path or include)", count(o.n, "match"))
	}
	return o.b.String()
}
