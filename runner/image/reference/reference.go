// Package reference reads the names of images and artifacts, which always have a digest.
package reference

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/opencontainers/go-digest"
)

// LayoutPrefix begins a reference to an OCI layout on this host.
const LayoutPrefix = "oci:"

// Reference names an image by where it is and what it is:
//
//	registry.example.com/team/tool@sha256:...    a registry
//	localhost:5000/tool@sha256:...               a registry on this host, plain HTTP
//	oci:/srv/images/tool@sha256:...              a folder in OCI layout
//	oci:/srv/images/tool.tar@sha256:...          the same in a tar file
//
// The digest is that of a manifest or an index. A tag next to it is ignored; a
// tag instead of it is refused, because a tag can be moved to another program.
type Reference struct {
	// Name of the repository with its registry; "" for a layout.
	Name string
	// Layout is the absolute path of a layout's folder or tar; "" for a registry.
	Layout string
	Digest digest.Digest
}

// maxReference bounds what is parsed.
const maxReference = 4096

// Parse reads a reference.
func Parse(text string) (Reference, error) {
	bad := func(format string, args ...any) (Reference, error) {
		return Reference{}, fmt.Errorf("image %.200q: %w", text, fmt.Errorf(format, args...))
	}
	if len(text) > maxReference || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return bad("a reference has no spaces and at most %d bytes", maxReference)
	}
	at := strings.LastIndexByte(text, '@')
	if at < 0 {
		return bad("it has no digest; write NAME@sha256:..., which no one can move to another program as a tag can")
	}
	name, sum := text[:at], digest.Digest(text[at+1:])
	if err := sum.Validate(); err != nil || sum.Algorithm() != digest.SHA256 {
		return bad("%q is no digest of the form sha256: and 64 hex digits", string(sum))
	}
	if path, ok := strings.CutPrefix(name, LayoutPrefix); ok {
		if !filepath.IsAbs(path) {
			return bad("the path of the layout is not absolute")
		}
		return Reference{Layout: filepath.Clean(path), Digest: sum}, nil
	}
	name = withoutTag(name)
	if err := checkName(name); err != nil {
		return bad("%w", err)
	}
	return Reference{Name: name, Digest: sum}, nil
}

// withoutTag drops a tag: a colon after the last slash.
func withoutTag(name string) string {
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		return name[:colon]
	}
	return name
}

// checkName requires a registry: a guessed registry may have another program
// under the name.
func checkName(name string) error {
	host, path, ok := strings.Cut(name, "/")
	if !ok || !strings.ContainsAny(host, ".:") && host != "localhost" {
		return errors.New("it names no registry; write it in full, for example docker.io/library/busybox and its digest")
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == "" || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789._-") != "" || strings.Trim(part, ".") == "" {
			return fmt.Errorf("%q is no name of a repository: lower case letters, digits, . _ - and /", path)
		}
	}
	if strings.Trim(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]") != "" || host == "" {
		return fmt.Errorf("%q is no registry", host)
	}
	return nil
}

// String returns the reference without tags.
func (r Reference) String() string {
	if r.Layout != "" {
		return LayoutPrefix + r.Layout + "@" + r.Digest.String()
	}
	return r.Name + "@" + r.Digest.String()
}
