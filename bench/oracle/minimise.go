//go:build linux && amd64

package main

import (
	"regexp"
	"strings"
	"sync"
)

// mostTries bounds how many scripts are run to make one smaller.
const mostTries = 300

// token is a part of a script that is removed as a whole.
var token = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("[ \t]+|\n|<<<|<<|[<>$]?\\(|[;&|<>(){}'\"`$\\[\\]]|[^ \t\n;&|<>(){}'\"`$\\[\\]]+")
})

// Minimise returns a shorter script with exact facts that lack the first effect of the same
// kind by the same program. What cannot be reproduced is returned as it is.
func (e examiner) Minimise(r result) (result, error) {
	if len(r.Missing) == 0 {
		return r, nil
	}
	want, tries := r.Missing[0], 0
	e.all = false
	fails := func(script string) (bool, error) {
		if tries >= mostTries || strings.TrimSpace(script) == "" {
			return false, nil
		}
		s := r.sample
		s.Script = script
		shorter := e.Examine(s)
		if shorter.Exact {
			tries++
		}
		for _, m := range shorter.Missing {
			if m.Kind == want.Kind && m.By == want.By {
				shorter.Missing[0] = m
				r = shorter
				return true, nil
			}
		}
		return false, shorter.err
	}
	for changed := true; changed; {
		changed = false
		for _, smaller := range []func(string, func(string) (bool, error)) (bool, error){unwrap, remove, rename} {
			ok, err := smaller(r.Script, fails)
			if err != nil {
				return r, err
			}
			changed = changed || ok
		}
	}
	r.Script = strings.TrimSpace(r.Script)
	return r, nil
}

// unwrap takes what is between two brackets or quotes for the whole script, or leaves the
// brackets away.
func unwrap(script string, fails func(string) (bool, error)) (bool, error) {
	tokens := token().FindAllString(script, -1)
	closes := map[string]string{"(": ")", "$(": ")", "<(": ")", ">(": ")", "{": "}", "[": "]", "'": "'", `"`: `"`, "`": "`"}
	for i, open := range tokens {
		end, ok := closes[open]
		if !ok {
			continue
		}
		for j := len(tokens) - 1; j > i; j-- {
			if tokens[j] != end {
				continue
			}
			inner := strings.Join(tokens[i+1:j], "")
			for _, smaller := range []string{inner, strings.Join(tokens[:i], "") + inner + strings.Join(tokens[j+1:], "")} {
				if ok, err := fails(smaller); ok || err != nil {
					return ok, err
				}
			}
		}
	}
	return false, nil
}

// remove leaves parts away, long ones first.
func remove(script string, fails func(string) (bool, error)) (changed bool, _ error) {
	tokens := token().FindAllString(script, -1)
	for size := len(tokens) / 2; size >= 1; size /= 2 {
		for at := 0; at+size <= len(tokens); {
			ok, err := fails(strings.Join(tokens[:at], "") + strings.Join(tokens[at+size:], ""))
			if err != nil {
				return changed, err
			}
			if !ok {
				at++
				continue
			}
			tokens = append(tokens[:at:at], tokens[at+size:]...)
			changed = true
		}
	}
	return changed, nil
}

// rename gives files and folders the names that come first in the grammar, so that equal
// findings look equal.
func rename(script string, fails func(string) (bool, error)) (changed bool, _ error) {
	names, err := parseGrammar(grammarText)
	if err != nil {
		return false, err
	}
	for _, kind := range []string{"old", "new", "folder", "start"} {
		for _, name := range names[kind][1:] {
			renamed := strings.ReplaceAll(script, name, names[kind][0])
			if renamed == script || len(renamed) > len(script) && kind != "old" {
				continue
			}
			ok, err := fails(renamed)
			if err != nil {
				return changed, err
			}
			if ok {
				script, changed = renamed, true
			}
		}
	}
	return changed, nil
}
