package plan

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"

	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/manifest"
)

// mostJudged bounds the sets of documents whose findings are kept.
const mostJudged = 256

// Judged keeps what was found in sets of documents: a control plane judges an object
// again whenever one that it names has changed its status. The zero value is ready, a nil
// one keeps nothing; it may be used by many goroutines.
type Judged struct {
	mu    sync.Mutex
	found map[[sha256.Size]byte]manifest.Findings
	// order is that in which they were found, the oldest first.
	order [][sha256.Size]byte
}

// Judge returns what AdmitDocuments finds. What it finds depends on the documents alone:
// the options of all calls are the same, and they let nothing outside be looked at.
func (j *Judged) Judge(ctx context.Context, documents []Document, o admission.Options) manifest.Findings {
	if j == nil || o.Programs || o.Ahead != nil {
		_, _, found := AdmitDocuments(ctx, documents, o)
		return found
	}
	key := keyOf(documents)
	j.mu.Lock()
	found, ok := j.found[key]
	j.mu.Unlock()
	if ok {
		return slices.Clone(found)
	}
	_, _, found = AdmitDocuments(ctx, documents, o)
	if ctx.Err() == nil {
		j.keep(key, found)
	}
	return slices.Clone(found)
}

func (j *Judged) keep(key [sha256.Size]byte, found manifest.Findings) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, ok := j.found[key]; ok {
		return
	}
	if j.found == nil {
		j.found = map[[sha256.Size]byte]manifest.Findings{}
	}
	if len(j.order) == mostJudged {
		delete(j.found, j.order[0])
		j.order = slices.Delete(j.order, 0, 1)
	}
	j.found[key], j.order = found, append(j.order, key)
}

// keyOf is over the names and texts of documents, in their order.
func keyOf(documents []Document) (key [sha256.Size]byte) {
	h := sha256.New()
	var size [8]byte
	for _, d := range documents {
		for _, part := range [][]byte{[]byte(d.Name), d.Text} {
			binary.BigEndian.PutUint64(size[:], uint64(len(part)))
			_, _ = h.Write(size[:]) // a hash never fails
			_, _ = h.Write(part)
		}
	}
	h.Sum(key[:0])
	return key
}
