package secret

import (
	"bytes"
	"math"
	"slices"
)

// MinLength is the shortest value that is redacted. A shorter one would stand
// by chance in too many texts to be worth hiding.
const MinLength = 6

// Redactor replaces secrets by ***, in the forms in which programs print them:
// as they are, escaped for JSON, URLs and shells, in hex, and in base64 at any
// position of a longer text. It never changes and may be used by many
// goroutines; nil redacts nothing.
//
// It looks at every few bytes only: a window as long as the shortest form ends
// at the position that is looked at, and the two bytes there say how far the
// next one may be (Wu and Manber's search for many words).
type Redactor struct {
	forms [][]byte
	// window is the length of the shortest form, longest that of the longest.
	window, longest int
	// shift says, for the hash of the last two bytes of the window, how far the
	// window may move without missing a form.
	shift [tableSize]uint8
	// ending lists the forms whose window ends in two bytes of that hash.
	ending map[uint16][]int
	// first says which bytes a form begins with.
	first [256]bool
}

const tableSize = 1 << 12

func hash(a, b byte) uint16 { return (uint16(a)<<4 ^ uint16(b)) & (tableSize - 1) }

// NewRedactor makes a Redactor of values. Values shorter than MinLength are
// left out.
func NewRedactor(values ...Value) *Redactor {
	r := &Redactor{ending: map[uint16][]int{}}
	seen := map[string]bool{}
	for _, v := range values {
		for _, f := range forms(v.Reveal()) {
			if len(f) >= MinLength && !seen[f] {
				seen[f] = true
				r.forms = append(r.forms, []byte(f))
			}
		}
	}
	if len(r.forms) == 0 {
		return nil
	}
	r.window = math.MaxInt
	for _, f := range r.forms {
		r.window = min(r.window, len(f))
		r.longest = max(r.longest, len(f))
	}
	// A window that shifts further than a byte can say gains nothing.
	r.window = min(r.window, math.MaxUint8)
	for i := range r.shift {
		r.shift[i] = uint8(r.window - 1)
	}
	for i, f := range r.forms {
		r.first[f[0]] = true
		for at := 1; at < r.window; at++ {
			h := hash(f[at-1], f[at])
			r.shift[h] = min(r.shift[h], uint8(r.window-1-at))
			if at == r.window-1 {
				r.ending[h] = append(r.ending[h], i)
			}
		}
	}
	// The longest first: what stands at a position is the longest form.
	for _, list := range r.ending {
		slices.SortFunc(list, func(a, b int) int { return len(r.forms[b]) - len(r.forms[a]) })
	}
	return r
}

// find returns the first place at or behind from where a form stands whole.
func (r *Redactor) find(b []byte, from int) (start, end int, ok bool) {
	for i := from + r.window - 1; i < len(b); {
		h := hash(b[i-1], b[i])
		if s := r.shift[h]; s > 0 {
			i += int(s)
			continue
		}
		start := i - r.window + 1
		for _, f := range r.ending[h] {
			if bytes.HasPrefix(b[start:], r.forms[f]) {
				return start, start + len(r.forms[f]), true
			}
		}
		i++
	}
	return 0, 0, false
}

// Bytes returns b with every secret replaced. It returns b itself when there is
// none; it never changes b.
func (r *Redactor) Bytes(b []byte) []byte {
	if r == nil {
		return b
	}
	if _, _, ok := r.find(b, 0); !ok {
		return b
	}
	s := Stream{r: r}
	out := s.push(make([]byte, 0, len(b)), b)
	return s.rest(out)
}

// String returns s with every secret replaced.
func (r *Redactor) String(s string) string {
	if r == nil || len(s) < r.window {
		return s
	}
	if !r.within(s) {
		return s
	}
	return string(r.Bytes([]byte(s)))
}

// within says whether a form stands in s. It copies a piece at a time: an output
// may have 10 MB, and next to none holds a secret.
func (r *Redactor) within(s string) bool {
	piece := make([]byte, min(len(s), max(64<<10, 2*r.longest)))
	for {
		n := copy(piece, s)
		if _, _, ok := r.find(piece[:n], 0); ok {
			return true
		}
		if n == len(s) {
			return false
		}
		s = s[n-r.longest+1:] // a form that begins at the end of the piece
	}
}

// open returns the first position of b from which on b is the beginning of a
// form: what stands there cannot be judged yet. It is len(b) if there is none.
func (r *Redactor) open(b []byte) int {
	for i := max(0, len(b)-r.longest+1); i < len(b); i++ {
		if !r.first[b[i]] {
			continue
		}
		for _, f := range r.forms {
			if len(f) > len(b)-i && bytes.HasPrefix(f, b[i:]) {
				return i
			}
		}
	}
	return len(b)
}

// NewStream begins a text that comes in pieces.
func (r *Redactor) NewStream() *Stream { return &Stream{r: r} }

// Stream redacts a text that comes in pieces, wherever the borders fall. It
// holds back what may be the beginning of a secret and nothing else, and gives
// exactly what Bytes would give for the whole text. It belongs to one goroutine.
type Stream struct {
	r    *Redactor
	held []byte
	// cover counts the bytes at the beginning of held that belong to a secret
	// whose *** is already out.
	cover int
	// masked says that the output ends in the *** of a secret that ended here.
	masked bool
}

// Push adds a piece and returns what may be shown.
func (s *Stream) Push(piece string) string {
	if s.r == nil {
		return piece
	}
	return string(s.push(nil, []byte(piece)))
}

// Flush ends the text and returns what was held back.
func (s *Stream) Flush() string {
	if s.r == nil {
		return ""
	}
	return string(s.rest(nil))
}

func (s *Stream) push(out, piece []byte) []byte {
	s.held = append(s.held, piece...)
	return s.emit(out, s.r.open(s.held))
}

func (s *Stream) rest(out []byte) []byte {
	out = s.emit(out, len(s.held))
	*s = Stream{r: s.r}
	return out
}

// emit shows the bytes before limit, from where on nothing is certain. Secrets
// that overlap are hidden as one, so that no end of the second stays visible.
func (s *Stream) emit(out []byte, limit int) []byte {
	shown, at := s.cover, 0
	for {
		start, end, ok := s.r.find(s.held, at)
		if !ok || start >= limit {
			break
		}
		if start > shown || (start == shown && !s.masked) {
			out = append(append(out, s.held[shown:start]...), mask...)
		}
		if end > shown {
			shown, s.masked = end, true
		}
		at = start + 1
	}
	if shown < limit {
		out = append(out, s.held[shown:limit]...)
		shown, s.masked = limit, false
	}
	s.cover = shown - limit
	s.held = append(s.held[:0], s.held[limit:]...)
	return out
}
