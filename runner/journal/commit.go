package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// manyFiles is from where on one sync of the file system is cheaper than one
// per file.
const manyFiles = 64

// commit makes many callers share one fsync. Its fields belong to the Writer's mutex.
type commit struct {
	idle    *sync.Cond
	running bool
	// written counts what was handed to the system, durable what will survive.
	written, durable int64
	folders          []string
	files            []string
}

func (c *commit) init(mu *sync.Mutex) { c.idle = sync.NewCond(mu) }

func (c *commit) touch() { c.written++ }

func (c *commit) touchFolder(dir string) {
	if !slices.Contains(c.folders, dir) {
		c.folders = append(c.folders, dir)
	}
	c.written++
}

func (c *commit) touchFile(path string) {
	c.files = append(c.files, path)
	c.written++
}

// Sync returns when every event appended and every blob put before the call
// will survive a crash. Callers that come together share one fsync.
func (w *Writer) Sync() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := &w.commit
	for want := c.written; w.err == nil && c.durable < want; {
		if c.running {
			c.idle.Wait()
			continue
		}
		upTo, file, files, folders := c.written, w.file, c.files, c.folders
		head := anchor{Seq: w.seq, Hash: w.head, Open: true}
		c.files, c.folders, c.running = nil, nil, true
		w.mu.Unlock()
		err := w.syncAll(file, files, folders)
		if err == nil && head.Seq > w.vouched { // only the one that syncs touches it
			// Without it the head is older than it could be, which is normal.
			_ = w.follow(head)
			w.vouched = head.Seq
		}
		w.mu.Lock()
		c.running = false
		if err != nil {
			_ = w.poison(fmt.Errorf("run %q: sync journal: %w", w.opts.Run, err))
		} else {
			c.durable = upTo
		}
		c.idle.Broadcast()
	}
	return w.err
}

// syncAll makes blobs durable before the events that name them.
func (w *Writer) syncAll(events *os.File, files, folders []string) error {
	if len(files) > manyFiles {
		if err := syncFilesystem(filepath.Dir(files[0])); err != nil {
			return err
		}
		files = nil
	}
	// What events speak of is durable before they are.
	paths := slices.Concat(files, folders)
	errs := make([]error, len(paths))
	var wg sync.WaitGroup
	for i, path := range paths {
		wg.Go(func() { errs[i] = w.syncPath(path) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if events == nil {
		return nil
	}
	return w.opts.Sync(events)
}

func (w *Writer) syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	if err := w.opts.Sync(f); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
