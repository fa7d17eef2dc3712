package manifest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"agentctl.dev/agentctl/api/reason"
)

// StdinName is how standard input is called in positions.
const StdinName = "<stdin>"

// source is the text of one file.
type source struct {
	name string
	// dir is the folder that relative paths of the manifest start from.
	dir  string
	data []byte
	// files are those that data was built from.
	files []string
}

// open reads what a path names: a file, the manifests of a folder, a kustomization,
// or stdin.
func open(ctx context.Context, path string, stdin io.Reader) ([]source, Findings) {
	if path == "-" {
		return openStdin(ctx, stdin)
	}
	info, err := os.Stat(path)
	if scheme, _, ok := strings.Cut(path, "://"); err != nil && ok && (scheme == "https" || scheme == "http") {
		return nil, Findings{fileError(path, "manifests are read from files, folders and stdin, not from the network").
			With("fetch it and look at it first, for example: curl -fsSLO " + path)}
	}
	if err != nil {
		return nil, Findings{fileError(path, "%s", plain(err)).With(nearby(path))}
	}
	if !info.IsDir() {
		src, err := readFile(path, info)
		if err != nil {
			return nil, Findings{fileError(path, "%s", plain(err))}
		}
		return []source{src}, nil
	}
	if Kustomized(path) {
		return openKustomization(ctx, path)
	}
	return openFolder(path)
}

func openKustomization(ctx context.Context, path string) ([]source, Findings) {
	text, files, found := buildKustomization(ctx, path)
	if len(found) > 0 {
		return nil, found
	}
	dir, err := filepath.Abs(path)
	if err != nil {
		return nil, Findings{fileError(path, "%s", plain(err))}
	}
	return []source{{name: path + " (kustomize)", dir: dir, data: text, files: files}}, nil
}

func openFolder(dir string) ([]source, Findings) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, Findings{fileError(dir, "%s", plain(err))}
	}
	var sources []source
	var found Findings
	seen, folders := 0, 0
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || !manifestName(e.Name()) {
			if e.IsDir() {
				folders++
			}
			continue
		}
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path)
		if err == nil && info.IsDir() {
			folders++
			continue
		}
		seen++
		if err == nil {
			var src source
			if src, err = readFile(path, info); err == nil {
				sources = append(sources, src)
				continue
			}
		}
		found = append(found, fileError(path, "%s", plain(err)))
	}
	if seen == 0 {
		f := fileError(dir, "the folder holds no manifest: no file ends in .yaml, .yml or .json")
		if folders > 0 {
			f.Suggestion = "sub folders are not searched: name the one that is meant; apply, diff and delete search all of them with -R"
		}
		found = append(found, f)
	}
	return sources, found
}

func manifestName(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(name)))
}

// readFile reads a regular file. Anything else is refused before it is opened:
// opening a FIFO waits for a writer, opening a device may have effects.
func readFile(path string, info fs.FileInfo) (source, error) {
	if err := regular(info); err != nil {
		return source{}, err
	}
	// O_NONBLOCK: the name may have become a FIFO since it was looked at.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return source{}, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return source{}, err
	}
	if err := regular(info); err != nil {
		return source{}, err
	}
	data, err := readLimited(f, int(min(info.Size(), MaxFile))+bytes.MinRead)
	if err != nil {
		return source{}, err
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return source{}, err
	}
	return source{name: path, dir: dir, data: data}, nil
}

func regular(info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode&fs.ModeNamedPipe != 0:
		return errors.New("is a named pipe, not a file: use -f - to read a manifest from standard input")
	case mode&fs.ModeSocket != 0:
		return errors.New("is a socket, not a file")
	case mode&fs.ModeDevice != 0:
		return errors.New("is a device, not a file: use -f - to read a manifest from standard input")
	default:
		return errors.New("is not a regular file")
	}
}

func readLimited(r io.Reader, hint int) ([]byte, error) {
	var buf bytes.Buffer
	buf.Grow(hint)
	n, err := io.Copy(&buf, io.LimitReader(r, MaxFile+1))
	if err != nil {
		return nil, err
	}
	if n > MaxFile {
		return nil, fmt.Errorf("is larger than %d MiB", MaxFile>>20)
	}
	return buf.Bytes(), nil
}

func openStdin(ctx context.Context, stdin io.Reader) ([]source, Findings) {
	if stdin == nil {
		return nil, Findings{fileError(StdinName, "there is no standard input to read")}
	}
	// A pipe whose writer never ends must not outlive the caller's deadline.
	if d, ok := stdin.(interface{ SetReadDeadline(time.Time) error }); ok {
		stop := context.AfterFunc(ctx, func() { _ = d.SetReadDeadline(time.Unix(1, 0)) })
		defer stop()
	}
	data, err := readLimited(stdin, 4096)
	if err != nil {
		return nil, Findings{fileError(StdinName, "%s", plain(err))}
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, Findings{fileError(StdinName, "%s", plain(err))}
	}
	return []source{{name: StdinName, dir: dir, data: data}}, nil
}

// plain drops the operation and the path that package os puts before a cause: the position
// names the file already.
func plain(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}

// nearby finds a file whose name is close to one that does not exist.
func nearby(path string) string {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) > 1000 {
		return ""
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if n := reason.Nearest(filepath.Base(path), names); n != "" {
		return DidYouMean(filepath.Join(filepath.Dir(path), n))
	}
	return ""
}
