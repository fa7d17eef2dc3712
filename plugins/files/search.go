package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"sync"
)

// maxScan is the largest file grep looks into.
const maxScan = 10 << 20

// errSkipped is why a file is not searched.
var errSkipped = errors.New("binary, or larger than 10 MiB: not searched")

// scan returns the matching lines of a file.
func (q *query) scan(ctx context.Context, f *os.File) ([]hit, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > maxScan {
		return nil, errSkipped
	}
	buf := q.buffers.Get().(*bytes.Buffer) //nolint:forcetypeassert // the pool holds nothing else
	defer q.buffers.Put(buf)
	buf.Reset()
	src := &ctxReader{ctx, f}
	// The first bytes decide before the rest is read.
	if _, err := io.CopyN(buf, src, sniffLen); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if binary(buf.Bytes()) {
		return nil, errSkipped
	}
	if _, err := buf.ReadFrom(io.LimitReader(src, maxScan)); err != nil {
		return nil, err
	}
	return q.search(ctx, bytes.TrimPrefix(buf.Bytes(), bom))
}

// job is a file to search; done is closed when hits is set.
type job struct {
	rel  string
	hits []hit
	done chan struct{}
}

// search searches the files beneath base, several at once, and adds the hits in the order
// of their paths. It ends when there is no room for more.
func search(ctx context.Context, w *workspace, base string, q *query, out *found) error {
	ctx, stop := context.WithCancel(ctx)
	workers := min(runtime.NumCPU(), 8)
	todo := make(chan *job, workers)
	order := make(chan *job, 8*workers)
	var wg sync.WaitGroup
	var files int
	var walkErr error
	wg.Go(func() {
		defer close(order)
		defer close(todo)
		files, walkErr = feed(ctx, w, base, q, todo, order)
	})
	for range workers {
		wg.Go(func() {
			for j := range todo {
				j.hits = w.scanNamed(ctx, j.rel, q)
				close(j.done)
			}
		})
	}
	full := collect(w, order, out, stop)
	wg.Wait()
	stop()
	if files >= manyFiles {
		processors.leave()
	}
	if full {
		return nil
	}
	return walkErr
}

// feed walks and hands every file to a worker and, in order, to the collector. With
// the file number manyFiles it enters processors; the caller leaves.
func feed(ctx context.Context, w *workspace, base string, q *query, todo, order chan<- *job) (files int, err error) {
	k := &walker{w: w, ignore: true, visit: func(rel string, e entry) error {
		if !e.mode.IsRegular() || slices.Contains(q.hidden, w.show(rel)) || !q.wants(base, rel) {
			return nil
		}
		if files++; files == manyFiles {
			processors.enter()
		}
		j := &job{rel: rel, done: make(chan struct{})}
		select {
		case todo <- j:
		case <-ctx.Done():
			return ctx.Err()
		}
		order <- j // the collector drains it to the end
		return nil
	}}
	err = k.walk(ctx, base)
	return files, err
}

// collect adds hits in order; when there is no room for more it calls stop and only
// drains.
func collect(w *workspace, order <-chan *job, out *found, stop func()) (full bool) {
	for j := range order {
		<-j.done
		if !full && errors.Is(out.add(w.show(j.rel), j.hits), fs.SkipAll) {
			full = true
			stop()
		}
	}
	return full
}

// scanNamed opens and scans a file; one that cannot be read has no hits.
func (w *workspace) scanNamed(ctx context.Context, rel string, q *query) []hit {
	f, _, err := openRegular(w.root, rel)
	if err != nil {
		return nil
	}
	defer f.Close()
	hits, err := q.scan(ctx, f)
	if err != nil {
		return nil
	}
	return hits
}
