package display

import (
	"slices"
	"strings"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/safetext"
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

	part    string // the part that is being written; "" between two
	held    []heldPart
	pending strings.Builder
	st      style
	last    time.Time
	midLine bool
	whole   bool // nothing more comes of what is pending
	raw     bool // the text is for a program: it is not changed

	// message, parts and text are what was shown of the newest message.
	message string
	parts   []string
	text    strings.Builder
}

// heldPart is what came of a part while another was written: parts are never
// mixed, in whatever order their pieces come.
type heldPart struct {
	e     event.Event
	text  string
	st    style
	ended bool
}

func (s *stream) start(lock *sync.Mutex, write func(string, style)) {
	s.lock, s.write = lock, write
}

// add takes a piece of a part.
func (s *stream) add(e event.Event, text string, st style) {
	if e.Message != s.message {
		s.letOut()
		s.forget()
		s.message = e.Message
	}
	if s.part != "" && e.Part != s.part && !s.yields(st) {
		s.hold(e, text, st)
		return
	}
	if e.Part != s.part {
		s.endLine()
	}
	if !s.has(e.Part) {
		s.parts = append(s.parts, e.Part)
	}
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

// yields reports whether the part that is written makes room for a text: the
// answer does not wait for the end of reasoning, which may come late.
func (s *stream) yields(next style) bool { return s.st == dim && next == "" }

// hold keeps a piece of a part until the one that is written has ended.
func (s *stream) hold(e event.Event, text string, st style) {
	i := slices.IndexFunc(s.held, func(h heldPart) bool { return h.e.Part == e.Part })
	if i < 0 {
		i = len(s.held)
		s.held = append(s.held, heldPart{e: e, st: st})
		if !s.has(e.Part) {
			s.parts = append(s.parts, e.Part)
		}
	}
	s.held[i].text += text
}

// end ends a part; what was held back meanwhile is shown.
func (s *stream) end(part string) {
	if part != s.part {
		for i := range s.held {
			s.held[i].ended = s.held[i].ended || s.held[i].e.Part == part
		}
		return
	}
	s.endLine()
	s.part = ""
	for s.part == "" && len(s.held) > 0 {
		h := s.held[0]
		s.held = s.held[1:]
		s.add(h.e, h.text, h.st)
		if h.ended {
			s.endLine()
			s.part = ""
		}
	}
}

// letOut shows everything that is held back.
func (s *stream) letOut() {
	for s.part != "" || len(s.held) > 0 {
		s.end(s.part)
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
	if !s.raw {
		text = strings.ReplaceAll(text, "\r\n", "\n")
		n := len(text)
		if !s.whole {
			n = safetext.Complete(text) // a character may come in two pieces
		}
		s.pending.WriteString(text[n:])
		text = Clean(text[:n])
	}
	if text == "" {
		return
	}
	s.last = time.Now()
	s.midLine = !strings.HasSuffix(text, "\n")
	s.write(text, s.st)
}

// endLine shows what is pending and goes to the start of a line.
func (s *stream) endLine() {
	s.whole = true
	s.flush()
	s.whole = false
	if s.midLine {
		s.midLine = false
		s.write("\n", "")
	}
}

// stop ends the stream; a timer that has fired meanwhile finds nothing to do.
func (s *stream) stop() {
	s.letOut()
	s.endLine()
	s.ended = true
}

// has reports whether a piece of that part was shown.
func (s *stream) has(part string) bool { return part != "" && slices.Contains(s.parts, part) }

// forget drops what was shown: it belongs to an older message or a void attempt.
func (s *stream) forget() {
	s.endLine()
	s.part, s.message, s.parts, s.held = "", "", nil, nil
	s.text.Reset()
}

// seen is the text of the newest message as it was shown.
func (s *stream) seen() string { return Clean(s.text.String()) }
