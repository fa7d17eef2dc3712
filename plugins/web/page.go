package web

import (
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	// shownBytes and shownLines bound one page of a text, so that no caller has to cut it
	// a second time.
	shownBytes = 48 << 10
	shownLines = 1900
)

// page returns the part of a text that begins at an offset, whole lines where these are
// not longer than the page, and where the next one begins; 0 is that there is none.
func page(text string, offset int) (part string, next int) {
	for offset < len(text) && offset > 0 && !utf8.RuneStart(text[offset]) {
		offset++
	}
	rest := text[min(offset, len(text)):]
	end := len(rest)
	if end > shownBytes {
		end = shownBytes
		for end > 0 && !utf8.RuneStart(rest[end]) {
			end--
		}
		if line := strings.LastIndexByte(rest[:end], '\n'); line > end/2 {
			end = line + 1
		}
	}
	lines := 0
	for i := range end {
		if rest[i] != '\n' {
			continue
		}
		if lines++; lines == shownLines {
			end = i + 1
			break
		}
	}
	if end == len(rest) {
		return rest, 0
	}
	return rest[:end], offset + end
}

const (
	// pageAge is how long a document is kept for the calls that page on in it, and
	// maxPages and maxKept how many, and how large together.
	pageAge  = 5 * time.Minute
	maxPages = 8
	maxKept  = 8 << 20
)

// document is what came of a fetch.
type document struct {
	url, status, mediaType, charset, title string
	code                                   int
	text                                   string
	hidden                                 int
	cut                                    string
	redirects                              []string
}

// pageBook keeps documents for a while: an offset counts in the text that the call before
// it has shown, whatever the server says by now.
type pageBook struct {
	now   func() time.Time
	mu    sync.Mutex
	pages []keptPage
}

type keptPage struct {
	key string
	doc *document
	at  time.Time
}

func newPageBook(now func() time.Time) *pageBook { return &pageBook{now: now} }

func (b *pageBook) find(key string) *document {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.pages {
		if p.key == key && b.now().Sub(p.at) < pageAge {
			return p.doc
		}
	}
	return nil
}

func (b *pageBook) keep(key string, doc *document) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := []keptPage{{key, doc, b.now()}}
	size := len(doc.text)
	for _, p := range b.pages {
		size += len(p.doc.text)
		if p.key != key && len(all) < maxPages && size <= maxKept && b.now().Sub(p.at) < pageAge {
			all = append(all, p)
		}
	}
	b.pages = all
}
