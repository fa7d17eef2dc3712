package files

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"agentctl.dev/agentctl/plugins/sdk"
)

// maxNames bounds what is read of one folder.
const maxNames = 100_000

// entry is a name in a folder.
type entry struct {
	name string
	mode fs.FileMode
}

// shown is the name as a model sees it: a folder ends with a slash.
func (e entry) shown() string {
	if e.mode.IsDir() {
		return e.name + "/"
	}
	return e.name
}

// folder returns the entries of a folder, so sorted that a walk in this order
// meets paths in the order of their bytes.
func (w *workspace) folder(rel string) ([]entry, error) {
	f, err := w.root.OpenFile(rel, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []entry
	for len(all) < maxNames {
		part, err := f.ReadDir(1024)
		for _, d := range part {
			all = append(all, entry{d.Name(), d.Type()})
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.shown(), b.shown()) })
	return all, nil
}

// readFolder is read for a folder: its entries, in pages like lines.
func (w *workspace) readFolder(rel string, win window) (*sdk.Result, error) {
	all, err := w.folder(rel)
	if err != nil {
		return nil, w.fail("read", rel, err)
	}
	if win.first > len(all) && win.first > 1 {
		return nil, sdk.Errorf("offset %d is past the end of %s, which has %s", win.first, w.show(rel), count(len(all), "entry"))
	}
	if len(all) == 0 {
		return &sdk.Result{Title: w.show(rel), Text: "(empty folder)"}, nil
	}
	var b strings.Builder
	n := 0
	for _, e := range all[win.first-1:] {
		name := readable([]byte(e.shown()))
		if n == min(win.lines, maxLines-1) || b.Len()+len(name) > maxText-remark {
			b.WriteString("(entries " + strconv.Itoa(win.first) + "-" + strconv.Itoa(win.first+n-1) + " of " + strconv.Itoa(len(all)) + "; go on with offset " + strconv.Itoa(win.first+n) + ")")
			break
		}
		b.WriteString(name + "\n")
		n++
	}
	return &sdk.Result{Title: w.show(rel), Text: b.String(), Metadata: fileData{Path: w.show(rel)}}, nil
}
