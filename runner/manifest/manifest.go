// Package manifest turns files into documents that know where each of their fields stands.
package manifest

import (
	"context"
	"io"
)

// The limits of what is read. A manifest is foreign input: it may come from a
// repository nobody has looked at yet.
const (
	// MaxDocument is the size of one document in bytes.
	MaxDocument = 1 << 20
	// MaxDocuments is the number of documents of one Load.
	MaxDocuments = 1000
	// MaxFile is the size of one file, or of standard input, in bytes.
	MaxFile = 16 << 20
	// MaxDepth is how deep lists and mappings may be nested.
	MaxDepth = 64
	// MaxExpanded is the size of one document in bytes once its aliases are
	// replaced by what they stand for.
	MaxExpanded = 4 << 20
)

// Set is everything one Load has read, in the order of the paths, the names in
// a folder, and the places in a file.
type Set struct {
	Documents []*Document

	patterns patterns
}

// Load reads manifests from files, folders and, for "-", standard input. A
// folder gives its *.yaml, *.yml and *.json files in the order of their names;
// sub folders and names that begin with a dot are left out. All mistakes are
// reported; a document that has some is still in the set, without the fields
// that cannot be used, so that a later stage finds its mistakes too.
func Load(ctx context.Context, paths []string, stdin io.Reader) (*Set, Findings) {
	set := &Set{patterns: patterns{}}
	var found Findings
	for _, path := range paths {
		sources, errs := open(ctx, path, stdin)
		found = append(found, errs...)
		for _, src := range sources {
			if err := ctx.Err(); err != nil {
				return set, append(found, fileError(src.name, "reading stopped: %v", err))
			}
			found = append(found, set.add(src)...)
			if len(set.Documents) >= MaxDocuments {
				return set, found
			}
		}
	}
	return set, found
}

// add splits a source into documents and keeps those that hold something.
func (s *Set) add(src source) Findings {
	chunks := split(src.data)
	if len(chunks) == 0 {
		return Findings{fileError(src.name, "holds no document").
			With("a manifest begins with apiVersion: agentctl.dev/v1alpha1 and kind: Agent")}
	}
	var found Findings
	for _, c := range chunks {
		if len(s.Documents) >= MaxDocuments {
			f := fileError(src.name, "more than %d documents", MaxDocuments)
			f.Position.Line, f.Position.Col = c.line, 1
			return append(found, f)
		}
		doc, errs := newDocument(src, c, s.patterns)
		found = append(found, errs...)
		if doc != nil {
			s.Documents = append(s.Documents, doc)
		}
	}
	return found
}
