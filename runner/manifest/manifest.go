// Package manifest turns files into documents that know the position of each of their fields.
package manifest

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
)

// The limits of what is read. A manifest is foreign input: it may come from a repository
// that the user has not looked at yet.
const (
	// MaxDocument is the size of one document in bytes.
	MaxDocument = 1 << 20
	// MaxDocuments is the number of documents of one Load.
	MaxDocuments = 1000
	// MaxFile is the size of one file, or of standard input, in bytes.
	MaxFile = 16 << 20
	// MaxDepth is how deep lists and mappings may be nested.
	MaxDepth = 64
	// MaxExpanded is the size of one document in bytes once its aliases are expanded.
	MaxExpanded = 4 << 20
	// MaxFindings is the number of mistakes reported for one document: finding the
	// position of each costs a search.
	MaxFindings = 100
)

// Set is everything one Load has read, in the order of the paths, the names in
// a folder, and the places in a file.
type Set struct {
	Documents []*Document
	// Cases are policies that hold only tests, from the case files next to policies.
	// ReadCases fills it.
	Cases []*Document

	cases []*piece
}

// Load reads manifests from files, folders and, for "-", standard input. A
// folder gives its *.yaml, *.yml and *.json files in the order of their names;
// sub folders and names that begin with a dot are left out. A folder that holds a
// kustomization is built instead. All mistakes are
// reported; a document that has some is still in the set, without the fields
// that cannot be used, so that a later stage finds its mistakes too.
func Load(ctx context.Context, paths []string, stdin io.Reader) (*Set, Findings) {
	var found Findings
	var pieces, cases []*piece
	for _, path := range paths {
		sources, errs := open(ctx, path, stdin)
		found = append(found, errs...)
		for _, src := range sources {
			chunks := split(src.data)
			if len(chunks) == 0 {
				found = append(found, fileError(src.name, "holds no document").
					With("a manifest begins with apiVersion: agentctl.dev/v1alpha1 and kind: Agent"))
			}
			for _, c := range chunks {
				if len(pieces)+len(cases) == MaxDocuments {
					f := fileError(src.name, "more than %d documents", MaxDocuments)
					f.Position.Line, f.Position.Col = c.line, 1
					return read(ctx, pieces, append(found, f))
				}
				if p := (&piece{source: src, chunk: c}); c.holdsCases(src.name) {
					p.cases = true
					cases = append(cases, p)
				} else {
					pieces = append(pieces, p)
				}
			}
		}
	}
	set, found := read(ctx, pieces, found)
	set.cases = cases
	return set, found
}

// Parse reads the documents of a text that is not a file; positions have name in place of
// a file name.
func Parse(ctx context.Context, name string, data []byte) (*Set, Findings) {
	var pieces []*piece
	for _, c := range split(data) {
		pieces = append(pieces, &piece{source: source{name: name, data: data}, chunk: c})
	}
	return read(ctx, pieces, nil)
}

// piece is a document on its way.
type piece struct {
	source source
	chunk  chunk
	cases  bool
	doc    *Document
	found  Findings
}

// maxReaders is how many documents are read at the same time. A kind's schema
// is decoded when it is first met, so even five small documents gain.
const maxReaders = 4

// read decodes the pieces, several at a time, and keeps their order.
func read(ctx context.Context, pieces []*piece, found Findings) (*Set, Findings) {
	var next atomic.Int64
	work := func() {
		p := patterns{}
		for {
			i := int(next.Add(1)) - 1
			if i >= len(pieces) || ctx.Err() != nil {
				return
			}
			pieces[i].doc, pieces[i].found = newDocument(pieces[i], p)
		}
	}
	var readers sync.WaitGroup
	for range min(maxReaders, len(pieces)) - 1 {
		readers.Go(work)
	}
	work()
	readers.Wait()
	set := &Set{}
	for _, p := range pieces {
		found = append(found, p.found...)
		if p.doc != nil {
			set.Documents = append(set.Documents, p.doc)
		}
	}
	if err := ctx.Err(); err != nil {
		found = append(found, Finding{Severity: Error, Message: "reading stopped: " + err.Error()})
	}
	return set, found
}
