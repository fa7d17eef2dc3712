package expr

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
)

// slip is a common mistake of authors: the message of the checker for it, and what they
// may have meant.
type slip struct {
	message *regexp.Regexp
	hint    string
}

// slips are tried in their order; the operands of $1 are those of the message.
var slips = sync.OnceValue(func() []slip {
	var all []slip
	for _, s := range [][2]string{
		{`^syntax error: token recognition error at: '= '`, "write == to compare"},
		{`^syntax error: .*'(and|or|not)'`, "write && for and, || for or, ! for not"},
		{`^syntax error: .*'<EOF>'( expecting|$)`, "something is missing at the end"},
		{`^syntax error: `, "conditions are written in CEL: a == b && !c || d in [e, f]"},
		{`must be of type bool, this is `, "compare it with something, as in x == 'y'"},
		{`must be of type string, this is `, "write string(x), or a text in quotes"},
		{`^expected type 'bool' but found `, "compare it with something, as in x == 'y'"},
		{`^type '(\w+)' does not support field selection`, "a $1 has no fields; functions are called as in size(x), x.startsWith('y')"},
		{`^\[\] does not work on \(\w+, string\)`, "write x.name for a field that is known, x[0] for an element"},
		{`^contains does not work on list`, "write 'x' in list"},
		{` does not work on \((bool|int|uint|double), string\)`, "$1 values stand without quotes"},
		{` does not work on \(string, (bool|int|uint|double)\)`, "it is a text: write the other side in quotes, or convert it as in $1(x)"},
		{` does not work on \((timestamp|duration), string\)`, "write $1('...')"},
		{` does not work on \(list\(string\), string\)`, "write 'x' in list, or list.exists(x, ...)"},
		{`^in does not work on \(\w+, list\(\w+\)\)`, "write list.exists(x, x.field == ...)"},
		{`^(!|&&|\|\|) does not work on`, "compare each side with something, as in x == 'y'"},
		{`^\?: does not work on`, "write condition ? one : another, both of one type"},
		{` does not work on \(([A-Z]\w*)[,)]`, "a $1 has fields: compare one of them"},
		{` does not work on `, "convert one side, as in int(x), double(x), string(x)"},
	} {
		all = append(all, slip{regexp.MustCompile(s[0]), s[1]})
	}
	return all
})

// hint is what the author of a mistake may have meant; "" if unknown.
func hint(message string) string {
	for _, s := range slips() {
		if m := s.message.FindStringSubmatchIndex(message); m != nil {
			return string(s.message.ExpandString(nil, s.hint, message, m))
		}
	}
	return ""
}

// functions are the names of what an expression can call.
func functions(c *cel.Env) []string {
	var names []string
	for name := range c.Functions() {
		if !strings.ContainsAny(name, "_@") {
			names = append(names, name)
		}
	}
	for _, m := range c.Macros() {
		names = append(names, m.Function())
	}
	slices.Sort(names)
	return slices.Compact(names)
}
