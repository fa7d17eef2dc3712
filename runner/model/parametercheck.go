package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// ParameterCheck returns what is wrong with a value, or "". Numbers are json.Number.
type ParameterCheck func(v any) string

func decode(raw json.RawMessage) any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil && err != io.EOF {
		return nil
	}
	return v
}

// NumberFrom is a number from low to high.
func NumberFrom(low, high float64) ParameterCheck {
	return func(v any) string {
		if n, ok := v.(json.Number); ok {
			if f, err := n.Float64(); err == nil && f >= low && f <= high {
				return ""
			}
		}
		return fmt.Sprintf("must be a number from %g to %g", low, high)
	}
}

// WholeNumber is a whole number.
func WholeNumber(v any) string {
	if n, ok := v.(json.Number); ok {
		if _, err := n.Int64(); err == nil {
			return ""
		}
	}
	return "must be a whole number"
}

// PositiveNumber is a whole number of at least 1.
func PositiveNumber(v any) string {
	if n, ok := v.(json.Number); ok {
		if i, err := n.Int64(); err == nil && i >= 1 {
			return ""
		}
	}
	return "must be a whole number of at least 1"
}

// Boolean is true or false.
func Boolean(v any) string {
	if _, ok := v.(bool); ok {
		return ""
	}
	return "must be true or false"
}

// NonEmptyString is a text that is not empty.
func NonEmptyString(v any) string {
	if s, ok := v.(string); ok && s != "" {
		return ""
	}
	return "must be a text"
}

// StringList is a text, or a list of 1 to most texts.
func StringList(most int) ParameterCheck {
	return func(v any) string {
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		if len(list) == 0 || len(list) > most || slices.ContainsFunc(list, func(v any) bool { return NonEmptyString(v) != "" }) {
			return fmt.Sprintf("must be a text or a list of at most %d texts", most)
		}
		return ""
	}
}

// OneOf is one of a few words.
func OneOf(words ...string) ParameterCheck {
	return func(v any) string {
		if s, ok := v.(string); ok && slices.Contains(words, s) {
			return ""
		}
		return "must be one of " + strings.Join(words, ", ")
	}
}
