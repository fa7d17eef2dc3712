package shell

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"agentctl.dev/agentctl/plugins/sdk"
)

// folder is where a command runs.
type folder struct {
	path string
	// open is the folder itself where it was approved for this call: it is entered
	// by its descriptor, so that a link that takes its place changes nothing.
	open *os.File
}

func (f *folder) outside() bool { return f.open != nil }

// enter is the path by which a process gets there.
func (f *folder) enter() string {
	if f.open != nil {
		return fmt.Sprintf("/proc/self/fd/%d", f.open.Fd())
	}
	return f.path
}

func (f *folder) close() {
	if f.open != nil {
		_ = f.open.Close()
	}
}

// workdir returns the folder to run in, which is in the workspace also when links
// are followed, or was approved for this call.
func workdir(call *sdk.Call, name string) (*folder, error) {
	if p, ok := call.Approved(name); ok {
		return approved(p)
	}
	return within(call, "workdir", name, "name a folder within it, or one that the policy or a person allows by name")
}

// within returns a folder of the workspace that an argument names; "" is the workspace.
// remedy is what to do about a folder outside.
func within(call *sdk.Call, argument, name, remedy string) (*folder, error) {
	if !filepath.IsAbs(call.Workspace) {
		return nil, sdk.Errorf("this call has no workspace (got %q): commands run in a workspace", call.Workspace)
	}
	root, err := filepath.EvalSymlinks(call.Workspace)
	if err != nil {
		return nil, sdk.Errorf("open the workspace: %w", err)
	}
	if name == "" {
		return &folder{path: root}, nil
	}
	dir := name
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(call.Workspace, dir)
	}
	at, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, sdk.Errorf("%s %s does not exist", argument, name)
	}
	if err != nil {
		return nil, sdk.Errorf("%s %s: %w", argument, name, err)
	}
	if at != root && !strings.HasPrefix(at, strings.TrimSuffix(root, "/")+"/") {
		return nil, sdk.Errorf("%s %s is outside the workspace %s (external_directory): %s", argument, name, call.Workspace, remedy)
	}
	if info, err := os.Stat(at); err != nil || !info.IsDir() {
		return nil, sdk.Errorf("%s %s is not a folder", argument, name)
	}
	return &folder{path: at}, nil
}

// approved opens a folder outside the workspace. Its path has no links: the kernel's path
// of the open folder shows whether that is still true.
func approved(p sdk.OutsidePath) (*folder, error) {
	f, err := os.OpenFile(p.Path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, sdk.Errorf("workdir %s does not exist", p.Name)
	case errors.Is(err, syscall.ENOTDIR):
		return nil, sdk.Errorf("workdir %s is not a folder", p.Name)
	case err != nil:
		return nil, sdk.Errorf("workdir %s: %w", p.Name, err)
	}
	dir := &folder{p.Path, f}
	if at, err := os.Readlink(dir.enter()); err != nil || at != p.Path {
		dir.close()
		return nil, sdk.Errorf("workdir %s was replaced by a link, or is behind one, since the call was approved", p.Name)
	}
	return dir, nil
}
