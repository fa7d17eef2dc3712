package shell

import (
	"regexp"
	"sync"
)

// sedParts splits a script at ; and newlines, outside of s/../../.
func sedParts(script string) []string {
	var parts []string
	start, delimiters := 0, 0
	var delimiter byte
	for i := 0; i < len(script); i++ {
		c := script[i]
		switch {
		case delimiters > 0:
			if c == '\\' {
				i++
			} else if c == delimiter {
				delimiters--
			}
		case (c == 's' || c == 'y') && i+1 < len(script):
			delimiter, delimiters = script[i+1], 2
			i++
		case c == '/':
			delimiter, delimiters = '/', 1
		case c == ';' || c == '\n':
			parts = append(parts, script[start:i])
			start = i + 1
		}
	}
	return append(parts, script[start:])
}

var (
	sedAddress = `(?:\d+|\$|/(?:[^/\\\n]|\\.)*/I?)?(?:,(?:\d+|\$|[+~]\d+|/(?:[^/\\\n]|\\.)*/I?))?\s*!?\s*`
	sedSimple  = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\s*` + sedAddress + `[pdqQ=DGhHxnNP]?\s*\d*\s*$`)
	})
	sedReplace = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\s*` + sedAddress + `[sy]([^\sA-Za-z0-9\\])(.*)$`)
	})
	sedFlags = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[gpiIm0-9]*\s*$`)
	})
)

// harmlessSed reports whether one sed command neither runs nor reads nor writes anything.
func harmlessSed(part string) bool {
	if sedSimple().MatchString(part) {
		return true
	}
	m := sedReplace().FindStringSubmatch(part)
	if m == nil {
		return false
	}
	rest, seen := m[2], 0
	for i := 0; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case m[1][0]:
			if seen++; seen == 2 {
				return sedFlags().MatchString(rest[i+1:])
			}
		}
	}
	return false
}
