package secret

import (
	"bytes"
	"math"
	"slices"
)

// matcher finds any of several words in a text.
//
// It looks at every few bytes only: a window as long as the shortest word ends
// at the position that is looked at, and the two bytes there determine how far the
// next one may be (Wu and Manber's search for many words).
type matcher struct {
	words [][]byte
	// window is the length of the shortest word, longest that of the longest.
	window, longest int
	// shift holds, for the hash of the last two bytes of the window, how far the
	// window may move without missing a word.
	shift [tableSize]uint8
	// ending lists the words whose window ends in two bytes of that hash.
	ending map[uint16][]int
	// first holds the bytes that words begin with, last those they end with.
	first, last [256]bool
}

const tableSize = 1 << 12

func hash(a, b byte) uint16 { return (uint16(a)<<4 ^ uint16(b)) & (tableSize - 1) }

// newMatcher returns a matcher of words of at least MinLength bytes; nil for none.
func newMatcher(words []string) *matcher {
	if len(words) == 0 {
		return nil
	}
	m := &matcher{ending: map[uint16][]int{}, window: math.MaxInt}
	for _, w := range words {
		m.words = append(m.words, []byte(w))
		m.window = min(m.window, len(w))
		m.longest = max(m.longest, len(w))
	}
	// A window that shifts further than a byte can hold gains nothing.
	m.window = min(m.window, math.MaxUint8)
	for i := range m.shift {
		m.shift[i] = uint8(m.window - 1)
	}
	for i, w := range m.words {
		m.first[w[0]], m.last[w[len(w)-1]] = true, true
		for at := 1; at < m.window; at++ {
			h := hash(w[at-1], w[at])
			m.shift[h] = min(m.shift[h], uint8(m.window-1-at))
			if at == m.window-1 {
				m.ending[h] = append(m.ending[h], i)
			}
		}
	}
	// The longest first: what is found at a position is the longest word.
	for _, list := range m.ending {
		slices.SortFunc(list, func(a, b int) int { return len(m.words[b]) - len(m.words[a]) })
	}
	return m
}

// find returns the first place at or behind from that holds a whole word.
func (m *matcher) find(b []byte, from int) (start, end int, ok bool) {
	for i := from + m.window - 1; i < len(b); {
		h := hash(b[i-1], b[i])
		if s := m.shift[h]; s > 0 {
			i += int(s)
			continue
		}
		start := i - m.window + 1
		for _, w := range m.ending[h] {
			if bytes.HasPrefix(b[start:], m.words[w]) {
				return start, start + len(m.words[w]), true
			}
		}
		i++
	}
	return 0, 0, false
}

// begun returns the first position of b from which on b is the beginning of an incomplete
// word; len(b) if there is none.
func (m *matcher) begun(b []byte) int {
	for i := max(0, len(b)-m.longest+1); i < len(b); i++ {
		if !m.first[b[i]] {
			continue
		}
		for _, w := range m.words {
			if len(w) > len(b)-i && bytes.HasPrefix(w, b[i:]) {
				return i
			}
		}
	}
	return len(b)
}

// ended returns the length of the longest beginning of b that is the end of a word;
// 0 if there is none.
func (m *matcher) ended(b []byte) int {
	for n := min(len(b), m.longest-1); n > 0; n-- {
		if !m.last[b[n-1]] {
			continue
		}
		for _, w := range m.words {
			if len(w) > n && bytes.HasSuffix(w, b[:n]) {
				return n
			}
		}
	}
	return 0
}

// within reports whether all of b is a part of a word.
func (m *matcher) within(b []byte) bool {
	if len(b) == 0 || len(b) >= m.longest {
		return false
	}
	return slices.ContainsFunc(m.words, func(w []byte) bool { return bytes.Contains(w, b) })
}
