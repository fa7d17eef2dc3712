package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	yaml3 "go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// decode turns the text of a document into a JSON value: mappings are
// map[string]any, whole numbers int64. It is nil when the text holds nothing or
// cannot be used at all. The words are read as kubectl reads them, which is
// YAML 1.1; what surprises people there is found by shape.
func decode(t *text) (any, Findings) {
	d := &Document{File: t.file, Line: t.line, text: t}
	if len(t.data) > MaxDocument {
		return nil, Findings{d.start("the document is larger than 1 MiB")}
	}
	if f := rawCharacters(t); f != nil {
		return nil, Findings{*f}
	}
	if aliases(t.data) {
		if err := t.expansion(); err != nil {
			return nil, Findings{d.start("%v", err)}
		}
	}
	var errs Findings
	raw, err := yaml.YAMLToJSONStrict(t.data)
	if err != nil {
		// Strict decoding reports a key that overrides a merged one as a duplicate, so the
		// nodes are checked instead.
		errs = d.duplicates()
		if raw, err = yaml.YAMLToJSON(t.data); err != nil {
			return nil, append(errs, d.syntax(err)...)
		}
	}
	var value any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &value); err != nil {
		return nil, append(errs, d.start("%v", err))
	}
	if more := d.names(value); len(more) > 0 {
		return nil, append(errs, more...)
	}
	return value, errs
}

// start is an error about the document as a whole, made without parsing it.
func (d *Document) start(format string, args ...any) Finding {
	f := Finding{Severity: Error, Message: fmt.Sprintf(format, args...)}
	return d.at(f, Position{File: d.File, Line: d.text.first(), Col: 1})
}

// rawCharacters finds the first byte that a text file must not contain.
func rawCharacters(t *text) *Finding {
	data := t.data
	bad := -1
	for i, c := range data {
		if c < 0x20 && c != '\n' && c != '\t' && c != '\r' || c == 0x7f {
			bad = i
			break
		}
	}
	message := "the character U+%04X has no place in a manifest"
	if bad < 0 {
		if utf8.Valid(data) {
			return nil
		}
		for bad = 0; ; {
			r, size := utf8.DecodeRune(data[bad:])
			if r == utf8.RuneError && size <= 1 {
				break
			}
			bad += size
		}
		message = "the byte 0x%02X is not UTF-8"
	}
	begin := bytes.LastIndexByte(data[:bad], '\n') + 1
	pos := Position{
		File: t.file,
		Line: t.line + bytes.Count(data[:bad], []byte("\n")),
		Col:  utf8.RuneCount(data[begin:bad]) + 1,
	}
	d := &Document{text: t}
	f := d.at(Finding{Severity: Error, Message: fmt.Sprintf(message, data[bad])}, pos)
	return &f
}

// aliases reports whether a document may hold an alias, which costs a second look.
func aliases(data []byte) bool {
	return marks(data, '&') && marks(data, '*')
}

// marks reports whether c comes before a letter or digit, as in &name.
func marks(data []byte, c byte) bool {
	for {
		i := bytes.IndexByte(data, c)
		if i < 0 || i+1 >= len(data) {
			return false
		}
		n := data[i+1]
		if n == '_' || n == '-' || n >= '0' && n <= '9' || n >= 'a' && n <= 'z' || n >= 'A' && n <= 'Z' {
			return true
		}
		data = data[i+1:]
	}
}

// expansion measures the document with all aliases expanded, without expanding them.
func (t *text) expansion() error {
	n := t.root()
	if n == nil {
		return nil // not YAML at all: the decoder reports it
	}
	sizes := map[*yaml3.Node]int{}
	if size, err := expanded(n, sizes); err != nil {
		return err
	} else if size > MaxExpanded {
		return fmt.Errorf("with its aliases written out the document is larger than %d MiB", MaxExpanded>>20)
	}
	return nil
}

const open1 = -1 // a node whose size is being measured

func expanded(n *yaml3.Node, sizes map[*yaml3.Node]int) (int, error) {
	if size, ok := sizes[n]; ok {
		if size == open1 {
			return 0, errors.New("an alias stands inside what it refers to")
		}
		return size, nil
	}
	sizes[n] = open1
	size := len(n.Value) + 4
	children := n.Content
	if n.Kind == yaml3.AliasNode {
		children = []*yaml3.Node{n.Alias}
	}
	for _, c := range children {
		s, err := expanded(c, sizes)
		if err != nil {
			return 0, err
		}
		// More than the limit is more than the limit: no need to overflow.
		size = min(size+s, MaxExpanded+1)
	}
	sizes[n] = size
	return size, nil
}

