package manifest

import (
	"strconv"
	"strings"

	"agentctl.dev/agentctl/api/crds"
)

// step is one part of a path: a key of a mapping, or an index of a list when
// key is "" and index is not negative.
type step struct {
	key   string
	index int
	list  bool
}

// Join appends a key to a path: spec.tools, or metadata.labels["a.b/c"] if the key is not
// a plain word.
func Join(path, key string) string {
	if plainKey(key) {
		if path == "" {
			return key
		}
		return path + "." + key
	}
	return path + "[" + strconv.Quote(key) + "]"
}

// Index appends a list index to a path: spec.tools[1].
func Index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

func plainKey(key string) bool {
	if key == "" {
		return false
	}
	return !strings.ContainsFunc(key, func(r rune) bool {
		return r != '_' && r != '-' && r != '$' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// parsePath reads what Join and Index write, and stops at what they would not.
func parsePath(path string) []step {
	var steps []step
	for path != "" {
		if path[0] == '.' {
			path = path[1:]
		}
		if rest, ok := strings.CutPrefix(path, `["`); ok {
			quoted, err := strconv.QuotedPrefix(`"` + rest)
			if err != nil {
				return steps
			}
			key, err := strconv.Unquote(quoted)
			if err != nil {
				return steps
			}
			steps = append(steps, step{key: key})
			path = strings.TrimPrefix(path[1+len(quoted):], "]")
			continue
		}
		if strings.HasPrefix(path, "[") {
			number, rest, ok := strings.Cut(path[1:], "]")
			n, err := strconv.Atoi(number)
			if !ok || err != nil {
				return steps
			}
			steps = append(steps, step{index: n, list: true})
			path = rest
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		if end == 0 {
			return steps
		}
		steps = append(steps, step{key: path[:end]})
		path = path[end:]
	}
	return steps
}

// fieldPath is the path as explain expects it: agent.spec.tools, without indexes, and no
// deeper than the schema.
func fieldPath(kind, path string) string {
	field := strings.ToLower(kind)
	k, ok := crds.Kind(kind)
	if !ok {
		return field
	}
	schema := wholeSchema(k.Schema)
	for _, s := range parsePath(path) {
		next, known := mapping(schema["properties"])[s.key].(map[string]any)
		if s.list || !known {
			break
		}
		field, schema = field+"."+s.key, next
	}
	return field
}
