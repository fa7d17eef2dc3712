package display

import (
	"slices"
	"strings"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/event"
)

// every is the least time between two writes of streamed text: a terminal is
// slower than a model that sends a few letters at a time.
const every = 30 * time.Millisecond

// stream gathers pieces of text and hands them on in fewer, larger ones. It is
// used under the lock of its renderer, which its timer takes too.
type stream struct {
	lock  *sync.Mutex
	write func(text string, st style)
	timer *time.Timer
	ended bool

	part    string // the part that is being written
	pending strings.Builder
	st      style
	last    time.Time
	midLine bool

	// message, parts and text are what was shown of the newest message.
	message string
	parts   []string
	text    strings.Builder
}

func (s *stream) start(lock *sync.Mutex, write func(string, style)) {
	s.lock, s.write = lock, write
}

// add takes a piece of a part.
func (s *stream) add(e event.Event, text string, st style) {
	if e.Part != s.part {
		s.endLine()
	}
	if e.Message != s.message {
		s.forget()
		s.message = e.Message
	}
	if !s.has(e.Part) {
		s.parts = append(s.parts, e.Part)
	}
	text = Clean(text)
	s.part, s.st = e.Part, st
	s.pending.WriteString(text)
	if st == "" {
		s.text.WriteString(text)
	}
	if wait := every - time.Since(s.last); wait <= 0 {
		s.flush()
	} else if s.timer == nil {
		s.timer = time.AfterFunc(wait, s.due)
	}
}

// due is the timer's call: nothing may wait for a next piece that does not come.
func (s *stream) due() {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.timer = nil
	if !s.ended {
		s.flush()
	}
}

func (s *stream) flush() {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	if s.pending.Len() == 0 {
		return
	}
	text := s.pending.String()
	s.pending.Reset()
	s.last = time.Now()
	s.midLine = !strings.HasSuffix(text, "\n")
	s.write(text, s.st)
}

// endLine shows what is pending and goes to the start of a line.
func (s *stream) endLine() {
	s.flush()
	if s.midLine {
		s.midLine = false
		s.write("\n", "")
	}
}

// stop ends the stream; a timer that has fired meanwhile finds nothing to do.
func (s *stream) stop() {
	s.endLine()
	s.ended = true
}

// has says whether a piece of that part was shown.
func (s *stream) has(part string) bool { return part != "" && slices.Contains(s.parts, part) }

// left says whether another part has been written since that one: a provider may
// end its reasoning when the text has long begun.
func (s *stream) left(part string) bool { return s.has(part) && s.part != part }

// forget drops what was shown: it belongs to an older message or a void attempt.
func (s *stream) forget() {
	s.endLine()
	s.part, s.message, s.parts = "", "", nil
	s.text.Reset()
}

// seen is the text of the newest message as it was shown.
func (s *stream) seen() string { return s.text.String() }
