package policy

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/expr"
	"agentctl.dev/agentctl/runner/policy/shell"
)

// A command that unpacks an archive or applies a patch changes files that its arguments do
// not name (shell.Rewrite):
//
//	the names are                  the call is judged as one that
//	in a file that can be read     writes these files
//	only known when it runs        may write each file in the folder that a rule denies to
//	                               write: it is asked about where there is one
//
// A link that is made by it may be followed by another command of the script: where that
// leads is not known.

// Limits of an archive or a patch that is read when a call is judged.
const (
	unpackSize  = 16 << 20
	unpackBytes = 64 << 20
	unpackNames = 2000
)

// packed are the names that an archive or a patch holds.
type packed struct {
	names   []string
	removed []string
	// links: some are links.
	links bool
}

var errPacked = errors.New("it cannot be read as an archive or a patch, or is too large")

// unpacked adds the paths that a script's archives and patches name.
func (w Workspace) unpacked(f *facts) {
	for _, r := range f.script.Rewrites {
		p, err := w.packed(f, r)
		if err != nil {
			f.rewrites = append(f.rewrites, r)
		}
		if f.script.Follows && !r.Tracked && (err != nil || p.links) {
			f.doubt("the script may follow a link that it unpacks")
		}
		dir := strings.TrimPrefix(f.script.Joined(r.Dir)+"/", "./")
		for _, name := range p.names {
			f.add(w.resolve(dir+name, opWrite))
		}
		for _, name := range p.removed {
			f.add(w.resolve(dir+name, opDelete))
		}
	}
}

// packed reads the names of the files that a command makes.
func (w Workspace) packed(f *facts, r shell.Rewrite) (packed, error) {
	if r.From == "" {
		return packed{}, errPacked
	}
	at := w.resolve(f.script.Joined(r.From), opRead)
	if !at.InWorkspace || at.Real == shell.Unknown || w.isTemporary(at.Clean) || slices.Contains(f.script.Writes, r.From) {
		return packed{}, errPacked
	}
	file, err := openRegular(at.Real)
	if err != nil {
		return packed{}, errPacked
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, unpackSize+1))
	if err != nil || len(b) > unpackSize {
		return packed{}, errPacked
	}
	p, err := namesIn(b, r.Strip)
	if err != nil || len(p.names) > unpackNames {
		return packed{}, errPacked
	}
	return p, nil
}

// namesIn reads a zip or tar archive, or a patch.
func namesIn(b []byte, strip int) (packed, error) {
	switch {
	case bytes.HasPrefix(b, []byte("PK\x03\x04")):
		return namesInZip(b)
	case bytes.HasPrefix(b, []byte("\x1f\x8b")):
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return packed{}, errPacked
		}
		return namesInTar(z, strip)
	case bytes.HasPrefix(b, []byte("BZh")):
		return namesInTar(bzip2.NewReader(bytes.NewReader(b)), strip)
	case len(b) > 262 && string(b[257:262]) == "ustar":
		return namesInTar(bytes.NewReader(b), strip)
	}
	return namesInPatch(b, strip)
}

func namesInZip(b []byte) (p packed, err error) {
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return p, errPacked
	}
	for _, f := range z.File {
		p.names = append(p.names, stripped(f.Name, 0))
		p.links = p.links || f.Mode()&os.ModeSymlink != 0
	}
	return p, nil
}

func namesInTar(r io.Reader, strip int) (p packed, err error) {
	bounded := &io.LimitedReader{R: r, N: unpackBytes}
	t := tar.NewReader(bounded)
	for len(p.names) <= unpackNames {
		h, err := t.Next()
		switch {
		case errors.Is(err, io.EOF) && bounded.N > 0:
			return p, nil
		case err != nil:
			return p, errPacked
		}
		if name := stripped(h.Name, strip); name != "" {
			p.names = append(p.names, name)
			p.links = p.links || h.Typeflag == tar.TypeSymlink || h.Typeflag == tar.TypeLink
		}
	}
	return p, errPacked
}

