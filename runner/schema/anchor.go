package schema

import "strings"

// maxAnchor bounds a name.
const maxAnchor = 128

// isAnchor reports whether a text is a name that a schema may give itself, so that
// references of the same document find it by #name.
func isAnchor(text string) bool {
	for i, c := range text {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c != '-' && c != '.' && (c < '0' || c > '9')) {
			return false
		}
	}
	return text != "" && len(text) <= maxAnchor
}

// anchor checks the name that a schema gives itself. It names one schema of the document.
func (l *linter) anchor(value any, place []string) {
	name, ok := value.(string)
	switch {
	case !ok || !isAnchor(name):
		l.wrong(place, "want a name (a letter or _, then letters, digits, -, . and _), got %s", show(value))
	case l.anchors[name]:
		l.wrong(place, "another schema has the name %q already", name)
	default:
		l.anchors[name] = true
	}
}

// anchored are the schemas of a document that have a name, and their places. Only places
// of schemas count: a property may be called $anchor.
func anchored(root any) map[string][]string {
	all := map[string][]string{}
	var visit func(schema any, place []string)
	visit = func(schema any, place []string) {
		if s, ok := schema.(map[string]any); ok {
			if name, ok := s["$anchor"].(string); ok {
				all[name] = place
			}
		}
		for _, c := range children(schema) {
			visit(c.schema, at(place, c.place...))
		}
	}
	visit(root, nil)
	return all
}

// pointer is the place that a reference inside of the schema names: by its tokens (#/a/b),
// or by the name of a schema (#name); false: by a name that there is not.
func (w *walker) pointer(ref string) ([]string, bool) {
	ref = strings.TrimPrefix(ref, "#")
	if ref != "" && !strings.HasPrefix(ref, "/") {
		if w.anchors == nil {
			w.anchors = anchored(w.root)
		}
		place, ok := w.anchors[ref]
		return place, ok
	}
	var place []string
	for part := range strings.SplitSeq(ref, "/") {
		if part != "" {
			place = append(place, strings.NewReplacer("~1", "/", "~0", "~").Replace(part))
		}
	}
	return place, true
}
