package manifest

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

func (s *shape) str(path string, schema map[string]any, v string) bool {
	if enum := sequence(schema["enum"]); enum != nil && !slices.Contains(enum, any(v)) {
		names := texts(enum)
		advice := Suggest
		switch {
		case s.doc.Kind == "Model" && path == "spec.provider":
			advice = provider
		case v == "Worktree" && strings.HasSuffix(path, ".strategy"):
			advice = func(string, []string) string {
				return "write Copy: a copy has its own .git, as a worktree would"
			}
		}
		s.add(s.doc.Errorf(path, "%q is not one of %s", short(v), strings.Join(names, ", ")).With(advice(v, names)))
		return false
	}
	if least, ok := integer(schema["minLength"]); ok && int64(len(v)) < least {
		s.add(s.doc.Errorf(path, "must not be empty"))
		return false
	}
	if most, ok := integer(schema["maxLength"]); ok && int64(len(v)) > most && int64(utf8.RuneCountInString(v)) > most {
		s.add(s.doc.Errorf(path, "has %d characters; at most %d are allowed", utf8.RuneCountInString(v), most))
		return false
	}
	pattern, ok := schema["pattern"].(string)
	if ok && !s.patterns.match(pattern, v) {
		s.add(s.pattern(path, pattern, v))
		return false
	}
	if pattern == durationPattern {
		if _, err := time.ParseDuration(v); err != nil { // it has the form of one
			s.add(s.doc.Errorf(path, "%q is too long: the longest duration is about 290 years", short(v)))
			return false
		}
	}
	return true
}

func (s *shape) number(path string, schema map[string]any, n float64, v any) bool {
	least, hasLeast := float(schema["minimum"])
	most, hasMost := float(schema["maximum"])
	if schema["format"] == "int32" {
		least, hasLeast = max(least, math.MinInt32), true
		if !hasMost {
			most, hasMost = math.MaxInt32, true
		}
		if _, ok := float(schema["minimum"]); !ok {
			least = math.MinInt32
		}
	}
	switch {
	case hasLeast && n < least:
		s.add(s.doc.Errorf(path, "%v is less than %s", v, decimal(least)))
		return false
	case hasMost && n > most:
		s.add(s.doc.Errorf(path, "%v is more than %s", v, decimal(most)))
		return false
	}
	if pattern, ok := schema["pattern"].(string); ok && !s.patterns.match(pattern, fmt.Sprint(v)) {
		s.add(s.pattern(path, pattern, fmt.Sprint(v)))
		return false
	}
	return true
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func plural(n int64, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
