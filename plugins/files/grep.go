package files

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

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
	f, info, err := w.open(rel)
	if err != nil {
		return err
	}
	defer f.Close()
	if info.Size() > maxScan {
		return sdk.Errorf("grep %s: %w", w.show(rel), errSkipped)
	}
	hits, err := q.scanner().scan(ctx, f, info.Size())
	if err != nil {
		return sdk.Errorf("grep %s: %w", w.show(rel), err)
	}
	_ = out.add(w.show(rel), hits) // its text shows that it is full
	return nil
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
