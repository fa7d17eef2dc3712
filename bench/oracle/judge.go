//go:build linux && amd64

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"

	"agentctl.dev/agentctl/runner/policy/shell"
)

// Facts are what an analysis says of a script. Paths are as the script writes them;
// relative ones start in the workspace, ~ is the home folder.
type Facts struct {
	Exact    bool     `json:"exact"`
	Commands []string `json:"commands"`
	Writes   []string `json:"writes"`
	Reads    []string `json:"reads"`
	// Either may be read or written.
	Either []string `json:"either"`
	// Trees are folders that are processed with all their content.
	Trees []string `json:"trees"`
	// Within are folders below which files are read and changed that only the run can tell,
	// Repositories the folders in which git looks for the repository that it keeps.
	Within       []string `json:"within"`
	Repositories []string `json:"repositories"`
	Network      bool     `json:"network"`
}

// judge analyses scripts, several at the same time.
type judge interface {
	Facts(script string) (Facts, error)
	Close() error
}

// newJudge returns the analysis of this tree, or a program that reads a script as a JSON
// string a line and prints its Facts as a line: for the analysis of another revision.
func newJudge(ctx context.Context, program string) (judge, error) {
	if program == "" {
		return local{}, nil
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the judge: %w", err)
	}
	return &foreign{cmd: cmd, in: in, out: bufio.NewReader(out)}, nil
}

// local is the analysis of this tree.
type local struct{}

func (local) Facts(script string) (Facts, error) {
	f := shell.ParseIn(script, workspace, shell.Files{HasLinks: holdsLinks})
	facts := Facts{Exact: !f.Dynamic && !f.Opaque && !f.Follows, Writes: f.Writes, Reads: f.Reads, Trees: f.Trees, Network: f.Network}
	for _, list := range []*[]string{&facts.Writes, &facts.Reads, &facts.Trees} {
		for _, p := range *list {
			if dots := f.Joined(p); dots != p {
				*list = append(*list, dots)
			}
		}
	}
	facts.Either = append(append(facts.Either, f.Operands...), f.Words...)
	facts.Commands = append(facts.Commands, f.Starts...)
	facts.Within = append(facts.Within, f.Caches...)
	for _, r := range f.Rewrites {
		facts.Within = append(facts.Within, r.Dir)
	}
	for _, r := range f.Repositories {
		facts.Repositories = append(facts.Repositories, r.Dir)
		if below([]string{hostileRepository}, absolute([]string{r.Dir}, fixture.links)[0]) {
			facts.Exact = false // its settings name a program, which a decision looks up
		}
	}
	for _, c := range f.Commands {
		facts.Commands = append(facts.Commands, c.Name)
		facts.Commands = append(facts.Commands, c.Wrappers...)
	}
	return facts, nil
}

func (local) Close() error { return nil }

// holdsLinks reports whether a path of the fixture is a link, or a folder with one in it.
func holdsLinks(file string) bool {
	at := absolute([]string{file}, nil)[0]
	for link := range fixture.links {
		if below([]string{at}, link) {
			return true
		}
	}
	return false
}

// serveFacts answers another oracle with the analysis of this tree.
func serveFacts(in io.Reader, out io.Writer) error {
	scripts, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var script string
		switch err := scripts.Decode(&script); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read a script: %w", err)
		}
		facts, err := local{}.Facts(script)
		if err != nil {
			return err
		}
		if err := answers.Encode(facts); err != nil {
			return err
		}
	}
}

// foreign is the analysis of another program, which answers one question after the other.
type foreign struct {
	mu  sync.Mutex
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func (f *foreign) Facts(script string) (facts Facts, err error) {
	line, err := json.Marshal(script)
	if err != nil {
		return facts, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.in.Write(append(line, '\n')); err != nil {
		return facts, fmt.Errorf("ask the judge: %w", err)
	}
	answer, err := f.out.ReadBytes('\n')
	if err != nil {
		return facts, fmt.Errorf("read the answer of the judge: %w", err)
	}
	return facts, json.Unmarshal(answer, &facts)
}

func (f *foreign) Close() error {
	_ = f.in.Close() // the program ends at the end of its input
	return f.cmd.Wait()
}
