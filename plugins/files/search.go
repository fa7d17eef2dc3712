package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"runtime"
	"slices"
	"sync"
)

// maxScan is the largest file grep looks into.
const maxScan = 10 << 20

// errSkipped is why a file is not searched.
var errSkipped = errors.New("binary, or larger than 10 MiB: not searched")

// stretch is how much of a file is read and searched at a time, if its lines are not longer.
const stretch = 256 << 10

// scan returns the matching lines of a file of some size, at most one more than are shown.
// Of a file without a size, as the kernel makes some, it reads what there is.
func (s *scanner) scan(ctx context.Context, f io.Reader, size int64) ([]hit, error) {
	limit := maxScan
	if size > 0 {
		limit = int(min(size, maxScan))
	}
	if s.buffer == nil {
		s.buffer = make([]byte, stretch)
	}
	var all []hit
	have, read, line := 0, 0, 0 // have is what the buffer holds of an unfinished line
	for len(all) <= maxFound {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n, err := io.ReadFull(f, s.buffer[have:min(len(s.buffer), have+limit-read)])
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || read+n == limit
		if err != nil && !last {
			return nil, err
		}
		text := s.buffer[:have+n]
		if read == 0 {
			// The first bytes decide whether the file is searched.
			if binary(text[:min(len(text), sniffLen)]) {
				return nil, errSkipped
			}
			text = bytes.TrimPrefix(text, bom)
		}
		read += n
		whole := text
		if !last {
			whole = text[:bytes.LastIndexByte(text, '\n')+1]
		}
		for _, h := range s.hits(whole, maxFound+1-len(all)) {
			h.line += line
			all = append(all, h)
		}
		if last {
			break
		}
		line += bytes.Count(whole, []byte{'\n'})
		if have = copy(s.buffer, text[len(whole):]); have == len(s.buffer) {
			s.buffer = append(s.buffer, make([]byte, len(s.buffer))...)
		}
	}
	return all, nil
}

// maxWaiting is how many files wait for a worker; each keeps its folder open.
const maxWaiting = 64

// job is a file to search; done is closed when hits is set.
type job struct {
	in   *folder
	name string
	rel  string
	hits []hit
	done chan struct{}
}

// search searches the files beneath base, several at once, and adds the hits in the order
// of their paths. It ends when there is no room for more.
func search(ctx context.Context, w *workspace, base string, q *query, out *found) error {
	ctx, stop := context.WithCancel(ctx)
	workers := min(runtime.NumCPU(), 8)
	todo := make(chan *job, maxWaiting)
	order := make(chan *job, 8*maxWaiting)
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
			s := q.scanner()
			for j := range todo {
				j.hits = s.scanIn(ctx, j.in, j.name)
				j.in.release()
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
	k := &walker{w: w, ignore: true, visit: func(in *folder, rel string, e entry) error {
		if !e.mode.IsRegular() || slices.Contains(q.hidden, w.show(rel)) || !q.wants(base, rel) {
			return nil
		}
		if files++; files == manyFiles {
			processors.enter()
		}
		j := &job{in: in.keep(), name: e.name, rel: rel, done: make(chan struct{})}
		select {
		case todo <- j:
		case <-ctx.Done():
			in.release()
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

// scanIn opens and scans a file; one that cannot be read has no hits.
func (s *scanner) scanIn(ctx context.Context, in *folder, name string) []hit {
	f, err := in.regular(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	if f.size > maxScan {
		return nil
	}
	hits, err := s.scan(ctx, f, f.size)
	if err != nil {
		return nil
	}
	return hits
}
