package coder

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// longestLine is the longest line that is read as an event. Longer ones are in the log only.
const longestLine = 8 << 20

// mostErrors is how much is kept of stderr.
const mostErrors = 4 << 20

// Run executes a program to its end. An error means that it could not be started; how it
// ended is in what it returns. When ctx ends, the program is ended, too.
func Run(ctx context.Context, j Job) (*Ended, error) {
	began := time.Now()
	out := newOutput(j.Limits.Log, j.Driver.Read(), j.Progress)
	errs := &stderr{}
	p, err := j.Launch(ctx, j.Driver.Start(j.Task), out, errs)
	if err != nil {
		return nil, err
	}
	cut := wait(ctx, p, j.Limits, out)
	e := &Ended{Exit: p.Wait(), Took: time.Since(began)}
	e.Said, e.Stdout = out.end()
	e.Stderr = errs.end()
	refused := ""
	if j.Refused != nil {
		refused = j.Refused()
	}
	e.judge(cut, refused, j.Limits)
	return e, nil
}

// cut is why a program was ended before its time.
type cut string

// The causes.
const (
	notCut    cut = ""
	wallOver  cut = "timeout"
	silent    cut = "silent"
	flooded   cut = "output"
	cancelled cut = "cancelled"
)

// wait waits for the end of a program, and ends it at a limit.
func wait(ctx context.Context, p Program, l Limits, out *output) cut {
	wall, first := time.NewTimer(l.Wall), time.NewTimer(l.First)
	defer wall.Stop()
	defer first.Stop()
	why := notCut
	for why == notCut {
		select {
		case <-p.Done():
			return notCut
		case <-ctx.Done():
			why = cancelled
		case <-wall.C:
			why = wallOver
		case <-out.full:
			why = flooded
		case <-first.C:
			if !out.began() {
				why = silent
			}
		}
	}
	p.Kill(l.Stop)
	return why
}

// output reads what a program prints: into the log, and line by line as events.
type output struct {
	most     int64
	progress func(string)
	full     chan struct{}

	mu     sync.Mutex
	reader Reader
	log    bytes.Buffer
	total  int64
	line   []byte
	long   bool
	over   bool
	seen   bool
}

func newOutput(most int64, r Reader, progress func(string)) *output {
	return &output{most: most, reader: r, progress: progress, full: make(chan struct{})}
}

// Write implements io.Writer. It never fails: the program must not be stopped by it.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.total += int64(len(b))
	if left := o.most - int64(o.log.Len()); left > 0 {
		o.log.Write(b[:min(left, int64(len(b)))])
	}
	if o.total > o.most && !o.over {
		o.over = true
		close(o.full)
	}
	for rest := b; len(rest) > 0 && !o.over; {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		rest = after
		if o.long = o.long || len(o.line)+len(line) > longestLine; !o.long {
			o.line = append(o.line, line...)
		}
		if whole {
			o.read()
		}
	}
	return len(b), nil
}

// read hands a line to the reader.
func (o *output) read() {
	if line := bytes.TrimSpace(o.line); !o.long && len(line) > 0 {
		text := o.reader.Line(line)
		o.seen = o.seen || o.reader.Said().Began
		if text != "" && o.progress != nil {
			o.progress(text)
		}
	}
	o.line, o.long = o.line[:0], false
}

func (o *output) began() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seen
}

// end returns what was printed, when nothing more comes.
func (o *output) end() (Said, Printed) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.read() // a last line without an end
	return o.reader.Said(), Printed{slices.Clone(o.log.Bytes()), o.total}
}

// stderr keeps the end of what a program prints there.
type stderr struct {
	mu    sync.Mutex
	kept  []byte
	total int64
}

func (s *stderr) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total += int64(len(b))
	if s.kept = append(s.kept, b...); len(s.kept) > 2*mostErrors {
		s.kept = slices.Clone(s.kept[len(s.kept)-mostErrors:])
	}
	return len(b), nil
}

func (s *stderr) end() Printed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Printed{slices.Clone(s.kept[max(0, len(s.kept)-mostErrors):]), s.total}
}

// String returns "exit code 3" or "signal killed".
func (e Exit) String() string {
	if e.Signal != "" {
		return "signal " + e.Signal
	}
	return fmt.Sprintf("exit code %d", e.Code)
}
