package files

import (
	"bytes"
	"math/bits"
	"path"
	"slices"
	"strings"
)

// maxTerms bounds the terms of a query: those of one machine word.
const maxTerms = 32

// termSet are some terms of a query, one bit each.
type termSet uint32

// terms are the words of a query and the parts of its identifiers, in lower case, and the
// identifiers of several parts themselves, without the signs between these.
type terms struct {
	words []string
	whole []bool
	// byFirst are the terms that begin with a letter.
	byFirst [256]termSet
}

func newTerms(query string) *terms {
	t := &terms{}
	eachIdentifier([]byte(query), func(id []byte) {
		parts := 0
		eachPart(id, func(part []byte) {
			t.add(singular(strings.ToLower(string(part))), false)
			parts++
		})
		if parts > 1 {
			t.add(strings.ToLower(strings.ReplaceAll(string(id), "_", "")), true)
		}
	})
	return t
}

func (t *terms) add(word string, whole bool) {
	if len(t.words) == maxTerms || word == "" || slices.Contains(t.words, word) {
		return
	}
	bit := termSet(1) << len(t.words)
	t.byFirst[word[0]] |= bit
	if isLower(word[0]) {
		t.byFirst[word[0]-'a'+'A'] |= bit
	}
	t.words, t.whole = append(t.words, word), append(t.whole, whole)
}

func (t *terms) len() int { return len(t.words) }

// singular is a word without the s of a plural: "files" and "file" are one term.
func singular(word string) string {
	if len(word) > 3 && strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss") {
		return word[:len(word)-1]
	}
	return word
}

// find calls hit with each term in a text, as often as it is there. Most bytes of a text
// begin no term, so it looks at the first letters and at nothing else of them.
func (t *terms) find(text []byte, hit func(term int)) {
	for i, c := range text {
		set := t.byFirst[c]
		if set == 0 || !beginsPart(text, i) {
			continue
		}
		for ; set != 0; set &= set - 1 {
			term := bits.TrailingZeros32(uint32(set))
			if t.whole[term] && equalWhole(text, i, t.words[term]) || !t.whole[term] && equalPart(text, i, t.words[term]) {
				hit(term)
			}
		}
	}
}

// beginsPart and endsPart report whether a part of an identifier begins, or ends, before a
// byte of a text.
func beginsPart(text []byte, i int) bool {
	if i == 0 || !letters[text[i-1]] || text[i-1] == '_' {
		return true
	}
	return isUpper(text[i]) && (!isUpper(text[i-1]) || i+1 < len(text) && isLower(text[i+1]))
}

func endsPart(text []byte, i int) bool {
	return i == len(text) || !letters[text[i]] || text[i] == '_' || beginsPart(text, i)
}

// inPath are the terms in the names of a path.
func (t *terms) inPath(rel string) termSet {
	var set termSet
	t.find([]byte(strings.TrimSuffix(rel, path.Ext(rel))), func(i int) { set |= 1 << i })
	return set
}

// equalPart reports whether the part that begins at i is a term, or its plural.
func equalPart(text []byte, i int, term string) bool {
	end := i + len(term)
	if end > len(text) {
		return false
	}
	for k := range len(term) {
		if lowered(text[i+k]) != term[k] {
			return false
		}
	}
	return endsPart(text, end) || lowered(text[end]) == 's' && endsPart(text, end+1)
}

// equalWhole reports whether an identifier begins at i and is a term, whatever signs are
// between its parts.
func equalWhole(text []byte, i int, term string) bool {
	if i > 0 && letters[text[i-1]] {
		return false
	}
	for k := 0; k < len(term); i++ {
		switch {
		case i == len(text):
			return false
		case text[i] == '_':
		case lowered(text[i]) != term[k]:
			return false
		default:
			k++
		}
	}
	return i == len(text) || !letters[text[i]]
}

