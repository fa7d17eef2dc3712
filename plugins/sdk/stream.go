package sdk

import (
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"agentctl.dev/agentctl/plugins/internal/toolpb"
)

// output passes on what a tool writes, up to a limit. Without a sink it keeps it.
type output struct {
	mu      sync.Mutex
	kept    int64
	dropped int64
	buf     []byte
	sink    func(chunk []byte)
	closed  bool
}

// write counts p and passes on as much of it as the limit allows.
func (o *output) write(p []byte, limit int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	if room := limit - o.kept; int64(len(p)) > room {
		o.dropped += int64(len(p)) - room
		p = p[:room]
	}
	o.kept += int64(len(p))
	if o.sink == nil {
		o.buf = append(o.buf, p...)
		return
	}
	for len(p) > 0 {
		n := min(len(p), toolpb.MaxChunk)
		o.sink(p[:n])
		p = p[n:]
	}
}

// fits reports whether n more bytes are within the limit.
func (o *output) fits(n int, limit int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.dropped == 0 && o.kept+int64(n) <= limit
}

// close refuses later writes, which would come after the result.
func (o *output) close() (dropped int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	return o.dropped
}

// progress keeps the latest text and passes it on now and then.
type progress struct {
	mu      sync.Mutex
	sink    func(text string)
	last    time.Time
	pending string
	timer   *time.Timer
	closed  bool
}

func (p *progress) set(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.sink == nil {
		return
	}
	p.pending = tail(text, toolpb.MaxProgress)
	if p.timer != nil {
		return
	}
	wait := progressEvery - time.Since(p.last)
	if wait <= 0 {
		p.flush()
		return
	}
	p.timer = time.AfterFunc(wait, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.timer = nil
		if !p.closed {
			p.flush()
		}
	})
}

func (p *progress) flush() {
	p.last = time.Now()
	p.sink(p.pending)
}

func (p *progress) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
}

// tail returns the last n bytes of s as valid text.
func tail(s string, n int) string {
	if len(s) > n {
		s = s[len(s)-n:]
		for len(s) > 0 && !utf8.RuneStart(s[0]) {
			s = s[1:]
		}
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
