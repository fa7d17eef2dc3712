package policy

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkCompileThousandRules compiles 1,000 rules against 50 tools whose
// schemas differ: each rule reads an argument, so that it is checked for each.
func BenchmarkCompileThousandRules(b *testing.B) {
	tools := make([]Tool, 50)
	for i := range tools {
		tools[i] = Tool{Name: fmt.Sprintf("t%d", i), Source: "exec", Risk: "R2", Category: "Other", Schema: schema("path", fmt.Sprintf("own%d:integer", i))}
	}
	var s strings.Builder
	s.WriteString("rules:\n")
	for i := range 1000 {
		fmt.Fprintf(&s, "- {name: r%d, match: {tools: ['t*']}, when: \"call.args.path == '/x%d'\", action: deny}\n", i, i)
	}
	p := parse(b, s.String())
	for b.Loop() {
		if _, problems := Compile(p, tools); len(problems) > 0 {
			b.Fatal(problems)
		}
	}
}
