package sdk

import (
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"agentctl.dev/agentctl/plugins/sdk/toolpb"
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
	sink    func(*toolpb.Progress)
	last    time.Time
	pending *toolpb.Progress
	timer   *time.Timer
	closed  bool
}

func (p *progress) set(text string) {
	p.setEvent(&toolpb.Progress{Text: tail(text, toolpb.MaxProgress)})
}

func (p *progress) setEvent(event *toolpb.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.sink == nil {
		return
	}
	p.pending = event
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

// progressEvent is the event of a title and metadata; nil where there is nothing to show.
func progressEvent(title string, data any) *toolpb.Progress {
	event := &toolpb.Progress{Title: tail(title, maxTitle)}
	if data != nil {
		b, err := json.Marshal(data)
		if err != nil || len(b) > toolpb.MaxProgressMetadata || b[0] != '{' {
			slog.Error("metadata of progress dropped", "bytes", len(b), "limit", toolpb.MaxProgressMetadata, "error", err)
		} else {
			event.MetadataJson = b
		}
	}
	if event.Title == "" && event.MetadataJson == nil {
		return nil
	}
	return event
}

// maxTitle bounds the title of progress.
const maxTitle = 200

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
