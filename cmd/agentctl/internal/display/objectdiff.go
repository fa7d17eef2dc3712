package display

import (
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
