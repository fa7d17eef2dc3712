package shell

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
)

// soup makes scripts of tokens that shells read in ways of their own, in any order:
// most do not parse, and what bash runs of those that do must have been seen.
func soup(n int) []string {
	r := rand.New(rand.NewPCG(14, soupSeed()))
	tokens := []string{
		"rm x", "ls", "rm", "ls -l", "# note", "#", "\\\n", " \\\n", "\n", "\n", ";", ";", "&&", "||", "|", "&", "|&", "!", "time", "time -p", "--", "coproc", "coproc N", "let", "let 1", "1", "i=1", "A=1", "2>&1", "2>/dev/null", ">f", "{fd}>f", "<<<a", "<<E\n", "E\n", "\nE\n", "<<'E'\n", "<<-E\n",
		"$(", ")", "(", "{ ", "; }", "`", "\"", "'", "\\", "$'", "((", "))", "$((", "[[", "]]", "if", "then", "else", "fi", "for i in a b; do", "done", "while", "do", "case a in a)", ";;", "esac", "f() {", "f", "function f", "select i in a; do", "exec", "command", "eval", "env", "-n", "a", "$x", "${x:-", "}", "*", "~", "\t", "=", "\\\\", "in",
	}
	out := make([]string, n)
	for i := range out {
		var b strings.Builder
		for range 2 + r.IntN(9) {
			b.WriteString(tokens[r.IntN(len(tokens))])
			if r.IntN(4) > 0 {
				b.WriteByte(' ')
			}
		}
		out[i] = b.String()
	}
	return out
}

func soupSeed() uint64 {
	n, _ := strconv.ParseUint(os.Getenv("SHELL_SEED"), 10, 64)
	return n
}
