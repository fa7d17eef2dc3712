package expr

import (
	"fmt"
	"regexp/syntax"
	"strings"
	"testing"
)

func TestPatternsOfForeignSourcesAreBounded(t *testing.T) {
	for name, tt := range map[string]struct{ src, want string }{
		"usual":             {`'x'.matches(r'^https://([a-z0-9-]+\.){1,10}corp/\w+$')`, ""},
		"a class":           {`'x'.matches(r'^\pL+$')`, ""},
		"no pattern":        {`'x'.contains('y')`, ""},
		"repeated class":    {`'x'.matches(r'^\pL{900}7$')`, "at most 10000"},
		"a function":        {`matches('x', r'^\pL{900}7$')`, "at most 10000"},
		"from the root":     {`.matches('x', r'^\pL{900}7$')`, "at most 10000"},
		"in a loop":         {`['x'].exists(a, a.matches(r'^\pL{900}7$'))`, "at most 10000"},
		"in a list":         {`['x'.matches(r'^\pL{900}7$')] == []`, "at most 10000"},
		"in a map":          {`{'a': 'x'.matches(r'^\pL{900}7$')} == {}`, "at most 10000"},
		"in its own text":   {`('x'.matches(r'^\pL{900}7$') ? 'a' : 'b').matches('a')`, "at most 10000"},
		"nested":            {`'x'.matches(r'((([\pL\pN]){10}){10}){10}')`, "at most 10000"},
		"many classes":      {`'x'.matches(r'` + strings.Repeat(`\pL`, 300) + `')`, "at most 10000"},
		"long":              {`'x'.matches('` + strings.Repeat(`a`, 1025) + `')`, "1025 bytes, at most 1024"},
		"joined":            {`'x'.matches(r'^\pL' + '{900}')`, "is computed"},
		"a variable":        {`'x'.matches(p)`, "is computed"},
		"chosen":            {`'x'.matches(true ? 'a' : 'b')`, "is computed"},
		"no regexp":         {`'x'.matches('(')`, "read the pattern"},
		"together":          {strings.Repeat(`'x'.matches(r'\pL{7}') || `, 6) + `true`, "more than 50000"},
		"not quite so many": {strings.Repeat(`'x'.matches(r'\pL{7}') || `, 5) + `true`, ""},
	} {
		s, err := Parse(tt.src)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		err = NewPatterns().Take(s)
		if got := fmt.Sprint(err); err == nil && tt.want != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// Take knows one function with patterns: a library that brings others must be counted too.
func TestMatchesIsTheOnlyFunctionWithPatterns(t *testing.T) {
	env, err := base()
	if err != nil {
		t.Fatal(err)
	}
	for name := range env.Functions() {
		if strings.Contains(name, "match") && name != "matches" || strings.Contains(name, "regex") {
			t.Errorf("%s takes a pattern, perhaps", name)
		}
	}
}

func FuzzPatternSize(f *testing.F) {
	for _, s := range []string{`^\pL{900}7$`, `(a|b)*c{2,}`, `(?i)straße`, `((a{3}){3}|)+?`, `\b[^a]$`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > patternBytes {
			return
		}
		re, err := syntax.Parse(text, syntax.Perl)
		if err != nil || size(re) > 1<<20 {
			return
		}
		n := size(re)
		prog, err := syntax.Compile(re.Simplify())
		if err != nil {
			return
		}
		if len(prog.Inst) > n+2 {
			t.Errorf("%q: %d instructions, %d counted", text, len(prog.Inst), n)
		}
	})
}