// namesInPatch reads the headers of a unified diff, with those that git adds.
func namesInPatch(b []byte, strip int) (p packed, err error) {
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, 1<<20)
	old := ""
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "--- "):
			old = patchName(line[4:])
		case strings.HasPrefix(line, "+++ "):
			name := patchName(line[4:])
			if name == "" || old == "" {
				return p, errPacked // a quoted name
			}
			if name == "/dev/null" {
				p.removed = append(p.removed, stripped(old, strip))
				name = old
			}
			for _, n := range []string{name, old} {
				if n != "/dev/null" {
					p.names = append(p.names, stripped(n, strip))
				}
			}
		case strings.HasPrefix(line, "rename "), strings.HasPrefix(line, "copy "), strings.HasPrefix(line, "GIT binary patch"), strings.HasPrefix(line, "Binary files "), strings.HasPrefix(line, "*** "),
			strings.HasPrefix(line, "Index: "), strings.HasPrefix(line, "Prereq: "), strings.HasPrefix(line, "old mode "), strings.HasPrefix(line, "new mode "):
			return p, errPacked // names in other places, or in another format
		case strings.HasPrefix(line, "new file mode "), strings.HasPrefix(line, "deleted file mode "), strings.HasPrefix(line, "index "):
			switch mode := line[strings.LastIndexByte(line, ' ')+1:]; {
			case strings.HasPrefix(mode, "120"):
				p.links = true
			case strings.HasPrefix(mode, "160"): // a repository of its own
				return p, errPacked
			}
		}
	}
	if lines.Err() != nil || len(p.names) == 0 || slices.Contains(p.names, "") {
		return p, errPacked
	}
	return p, nil
}

// patchName is the name in a header of a patch; "" if it is quoted.
func patchName(text string) string {
	name, _, _ := strings.Cut(strings.TrimRight(text, "\r"), "\t")
	if strings.HasPrefix(name, `"`) {
		return ""
	}
	return strings.TrimRight(name, " ")
}

// stripped is a name as it is made below a folder, without its first elements.
func stripped(name string, strip int) string {
	name = strings.TrimLeft(name, "/")
	for strip > 0 {
		_, rest, ok := strings.Cut(name, "/")
		if !ok {
			return ""
		}
		name, strip = strings.TrimLeft(rest, "/"), strip-1
	}
	return name
}

// reachRewritten asks about a call that may write a file which must not be written.
func (e *Engine) reachRewritten(ctx context.Context, j *judged, in *input, stricter func(outcome, string)) {
	for _, r := range in.facts.rewrites {
		paths, whole := e.rewritable(in.facts, r)
		if name, by := j.deniesWriting(ctx, in, paths); name != "" {
			stricter(outcome{action: v1alpha1.ActionAsk, rule: by, message: "it may change " + name + ", which " + by + " denies"}, "")
			return
		}
		if !whole && !j.tool.OwnTemporary { // in a sandbox, what must not be written is read-only
			stricter(outcome{action: v1alpha1.ActionAsk, rule: "default/folder", message: r.Dir + ": it holds too many files to judge each of them, and rules speak of single files"}, "")
		}
	}
}

// rewritable are the files that a command may change, as far as they are there.
func (e *Engine) rewritable(f *facts, r shell.Rewrite) (paths []Path, whole bool) {
	w := e.context.Workspace
	if r.Tracked {
		repo, ok := w.repository(f, shell.Repository{Dir: r.Dir})
		if !ok {
			return nil, true
		}
		names, err := readIndex(repo.index)
		if err != nil {
			return nil, errors.Is(err, os.ErrNotExist)
		}
		root, realRoot := filepath.Clean(w.Root), realPath(filepath.Clean(w.Root))
		for _, name := range names {
			if p := trackedPath(path.Join(repo.tree, name), root, realRoot); p.InWorkspace {
				p.Op = opWrite
				paths = append(paths, p)
			}
		}
		return paths, true
	}
	names, unknown := w.within(f, r.Dir)
	for _, name := range names {
		paths = append(paths, w.resolve(name, opWrite))
	}
	return paths, unknown == ""
}

// deniesWriting finds a file that a rule or a list of entries denies to write.
func (j *judged) deniesWriting(ctx context.Context, in *input, paths []Path) (name, by string) {
	for _, c := range j.enforced.lists {
		for i := range paths {
			if c.onPath([]string{"edit"}, &paths[i], in.facts.root) == v1alpha1.ActionDeny {
				return paths[i].Raw, c.name + "/permissions"
			}
		}
	}
	for _, r := range j.enforced.calls[v1alpha1.ActionDeny] {
		if !r.paths || r.when == nil || r.negated {
			continue
		}
		some := 1
		if r.when.Spreads("paths") {
			some = together
		}
		if t, err := r.truth(ctx, in.on()); err == nil && t == expr.True {
			continue // whatever the files are
		}
		for chunk := range slices.Chunk(paths, some) {
			if t, err := r.truth(ctx, in.on(chunk...)); err != nil || t != expr.True {
				continue
			}
			for _, p := range chunk {
				if t, err := r.truth(ctx, in.on(p)); err == nil && t == expr.True {
					return p.Raw, r.id
				}
			}
		}
	}
	return "", ""
}
