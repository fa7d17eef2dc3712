package files

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"agentctl.dev/agentctl/plugins/sdk"
)

// openFor opens the folder in which a call finds what it names, and returns the
// name in it: the workspace, or, for a path outside that was approved for this
// call, that folder, or the folder of that file. The tools see nothing outside the
// workspace but exactly what was approved, also where nothing contains them.
func openFor(call *sdk.Call, name string) (*workspace, string, error) {
	if p, ok := call.Approved(name); ok {
		return openOutside(p)
	}
	w, err := openWorkspace(call.Workspace)
	if err != nil {
		return nil, "", err
	}
	rel, err := w.rel(name)
	if err != nil {
		w.close()
		return nil, "", err
	}
	return w, rel, nil
}

func openOutside(p sdk.OutsidePath) (*workspace, string, error) {
	info, err := os.Lstat(p.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "", sdk.Errorf("%s does not exist", p.Name)
	case err != nil:
		return nil, "", sdk.Errorf("open %s: %w", p.Name, err)
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, "", replaced(p.Name)
	}
	w := &workspace{dir: p.Path, approved: true, writable: p.Writable}
	rel := "."
	if !info.IsDir() {
		w.dir, w.only = path.Dir(p.Path), path.Base(p.Path)
		rel = w.only
	}
	if w.root, err = os.OpenRoot(w.dir); err != nil {
		return nil, "", sdk.Errorf("open %s: %w", p.Name, err)
	}
	// Ask the kernel for the path of the folder: a link on the way leads to another one.
	if w.real, err = realPath(w.root); err == nil && w.real != w.dir {
		err = replaced(p.Name)
	}
	if err != nil {
		w.close()
		return nil, "", err
	}
	return w, rel, nil
}

// replaced is the refusal of a path that is not what was approved.
func replaced(name string) error {
	return sdk.Errorf("%s was replaced by a link, or is behind one, since the call was approved", name)
}

// show is a name below the root as the model reads it: relative to the workspace,
// or absolute for what is outside.
func (w *workspace) show(rel string) string {
	if w.approved {
		return path.Join(w.real, rel)
	}
	return rel
}

// confirm refuses an open file that is not the one that was approved.
func (w *workspace) confirm(f *os.File) error {
	if w.only == "" {
		return nil
	}
	at, err := realFile(f)
	if err == nil && at != path.Join(w.real, w.only) {
		err = replaced(w.show(w.only))
	}
	return err
}
