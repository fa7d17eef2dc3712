package files

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"agentctl.dev/agentctl/plugins/sdk"
)

const (
	// maxDiff bounds the diff in the metadata, maxDiffed the files that are compared.
	maxDiff   = 128 << 10
	maxDiffed = 2 << 20
)

type editIn struct {
	Path       string `json:"path"`
	OldString  string `json:"oldString"`
	NewString  string `json:"newString"`
	ReplaceAll bool   `json:"replaceAll,omitempty"`
}

func (s *set) edit(ctx context.Context, call *sdk.Call, in editIn) (*sdk.Result, error) {
	switch {
	case in.OldString == "":
		return nil, sdk.Errorf("oldString is empty: quote the text to replace; use write to make a file or to replace all of it")
	case in.OldString == in.NewString:
		return nil, sdk.Errorf("oldString and newString are equal: nothing to change")
	}
	w, rel, err := openFor(call, in.Path)
	if err != nil {
		return nil, err
	}
	defer w.close()
	t, err := s.target(ctx, w, rel, false)
	if err != nil {
		return nil, err
	}
	defer t.close()
	if err := t.known(s, call.Run, "edit"); err != nil {
		return nil, err
	}
	text, marked := bytes.CutPrefix(t.old, bom)
	how, places := find(text, strings.TrimPrefix(in.OldString, string(bom)), strings.TrimPrefix(in.NewString, string(bom)))
	if err := unique(t.rel, text, in, places); err != nil {
		return nil, err
	}
	changed := replace(text, places)
	if marked {
		changed = append(bom[:len(bom):len(bom)], changed...)
	}
	what := fmt.Sprintf("edited %s: %s at line %s (%s)", t.rel, count(len(places), "replacement"), numbers(text, places), how)
	return s.finish(call, t, changed, what)
}

// unique refuses a replacement whose place is not certain.
func unique(rel string, text []byte, in editIn, places []place) error {
	switch {
	case len(places) == 1, len(places) > 1 && in.ReplaceAll:
		return nil
	case len(places) > 1:
		return sdk.Errorf("oldString stands %d times in %s, at lines %s: add lines around it until it is unique, or set replaceAll", len(places), rel, numbers(text, places))
	}
	n, shown := nearest(text, in.OldString)
	if n == 0 {
		return sdk.Errorf("oldString was not found in %s, and no line is like it: read the file again", rel)
	}
	shown, _ = shorten(readable([]byte(shown)), maxShown)
	return sdk.Errorf("oldString was not found in %s. The line most like its first one is\n%d: %s", rel, n, shown)
}

// numbers lists the lines of the places, the first ten of them.
func numbers(text []byte, places []place) string {
	var all []string
	for i, p := range places {
		if i == 10 {
			all = append(all, "…")
			break
		}
		all = append(all, strconv.Itoa(lineAt(text, p.start)))
	}
	return strings.Join(all, ", ")
}

// finish stores the content, remembers it and makes the result.
func (s *set) finish(call *sdk.Call, t *target, content []byte, what string) (*sdk.Result, error) {
	if len(content) > maxEdit {
		return nil, sdk.Errorf("%s would have %d bytes, more than the %d that can be written", t.rel, len(content), maxEdit)
	}
	sum, err := t.store(content)
	if err != nil {
		return nil, err
	}
	s.seen.put(call.Run, t.real, sum)
	data := fileData{Path: t.rel, Hash: sum.String(), Size: int64(len(content))}
	data.Diff, data.DiffCut = diff(t.rel, t.old, content)
	return &sdk.Result{
		Text:  fmt.Sprintf("%s; %s, %s", what, count(len(content), "byte"), sum),
		Title: t.rel, Metadata: data, Writes: true,
	}, nil
}

// diff compares two contents, unless they are too large to be looked at anyway.
func diff(rel string, before, after []byte) (text string, cut bool) {
	if len(before)+len(after) > maxDiffed {
		return "", true
	}
	text = udiff.Unified("a/"+rel, "b/"+rel, string(before), string(after))
	if len(text) > maxDiff {
		end := strings.LastIndexByte(text[:maxDiff], '\n') + 1
		return text[:end], true
	}
	return text, false
}
