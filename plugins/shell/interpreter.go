package shell

import (
	"os"
	"os/exec"
	"strings"

	"agentctl.dev/agentctl/plugins/shell/internal/record"
)

// interpreters are the programs that the kernel starts with a program, and the one that env
// would find for a script that names it.
func interpreters(f *os.File) (all []string, script bool) {
	words, script := record.Interpreter(f)
	if len(words) == 0 {
		return nil, script
	}
	all = words[:1:1]
	if len(words) > 1 && strings.HasSuffix(words[0], "/env") {
		if p, err := exec.LookPath(words[len(words)-1]); err == nil {
			all = append(all, p)
		}
	}
	return all, script
}
