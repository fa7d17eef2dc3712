package display

import (
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// ObjectDiff is the unified diff of two objects as YAML; "" when they are the
// same. A nil object is one that is not there.
func ObjectDiff(oldName, newName string, before, after any) (string, error) {
	a, err := yamlText(before)
	if err != nil {
		return "", err
	}
	b, err := yamlText(after)
	if err != nil {
		return "", err
	}
	return udiff.Unified(oldName, newName, a, b), nil
}

func yamlText(v any) (string, error) {
	if v == nil {
		return "", nil
	}
	b, err := YAML(v)
	return string(b), err
}

// WriteDiff writes a unified diff of ours.
func WriteDiff(s *Screen, text string) error {
	for line := range strings.Lines(text) {
		st := style("")
		switch {
		case strings.HasPrefix(line, "+"):
			st = green
		case strings.HasPrefix(line, "-"):
			st = red
		case strings.HasPrefix(line, "@@"):
			st = cyan
		}
		s.print(s.paint(st, Clean(strings.TrimSuffix(line, "\n"))) + "\n")
	}
	return s.Err()
}
