package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// word returns the plain word that was read as the key true or false.
func (s *shape) word(path, key string) string {
	at := s.doc.text.find(path)
	if at.value == nil || !at.exact {
		return ""
	}
	k, _ := child(at.value, step{key: key})
	if k == nil || k.Style != 0 || !boolWord(k.Value) {
		return ""
	}
	return k.Value
}

// wordKey reports a plain key that is a boolean to other readers. Where the
// field exists, what was meant is beyond doubt.
func (s *shape) wordKey(path, word string, known bool) {
	key := strconv.FormatBool(truth(word))
	at := Join(path, word)
	// The nodes hold the word, so the path with the word finds it.
	f := s.doc.KeyErrorf(at, "plain %s as a key is %s in YAML 1.1, which other readers of this file see: quote it", word, key)
	f.Suggestion = fmt.Sprintf("write %q:", word)
	if known {
		f.Severity = Warning
	}
	s.add(f)
}

// freeForm looks for words that YAML 1.1 reads as booleans where any JSON is allowed:
// there the word may be meant as a boolean, so it is a warning only.
func (s *shape) freeForm(path string, v any) {
	if s.full() || !s.doc.text.words() {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if word := s.wordOf(path, key); word != "" {
				s.wordKey(path, word, true)
				v[word] = v[key]
				delete(v, key)
				key = word
			}
			s.freeForm(Join(path, key), v[key])
		}
	case []any:
		for i, e := range v {
			s.freeForm(Index(path, i), e)
		}
	case bool:
		at := s.doc.text.find(path)
		if at.exact && at.value.Style == 0 && boolWord(at.value.Value) {
			s.add(s.doc.Warnf(path, "plain %s is %t in YAML 1.1", at.value.Value, v).
				With(fmt.Sprintf("write %t, or %q where the word is meant", v, at.value.Value)))
		}
	}
}

func (s *shape) wordOf(path, key string) string {
	if key != "true" && key != "false" {
		return ""
	}
	return s.word(path, key)
}
