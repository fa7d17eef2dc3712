package files

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"agentctl.dev/agentctl/plugins/sdk"
)

// maxEntries is how many entries list shows.
const maxEntries = 500

type listIn struct {
	Path  string `json:"path,omitempty" jsonschema:"default: the workspace"`
	Depth int    `json:"depth,omitempty" jsonschema:"levels, default 1"`
}

func (s *set) list(ctx context.Context, call *sdk.Call, in listIn) (*sdk.Result, error) {
	if in.Depth < 0 {
		return nil, sdk.Errorf("depth counts from 1")
	}
	w, rel, err := start(call, in.Path, "list")
	if err != nil {
		return nil, err
	}
	defer w.close()
	var b strings.Builder
	n, more := 0, 0
	k := &walker{w: w, depth: max(in.Depth, 1), all: true, visit: func(_ *folder, p string, e entry) error {
		if n == maxEntries {
			if more++; more > maxNames {
				return fs.SkipAll
			}
			return nil
		}
		n++
		name := p
		if rel != "." {
			name = strings.TrimPrefix(p, rel+"/")
		}
		b.WriteString(w.line(p, name, e))
		return nil
	}}
	if err := k.walk(ctx, rel); err != nil {
		return nil, w.fail("list", rel, err)
	}
	switch {
	case n == 0:
		b.WriteString("(empty folder)")
	case more > maxNames:
		fmt.Fprintf(&b, "(the first %d of more than %d entries; name a folder within, or use glob)", n, maxNames)
	case more > 0:
		fmt.Fprintf(&b, "(the first %d of %d entries; name a folder within, or use glob)", n, n+more)
	}
	return &sdk.Result{Title: w.show(rel), Text: b.String()}, nil
}

// line is one entry: a folder, a file with its size, a link with its target.
func (w *workspace) line(rel, name string, e entry) string {
	name = readable([]byte(name))
	switch {
	case e.mode.IsDir():
		return name + "/\n"
	case e.mode&fs.ModeSymlink != 0:
		target, err := w.root.Readlink(rel)
		if err != nil {
			target = "?"
		}
		return name + " -> " + readable([]byte(target)) + "\n"
	case !e.mode.IsRegular():
		return name + " (special file)\n"
	}
	info, err := w.root.Lstat(rel)
	if err != nil {
		return name + "\n"
	}
	return fmt.Sprintf("%s %d\n", name, info.Size())
}

// start resolves the folder in which a tool begins; "" is the workspace.
func start(call *sdk.Call, name, verb string) (*workspace, string, error) {
	if name == "" {
		name = "."
	}
	w, rel, err := openFor(call, name)
	if err != nil {
		return nil, "", err
	}
	info, err := w.root.Stat(rel)
	switch {
	case err != nil:
		err = w.fail(verb, rel, err)
	case !info.IsDir():
		err = sdk.Errorf("%s is a file: %s needs a folder", path.Clean(w.show(rel)), verb)
	}
	if err != nil {
		w.close()
		return nil, "", err
	}
	return w, rel, nil
}
