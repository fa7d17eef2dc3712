package files

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"agentctl.dev/agentctl/plugins/sdk"
	"agentctl.dev/agentctl/plugins/sdk/patch"
)

const aboutPatch = `Change several files at once, all or none. The text is
*** Begin Patch
*** Add File: PATH (each line with +)
*** Update File: PATH (then, to move it: *** Move to: PATH)
@@ optional line before the place
 context
-old
+new
*** Delete File: PATH
*** End Patch
Give about 3 lines of context around each place. The lines must be those of the file.`

type patchIn struct {
	Patch string `json:"patch"`
}

// patchData is the metadata of a patch.
type patchData struct {
	Files []patchedFile `json:"files"`
}

// patchedFile is a file that a patch has changed.
type patchedFile struct {
	fileData
	// Kind is add, update, delete or move; From is where a moved file was.
	Kind string `json:"kind"`
	From string `json:"from,omitempty"`
}

// patch reads all of a patch, computes every file, and only then changes any.
func (s *set) patch(ctx context.Context, call *sdk.Call, in patchIn) (*sdk.Result, error) {
	changes, err := patch.Parse(in.Patch)
	if err != nil {
		return nil, sdk.Errorf("%w; nothing was changed", err)
	}
	w, err := openWorkspace(call.Workspace)
	if err != nil {
		return nil, err
	}
	defer w.close()
	// One patch at a time holds the locks of several files, so that no two wait for each other.
	done, err := s.locks.acquire(ctx, "patch")
	if err != nil {
		return nil, err
	}
	defer done()
	b := &batch{w: w, between: s.between}
	defer b.close()
	data := patchData{}
	var said []string
	for i := range changes {
		f, what, err := s.prepare(ctx, b, &changes[i])
		if err != nil {
			return nil, b.abandon(err)
		}
		data.Files, said = append(data.Files, f), append(said, what)
	}
	if err := ctx.Err(); err != nil {
		return nil, b.abandon(err)
	}
	if err := b.commit(); err != nil {
		return nil, b.abandon(err)
	}
	left := maxDiff
	for i := range data.Files {
		f := &data.Files[i]
		if sum, ok := parseDigest(f.Hash); ok {
			s.seen.put(call.Run, path.Join(w.real, f.Path), sum)
		}
		if left -= len(f.Diff); left < 0 {
			f.Diff, f.DiffCut = "", true
		}
	}
	return &sdk.Result{Text: strings.Join(said, "\n"), Title: titleOf(data.Files), Metadata: data, Writes: true}, nil
}

func titleOf(files []patchedFile) string {
	if len(files) == 1 {
		return files[0].Path
	}
	return count(len(files), "file")
}

// prepare finds the files of a change and computes what they will hold. Only folders
// that are missing are made; the batch removes them again where the patch fails.
func (s *set) prepare(ctx context.Context, b *batch, c *patch.Change) (f patchedFile, what string, err error) {
	f.Kind, f.Path = string(c.Kind), c.Path
	if c.Kind == patch.Add {
		t, err := s.fresh(ctx, b, c.Path, nil)
		if err != nil {
			return f, "", err
		}
		content := []byte(c.Content)
		b.put(t, content)
		f.record(t, nil, content)
		return f, fmt.Sprintf("added %s (%s)", t.rel, count(bytes.Count(content, []byte{'\n'}), "line")), nil
	}
	moved := c.Kind == patch.Delete || len(c.Hunks) == 0
	t, err := s.present(ctx, b, c.Path, moved)
	if err != nil {
		return f, "", err
	}
	if c.Kind == patch.Delete {
		b.remove(t)
		f.Path = t.rel
		f.Diff, f.DiffCut = diff(t.rel, t.old, nil)
		return f, "deleted " + t.rel, nil
	}
	content, err := applied(t, c.Hunks)
	if err != nil {
		return f, "", err
	}
	if c.MoveTo == "" {
		b.put(t, content)
		f.record(t, t.old, content)
		return f, fmt.Sprintf("updated %s (%s)", t.rel, count(len(c.Hunks), "place")), nil
	}
	to, err := s.fresh(ctx, b, c.MoveTo, t.info)
	if err != nil {
		return f, "", err
	}
	b.put(to, content)
	b.remove(t)
	f.Kind, f.From = "move", t.rel
	f.record(to, t.old, content)
	return f, fmt.Sprintf("moved %s to %s", t.rel, to.rel), nil
}

func (f *patchedFile) record(t *target, old, content []byte) {
	sum := sumOf(content)
	f.Path, f.Hash, f.Size = t.rel, sum.String(), int64(len(content))
	f.Diff, f.DiffCut = diff(t.rel, old, content)
}

// present is a file that is there. A patch goes through no symlink: it was judged for
// the paths that it names.
func (s *set) present(ctx context.Context, b *batch, name string, raw bool) (*target, error) {
	rel, err := b.w.rel(name)
	if err != nil {
		return nil, err
	}
	return b.hold(ctx, s, &target{w: b.w, at: rel, rel: rel, raw: raw}, false)
}