func lowered(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// letters are the bytes of identifiers: ASCII letters, digits and _, and all of other
// alphabets.
var letters = func() (is [256]bool) {
	for c := range is {
		is[c] = c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
	}
	return is
}()

// maxIdentifier bounds what counts as one; a longer one is data.
const maxIdentifier = 200

// eachIdentifier calls fn with the identifiers and words of a text.
func eachIdentifier(text []byte, fn func(id []byte)) {
	for i := 0; i < len(text); {
		if !letters[text[i]] {
			i++
			continue
		}
		from := i
		for i < len(text) && letters[text[i]] {
			i++
		}
		if i-from <= maxIdentifier {
			fn(text[from:i])
		}
	}
}

// eachPart calls fn with the parts of an identifier: HTTPServer_v2 has HTTP, Server, v2.
func eachPart(id []byte, fn func(part []byte)) {
	for len(id) > 0 {
		if id[0] == '_' {
			id = id[1:]
			continue
		}
		n := 1
		for n < len(id) && id[n] != '_' {
			upper := isUpper(id[n])
			if upper && !isUpper(id[n-1]) || upper && n+1 < len(id) && isLower(id[n+1]) {
				break
			}
			n++
		}
		fn(id[:n])
		id = id[n:]
	}
}

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
func isLower(c byte) bool { return c >= 'a' && c <= 'z' }

// defining are the words before a name that is defined, in the languages that have one,
// and modifiers those that may be before them.
var (
	defining = wordSet("func", "function", "def", "fn", "class", "type", "struct", "interface", "enum", "trait", "impl", "union", "record", "protocol", "object", "module", "mod",
		"namespace", "macro", "const", "var", "let", "val", "message", "service", "rpc", "table", "view", "define", "typedef", "defmodule", "defp", "sub", "procedure", "resource")
	modifiers = wordSet("export", "default", "public", "private", "protected", "internal", "static", "final", "abstract", "async", "pub", "crate", "open", "override", "sealed", "data",
		"inline", "virtual", "extern", "unsafe", "partial", "readonly", "declare", "local", "create", "or", "replace", "case", "companion", "suspend", "mut")
)

func wordSet(words ...string) map[string]bool {
	set := make(map[string]bool, len(words))
	for _, w := range words {
		set[w] = true
	}
	return set
}

// definedName is the name that a line defines, as far as one line shows it.
func definedName(line []byte) []byte {
	indented := len(line) > 0 && (line[0] == ' ' || line[0] == '\t')
	line = bytes.TrimLeft(line[:min(len(line), 400)], " \t#@")
	whole := line
	for range 6 {
		word, rest := nextWord(line)
		switch {
		case len(word) == 0:
			return nil
		case defining[string(word)]:
			rest = bytes.TrimLeft(rest, " \t*&")
			if len(rest) > 0 && rest[0] == '(' { // a receiver of Go
				_, rest, _ = bytes.Cut(rest, []byte(")"))
			}
			name, after := nextWord(bytes.TrimLeft(rest, " \t*&"))
			if defining[string(name)] || modifiers[string(name)] { // enum class X, const fn x
				name, _ = nextWord(bytes.TrimLeft(after, " \t*&"))
			}
			return name
		case !modifiers[string(word)]:
			return functionOfC(whole, indented)
		}
		line = bytes.TrimLeft(rest, " \t()")
	}
	return nil
}

// functionOfC is the name before the parenthesis of a definition that begins a line, as
// in "static int name(void)".
func functionOfC(line []byte, indented bool) []byte {
	head, rest, ok := bytes.Cut(line, []byte{'('})
	if !ok || indented || bytes.ContainsAny(head, "=.,;\"'{") || bytes.HasSuffix(bytes.TrimRight(rest, " \t\r"), []byte{';'}) {
		return nil
	}
	head = bytes.TrimRight(head, " \t")
	from := len(head)
	for from > 0 && letters[head[from-1]] {
		from--
	}
	if from == 0 { // a call: nothing is before it
		return nil
	}
	return head[from:]
}

func nextWord(line []byte) (word, rest []byte) {
	n := 0
	for n < len(line) && letters[line[n]] {
		n++
	}
	return line[:n], line[n:]
}
