package delivery

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
)

// Unchanged returns an error if a file of the branch differs from what the run began with: a
// pull request would undo what others have done.
func (f *File) Unchanged(now []byte, there bool, branch string) error {
	sum := sha256.Sum256(now)
	switch {
	case there && f.Old == "":
		return &Error{Text: f.Path + " is new in the run, and " + branch + " has one now"}
	case !there && f.Old != "":
		return &Error{Text: f.Path + " was changed by the run, and " + branch + " does not have it"}
	case there && f.Old != "sha256:"+hex.EncodeToString(sum[:]):
		return &Error{Text: f.Path + " of " + branch + " is not the one that the run began with"}
	}
	return nil
}

// EscapePath writes a path into that of a URL.
func EscapePath(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}