// duplicates finds every key that a mapping holds twice.
func (d *Document) duplicates() Findings {
	var errs Findings
	var walk func(n *yaml3.Node)
	walk = func(n *yaml3.Node) {
		if n.Kind == yaml3.MappingNode {
			first := map[string]*yaml3.Node{}
			for i := 0; i+1 < len(n.Content); i += 2 {
				k := n.Content[i]
				if k.Kind != yaml3.ScalarNode {
					continue
				}
				name := k.Value
				if before, ok := first[name]; ok && len(errs) < MaxFindings {
					f := Finding{Severity: Error, Message: fmt.Sprintf("field %q is given twice: the first time in line %d", name, d.text.position(before).Line)}
					errs = append(errs, d.at(f, d.text.position(k)))
					continue
				}
				first[name] = k
			}
		}
		for _, c := range n.Content {
			walk(c)
		}
	}
	if n := d.text.root(); n != nil {
		walk(n)
	}
	return errs
}

// yamlLine matches the positions in errors of the decoder.
var yamlLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`line (\d+): (.*)`)
})

// syntax turns the decoder's error into findings with places.
func (d *Document) syntax(err error) Findings {
	var errs Findings
	for _, m := range yamlLine().FindAllStringSubmatch(err.Error(), -1) {
		n, _ := strconv.Atoi(m[1])
		f := Finding{Severity: Error, Message: "YAML: " + m[2]}
		line := d.text.lineAt(d.text.line + n - 1)
		indent := len(line) - len(strings.TrimLeft(line, " \t"))
		f = d.at(f, Position{File: d.File, Line: d.text.line + n - 1, Col: indent + 1})
		if strings.HasPrefix(strings.TrimLeft(line, " "), "\t") {
			f.Suggestion = "indent with blanks, not with tabs"
		}
		errs = append(errs, f)
	}
	if len(errs) == 0 {
		message := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
		errs = Findings{d.start("YAML: %s", strings.TrimPrefix(message, "yaml: "))}
	}
	return errs
}

// names refuses what is nested too deep, and characters that make a name look
// like another.
func (d *Document) names(value any) Findings {
	var errs Findings
	var walk func(path string, v any, depth int) bool
	walk = func(path string, v any, depth int) bool {
		if len(errs) >= MaxFindings {
			return false
		}
		if depth > MaxDepth {
			errs = append(errs, d.errorAt(path, "lists and mappings are nested deeper than %d", MaxDepth))
			return false
		}
		switch v := v.(type) {
		case map[string]any:
			for k, e := range v {
				if len(errs) >= MaxFindings {
					return false
				}
				if strings.ContainsFunc(k, hidden) {
					errs = append(errs, d.KeyErrorf(Join(path, k), "the name %s holds invisible or control characters", Sanitize(strconv.Quote(k))))
					continue
				}
				if s, ok := e.(string); ok {
					if naming(k) && strings.ContainsFunc(s, hidden) {
						errs = append(errs, d.errorAt(Join(path, k), "the name %s holds invisible or control characters", strconv.QuoteToASCII(s)))
					}
					continue
				}
				if !scalar(e) && !walk(Join(path, k), e, depth+1) {
					return false
				}
			}
		case []any:
			for i, e := range v {
				if !scalar(e) && !walk(Index(path, i), e, depth+1) {
					return false
				}
			}
		}
		return true
	}
	walk("", value, 1)
	errs.Sort()
	return errs
}

func scalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// naming reports whether a field of that key holds a name that people compare by eye.
func naming(key string) bool {
	switch key {
	case "name", "callName", "tool", "kind", "permission", "agent", "rule":
		return true
	}
	return false
}

// describe names the type of a value in the words of YAML.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case bool:
		return strconv.FormatBool(v)
	case string:
		return "the text " + strconv.Quote(short(v))
	case int64:
		return "the number " + strconv.FormatInt(v, 10)
	case float64:
		return "the number " + strconv.FormatFloat(v, 'g', -1, 64)
	case []any:
		return "a list"
	case map[string]any:
		return "a mapping"
	}
	return fmt.Sprintf("%T", v)
}

func short(s string) string {
	const most = 60
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}
