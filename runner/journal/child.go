package journal

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

// ChildSuffix is the end of the id of the run that a call starts. It follows from the
// call: one that is repeated after a crash finds the run that it has started. It begins
// with a letter, which the ids of other runs do not.
func ChildSuffix(parent, call, agent string) string {
	sum := sha256.Sum256([]byte(parent + "\x00" + call + "\x00" + agent))
	return "c" + strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:15]))
}

// looksLikeChild reports whether an id may be that of a run that a call has started. It is
// asked where the first event, which says so, was never completely written.
func looksLikeChild(id string) bool {
	const length = 1 + 24
	at := strings.LastIndexByte(id, '-')
	return at > 0 && len(id)-at-1 == length && id[at+1] == 'c'
}