// fresh is a file that is not there yet; its folders are made.
func (s *set) fresh(ctx context.Context, b *batch, name string, like fs.FileInfo) (*target, error) {
	rel, err := b.w.rel(name)
	if err != nil {
		return nil, err
	}
	if rel == "." || strings.HasSuffix(name, "/") {
		return nil, sdk.Errorf("%s names a folder: a patch makes files, and their folders with them", name)
	}
	if inGit(rel) {
		return nil, (&target{rel: rel}).refuseGit()
	}
	if err := b.makeFolders(path.Dir(rel)); err != nil {
		return nil, err
	}
	if _, err := b.w.root.Lstat(rel); err == nil {
		return nil, sdk.Errorf("%s exists: use *** Update File, or delete it first", rel)
	}
	return b.hold(ctx, s, &target{w: b.w, at: rel, rel: rel, like: like}, true)
}

// applied is the content of a file with all hunks applied, in their order.
func applied(t *target, hunks []patch.Hunk) ([]byte, error) {
	if len(hunks) == 0 {
		return t.old, nil
	}
	text, marked := bytes.CutPrefix(t.old, bom)
	text = slices.Clone(text)
	from := 0
	for i := range hunks {
		p, err := placeOf(t.rel, text, from, &hunks[i])
		if err != nil {
			return nil, err
		}
		from = p.start + len(p.with)
		text = replace(text, []place{p})
	}
	if marked {
		text = append(bom[:len(bom):len(bom)], text...)
	}
	if len(text) > maxEdit {
		return nil, sdk.Errorf("%s would have %d bytes, more than the %d that can be written", t.rel, len(text), maxEdit)
	}
	return text, nil
}

// placeOf finds the one place of a hunk behind an offset. Behind the lines of @@ the
// first place counts; without them it must be the only one.
func placeOf(rel string, text []byte, from int, h *patch.Hunk) (place, error) {
	where := fmt.Sprintf("%s, hunk at line %d of the patch", rel, h.Number)
	for _, at := range h.At {
		next, ok := behind(text, from, at)
		if !ok {
			return place{}, sdk.Errorf("%s: no line %q%s", where, at, after(text, from))
		}
		from = next
	}
	old, fresh := h.Old(), h.New()
	if old == "" {
		switch {
		case h.AtEnd || from == 0 && len(text) == 0:
			return appended(text, fresh), nil
		case len(h.At) > 0:
			return place{from, from, []byte(withEnds(fresh, lineEnd(text)))}, nil
		}
		return place{}, sdk.Errorf("%s: it only adds lines, and does not say where: add lines of context, an @@ line or *** End of File", where)
	}
	places := candidates(text, from, old, fresh)
	if h.AtEnd {
		places = slices.DeleteFunc(places, func(p place) bool { return len(bytes.TrimRight(text[p.end:], "\r\n")) > 0 })
	}
	switch {
	case len(places) == 0:
		return place{}, sdk.Errorf("%s: the lines to change were not found%s; they must be those of the file, context included: read it again", where, after(text, from))
	case len(places) > 1 && len(h.At) == 0 && !h.AtEnd:
		return place{}, sdk.Errorf("%s: the lines to change stand %d times in the file, at lines %s: add context, or an @@ line before them", where, len(places), numbers(text, places))
	}
	return places[0], nil
}

// after names the line of a file behind which something was looked for.
func after(text []byte, from int) string {
	if from == 0 {
		return ""
	}
	return fmt.Sprintf(" after line %d of the file", lineAt(text, from)-1)
}

// candidates are the places of whole lines that equal old, by the first rule that finds
// any. A file may end without a line end.
func candidates(text []byte, from int, old, fresh string) []place {
	rest := text[from:]
	for _, closed := range []bool{true, false} {
		if !closed {
			old, fresh = strings.TrimSuffix(old, "\n"), strings.TrimSuffix(fresh, "\n")
		}
		_, found := find(rest, old, fresh)
		found = slices.DeleteFunc(found, func(p place) bool {
			begins := p.start == 0 || rest[p.start-1] == '\n'
			return !begins || !closed && p.end != len(rest)
		})
		for i := range found {
			found[i].start, found[i].end = found[i].start+from, found[i].end+from
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// behind is the offset after the first line that equals text, blanks around it left out.
func behind(text []byte, from int, want string) (int, bool) {
	for _, l := range linesOf(text[from:]) {
		if strings.TrimSpace(l.text) == strings.TrimSpace(want) {
			return from + l.next, true
		}
	}
	return 0, false
}

// appended adds lines to the end of a text, which gets a line end first.
func appended(text []byte, lines string) place {
	eol := lineEnd(text)
	if len(text) > 0 && text[len(text)-1] != '\n' {
		lines = "\n" + lines
	}
	return place{len(text), len(text), []byte(withEnds(lines, eol))}
}
