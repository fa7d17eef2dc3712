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

// editSchema is written by hand: newString may be absent, but not null.
const editSchema = `{"type":"object","properties":{"path":{"type":"string"},"oldString":{"type":"string"},"newString":{"type":"string"},"replaceAll":{"type":"boolean"},` +
	`"edits":{"type":"array","maxItems":100,"description":"several replacements in this order, all or none, instead of oldString and newString",` +
	`"items":{"type":"object","properties":{"oldString":{"type":"string"},"newString":{"type":"string"},"replaceAll":{"type":"boolean"}},` +
	`"required":["oldString","newString"],"additionalProperties":false}}},"required":["path"],"additionalProperties":false}`

type editIn struct {
	Path       string  `json:"path"`
	OldString  string  `json:"oldString,omitempty"`
	NewString  *string `json:"newString,omitempty"`
	ReplaceAll bool    `json:"replaceAll,omitempty"`
	Edits      []edit  `json:"edits,omitempty"`
}

// edit is one replacement.
type edit struct {
	OldString  string `json:"oldString"`
	NewString  string `json:"newString"`
	ReplaceAll bool   `json:"replaceAll,omitempty"`
}

// all are the replacements of a call.
func (in *editIn) all() ([]edit, error) {
	one := edit{OldString: in.OldString, ReplaceAll: in.ReplaceAll}
	switch {
	case len(in.Edits) == 0 && in.NewString == nil:
		return nil, sdk.Errorf("newString is missing: it may be empty, but has to be given")
	case len(in.Edits) == 0:
		one.NewString = *in.NewString
		return []edit{one}, one.check()
	case one != edit{} || in.NewString != nil:
		return nil, sdk.Errorf("give either oldString and newString or edits, not both")
	}
	for i := range in.Edits {
		if err := in.Edits[i].check(); err != nil {
			return nil, sdk.Errorf("edit %d: %w", i+1, err)
		}
	}
	return in.Edits, nil
}

func (e *edit) check() error {
	switch {
	case e.OldString == "":
		return sdk.Errorf("oldString is empty: quote the text to replace; use write to make a file or to replace all of it")
	case e.OldString == e.NewString:
		return sdk.Errorf("oldString and newString are equal: nothing to change")
	}
	return nil
}

func (s *set) edit(ctx context.Context, call *sdk.Call, in editIn) (*sdk.Result, error) {
	edits, err := in.all()
	if err != nil {
		return nil, err
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
	said := make([]string, len(edits))
	for i := range edits {
		e := &edits[i]
		how, places := find(text, strings.TrimPrefix(e.OldString, string(bom)), strings.TrimPrefix(e.NewString, string(bom)))
		if err := unique(t.rel, text, e, places); err != nil {
			if len(in.Edits) > 0 {
				err = sdk.Errorf("edit %d: %w; nothing was changed", i+1, err)
			}
			return nil, err
		}
		said[i] = fmt.Sprintf("%s at line %s (%s)", count(len(places), "replacement"), numbers(text, places), how)
		if text = replace(text, places); len(text) > maxEdit {
			break // finish refuses it
		}
	}
	if marked {
		text = append(bom[:len(bom):len(bom)], text...)
	}
	return s.finish(call, t, text, "edited "+t.rel+": "+strings.Join(said, ", "))
}

// unique refuses a replacement whose place is not certain.
func unique(rel string, text []byte, in *edit, places []place) error {
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
