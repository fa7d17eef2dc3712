package secret

// NewStream begins a text that comes in pieces.
func (r *Redactor) NewStream() *Stream { return &Stream{of: r, r: r.now()} }

// Stream redacts a text that comes in pieces, wherever the borders fall. It holds back
// only what may be the beginning of a secret, and returns exactly what String would return
// for the whole text, except for dumps. It must be used by one goroutine.
type Stream struct {
	// of is what r is the newest state of.
	of, r *Redactor
	held  []byte
	// cover counts the bytes at the beginning of held that belong to a secret
	// whose *** is already out.
	cover int
	// masked reports that the output ends in the *** of a secret that ended here.
	masked bool
	// text and from are the room for what is skimmed.
	text []byte
	from places
}

// maxHeld bounds what is held back beyond the longest form: white space without end
// would else be kept in memory, and read again with each piece.
const maxHeld = 64 << 10

// Push adds a piece and returns what may be shown.
func (s *Stream) Push(piece string) string {
	s.r = s.of.now()
	if s.r == nil {
		return piece
	}
	s.held = append(s.held, piece...)
	secrets, limit := s.scan()
	return string(s.emit(secrets, limit))
}

// Flush ends the text and returns what was held back.
func (s *Stream) Flush() string {
	if s.r == nil {
		return ""
	}
	secrets, _ := s.scan()
	out := s.emit(secrets, len(s.held))
	*s = Stream{of: s.of, r: s.r}
	return string(out)
}

// scan returns the secrets in what is held, and the first position from which on
// it may be the beginning of another one.
func (s *Stream) scan() (secrets []span, open int) {
	b, r := s.held, s.r
	open = unfinished(b)
	if r.exact != nil {
		open = min(open, r.exact.begun(b))
		secrets = r.exactly(secrets, b)
	}
	if r.skimmed != nil {
		if need := len(b) + 2*utf8Max; cap(s.text) < need {
			s.text = make([]byte, 0, 2*need)
		}
		var room [maxReadings]reading
		for _, how := range readings(room[:0], b, false) {
			s.from.start, s.from.end = s.from.start[:0], s.from.end[:0]
			k := skimmer{b: b, reading: how}
			s.text = k.next(s.text[:0], &s.from)
			for _, f := range r.found(s.text, false, false) {
				secrets = append(secrets, span{s.from.start[f.start], s.from.end[f.end-1]})
			}
			open = min(open, s.begun())
			if whole := unfinished(b); whole < len(b) { // an escape sequence may turn out to belong to nothing
				s.from.start, s.from.end = s.from.start[:0], s.from.end[:0]
				k := skimmer{b: b[:whole], reading: k.reading}
				s.text = k.next(s.text[:0], &s.from)
				open = min(open, s.begun())
			}
		}
		if len(b)-open > maxHeld+4*r.skimmed.longest {
			open = len(b)
		}
	}
	return merged(secrets), open
}

// begun returns where in what is held the beginning of a form is.
func (s *Stream) begun() int {
	if i := s.r.skimmed.begun(s.text); i < len(s.text) {
		return s.from.start[i]
	}
	return len(s.held)
}

// emit returns what is to be shown of the bytes before limit, from where on nothing
// is certain. Secrets that overlap are hidden as one, so that no end of the second
// stays visible.
func (s *Stream) emit(secrets []span, limit int) (out []byte) {
	shown := s.cover
	for _, f := range secrets {
		if f.start >= limit {
			break
		}
		if f.start > shown || f.start == shown && !s.masked {
			out = append(append(out, s.held[shown:f.start]...), mask...)
		}
		if f.end > shown {
			shown, s.masked = f.end, true
		}
	}
	if shown < limit {
		out = append(out, s.held[shown:limit]...)
		shown, s.masked = limit, false
	}
	s.cover = shown - limit
	s.held = append(s.held[:0], s.held[limit:]...)
	return out
}
