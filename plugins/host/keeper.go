package host

import "strings"

// suddenly is the length at which a text is given all the room it may need. To
// grow by halves and copy each time takes more memory than the text itself.
const suddenly = 256 << 10

// keeper keeps a text up to a limit and counts what is beyond it.
type keeper struct {
	limit   int
	text    strings.Builder
	dropped int64
}

// add keeps as much of a chunk as the limit allows and returns that.
func (k *keeper) add(chunk []byte) (kept []byte) {
	if room := k.limit - k.text.Len(); len(chunk) > room {
		k.dropped += int64(len(chunk) - room)
		chunk = chunk[:room]
	}
	if need := k.text.Len() + len(chunk); need > suddenly && need > k.text.Cap() {
		k.text.Grow(k.limit - k.text.Len())
	}
	k.text.Write(chunk)
	return chunk
}

// string returns the text so far.
func (k *keeper) string() string {
	s := k.text.String()
	if k.text.Cap() > 2*len(s)+suddenly { // the room must not outlive the need for it
		s = strings.Clone(s)
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
