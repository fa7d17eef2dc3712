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
	// Files are the manifests of the run, as names in the folder; none are all of them.
	Files []string `json:"-"`
	// Fork is what follows; nil is nothing.
	Fork *DemoFork `json:"-"`
	// Shown says what was to be seen, a line each.
	Shown []string `json:"shown"`
}

// DemoFork is a fork of the run of a demo, out of an export of it.
type DemoFork struct {
	// At is the place, Files are the manifests from there on.
	At    string
	Files []string
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
		{
			Name: "fork", Does: "a run that failed in CI goes on elsewhere, one call earlier", ExitCode: reason.ExitOutput,
			Files: []string{"agent.yaml", "ci.yaml"}, Fork: &DemoFork{At: "call_5_1", Files: []string{"agent.yaml", "desk/policy.yaml"}},
			Shown: []string{
				`The policy of the pipeline refused the edit of CHANGES, so the run failed: exit code 6.`,
				`Its export is one file, from which another machine begins a run before that call, with the files as they were.`,
				`The call was judged again, by desk/policy.yaml, and allowed. What came before was taken from the journal.`,
				`"make test" was executed once: tests.log, which it appends to, has one line.`,
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
