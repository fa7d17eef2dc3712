package templates

import (
	"fmt"
	"os"
	"strings"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/manifests"
)

// Demo is a run that shows what agentctl is for. Its model is scripted.
type Demo struct {
	Name string `json:"name"`
	// Does says in one line what happens.
	Does string `json:"does"`
	// ExitCode is that of its run.
	ExitCode int `json:"exitCode"`
	// Shown says what was to be seen, a line each.
	Shown []string `json:"shown"`
}

// Demos lists them in the order in which they are shown.
func Demos() []Demo {
	return []Demo{
		{
			Name: "caught", Does: "allowed commands do more than they say, and it fails", ExitCode: reason.ExitOK,
			Shown: []string{
				`The policy allows "cat CHANGES" and "make report", which is all that a matcher of texts can see.`,
				`"cat CHANGES" was judged as a command that reads: when the shell had it write .profile, the call exceeded its facts.`,
				`"make report" may do what its Makefile says, but the policy denies edits of LICENSE: the file was read-only for it.`,
				`No file has changed.`,
			},
		},
		{
			Name: "lied", Does: `a model says "all tests pass", and they do not`, ExitCode: reason.ExitOutput,
			Shown: []string{
				`The agent's evidence is calls.passed('make', 'test'): its word is none.`,
				`The exit status of "make test || true" is not that of "make test", and the run is not green: exit code 6.`,
			},
		},
	}
}

// WriteDemo writes the manifests and files of a demo into a new temporary folder.
func WriteDemo(name string) (*Demo, string, error) {
	var names []string
	for _, d := range Demos() {
		if d.Name != name {
			names = append(names, d.Name)
			continue
		}
		files, err := manifests.Demo(name)
		if err != nil {
			return nil, "", err
		}
		dir, err := os.MkdirTemp("", "agentctl-demo-")
		if err != nil {
			return nil, "", err
		}
		if err := os.CopyFS(dir, files); err != nil {
			return nil, "", fmt.Errorf("write the demo %s: %w", name, err)
		}
		return &d, dir, nil
	}
	return nil, "", reason.Usagef("there is no demo %q", name).WithHint("one of " + strings.Join(names, ", "))
}
