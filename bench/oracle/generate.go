//go:build linux && amd64

package main

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

//go:embed grammar.txt
var grammarText string

// deepest bounds how often alternatives are put into each other.
const deepest = 7

// grammar has the alternatives of each name.
type grammar map[string][]string

var cut = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`--[a-z0-9-]+~[a-z-]*`) })

var reference = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`<([a-z]+)>`) })

// parseGrammar reads the format that grammar.txt explains.
func parseGrammar(text string) (grammar, error) {
	g, name := grammar{}, ""
	for number, line := range strings.Split(text, "\n") {
		switch {
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
		case !strings.HasPrefix(line, " "):
			name = strings.TrimSuffix(line, ":")
		default:
			line = strings.TrimPrefix(line, "  ")
			times := 1
			if count, rest, ok := strings.Cut(line, " * "); ok {
				if n, err := strconv.Atoi(count); err == nil {
					times, line = n, rest
				}
			}
			line = strings.ReplaceAll(strings.ReplaceAll(line, `\\n`, "\\\n"), `\n`, "\n")
			line = strings.ReplaceAll(line, `\\`, `\`)
			if name == "" {
				return nil, fmt.Errorf("line %d: an alternative of no name", number+1)
			}
			for range times {
				g[name] = append(g[name], line)
			}
		}
	}
	for name, alternatives := range g {
		for _, a := range alternatives {
			for _, used := range reference().FindAllStringSubmatch(a, -1) {
				if g[used[1]] == nil {
					return nil, fmt.Errorf("%s uses %s, which has no alternatives", name, used[1])
				}
			}
		}
	}
	return g, nil
}

// generator makes scripts from the grammar.
type generator struct {
	grammar
	r *rand.Rand
}

func newGenerator(r *rand.Rand) (*generator, error) {
	g, err := parseGrammar(grammarText)
	if err != nil {
		return nil, fmt.Errorf("read the grammar: %w", err)
	}
	return &generator{g, r}, nil
}

// Script returns a script.
func (g *generator) Script() string { return g.expand("script", 0) }

func (g *generator) expand(name string, depth int) string {
	alternatives := g.grammar[name]
	chosen := alternatives[0]
	if depth < deepest {
		chosen = alternatives[g.r.IntN(len(alternatives))]
	}
	chosen = cut().ReplaceAllStringFunc(chosen, func(option string) string {
		least, rest, _ := strings.Cut(option, "~")
		return least + rest[:g.r.IntN(len(rest)+1)]
	})
	return reference().ReplaceAllStringFunc(chosen, func(used string) string {
		return g.expand(used[1:len(used)-1], depth+1)
	})
}
