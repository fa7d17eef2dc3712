package secret

// NewProgress begins the progress of one call.
func (r *Redactor) NewProgress() *Progress { return &Progress{of: r} }

// Progress redacts the output of a running call that watchers see: each text may be the
// next piece of one output, or its newest part, cut at both ends. So a text is read
// together with the earlier ones, and a part of a secret at either end of a text is
// replaced, unless it has a few characters only. Nothing is held back: a piece is not
// shown to a watcher a second time. It must be used by one goroutine.
type Progress struct {
	// of is what r is the newest state of.
	of, r *Redactor
	// before is the end of what has been shown so far, as it came.
	before []byte
}

// maxBefore bounds how much of it is kept, whatever lies between the characters.
const maxBefore = 64 << 10

// Show returns what may be shown of a text.
func (p *Progress) Show(text string) string {
	if p.r = p.of.now(); p.r == nil || text == "" {
		return text
	}
	joined := append(p.before, text...)
	from := len(p.before)
	spans := p.r.secrets(joined, false, true, true)
	for _, f := range p.r.secrets(bytesOf(text), false, true, true) { // its beginning may be one of its own
		spans = append(spans, span{from + f.start, from + f.end})
	}
	spans = merged(spans)
	var own []span
	for _, f := range spans {
		if f.end > from {
			own = append(own, span{max(f.start, from) - from, f.end - from})
		}
	}
	out := string(hide(joined[from:], own))
	longest := 0
	for _, m := range []*matcher{p.r.skimmed, p.r.exact} {
		if m != nil {
			longest = max(longest, m.longest)
		}
	}
	keep := min(len(joined), min(maxBefore, 8*longest+maxSequence))
	p.before = append([]byte(nil), joined[len(joined)-keep:]...)
	return out
}
