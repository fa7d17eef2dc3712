package workspace

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// maxPart bounds one blob of a record that is stored in several, below the limit of
// the journal.
const maxPart = 32 << 20

// parts replaces a large record: the blobs that hold it.
type parts struct {
	Parts []string `json:"parts"`
}

// partsPrefix begins the JSON of parts, and of no record.
const partsPrefix = `{"parts":`

// putLarge stores a record of any size.
func putLarge(blobs Blobs, b []byte) (id string, err error) {
	if len(b) <= maxPart {
		return blobs.PutBlob(b)
	}
	var list parts
	for len(b) > 0 {
		n := min(len(b), maxPart)
		part, err := blobs.PutBlob(b[:n])
		if err != nil {
			return "", err
		}
		list.Parts = append(list.Parts, part)
		b = b[n:]
	}
	if b, err = json.Marshal(list); err != nil {
		return "", err
	}
	return blobs.PutBlob(b)
}

// getLarge reads a record that putLarge has stored.
func getLarge(blobs Blobs, id string) ([]byte, error) {
	b, err := blobs.GetBlob(id)
	if err != nil || !bytes.HasPrefix(b, []byte(partsPrefix)) {
		return b, err
	}
	var list parts
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, fmt.Errorf("the parts of %s: %w", id, err)
	}
	var all []byte
	for _, part := range list.Parts {
		b, err := blobs.GetBlob(part)
		if err != nil {
			return nil, err
		}
		if all = append(all, b...); len(all) > maxRecorded {
			return nil, fmt.Errorf("the parts of %s are larger than %d bytes", id, maxRecorded)
		}
	}
	return all, nil
}

// maxRecorded bounds a record that is read.
const maxRecorded = 4 << 30
