// Package diagnose runs the checks that an agent declares in spec.diagnostics over files that a call has changed.
//
// A check is a command that is started for each change, or a language server that stays.
// Both run where Options.Start starts them: in a sandbox in which they cannot change the
// files of the run. What they write is foreign: it is bounded here, and it decides nothing.
package diagnose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// MaxTimeout is how long a check may take at most.
const MaxTimeout = 2 * time.Minute

const (
	// maxFiles is how many changed files one check is told of.
	maxFiles = 64
	// maxMessage, maxPath and maxSaid bound, in bytes, a finding, its file, and the
	// output of a command that is not read line by line.
	maxMessage = 500
	maxPath    = 300
	maxSaid    = 4 << 10
	// maxText bounds what is added to one result.
	maxText = 24 << 10
)

// Process is a program that was started.
type Process interface {
	Done() <-chan struct{}
	// Kill ends it and all it has started.
	Kill(grace time.Duration)
	// End waits, and returns the exit code, or the signal that ended it.
	End() (code int, signal string)
}

// Program is what is to be started for a check.
type Program struct {
	Argv   []string
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
}

// Options are what a Checker needs. All are required.
type Options struct {
	Checks []v1alpha1.Diagnostic
	// Root returns the files of the run once programs may see them.
	Root func(ctx context.Context) (string, error)
	// Judge asks the policies about a command; nobody is asked, so what is not allowed
	// does not run.
	Judge func(ctx context.Context, call message.ToolCall, argv []string) (message.Decision, error)
	// Start starts a program in the root of the files.
	Start func(ctx context.Context, check string, p Program) (Process, error)
	// Clean removes secrets from what a program wrote.
	Clean func(string) string
	Now   func() time.Time
}

// Checker carries out the checks of one run. Close it.
type Checker struct {
	o      Options
	checks []*check
	// ctx ends with the checker.
	ctx    context.Context //nolint:containedctx // Close ends it, and servers outlive the call that starts them
	cancel context.CancelFunc
	begun  sync.WaitGroup
}

// check is one declared check.
type check struct {
	v1alpha1.Diagnostic
	// turn is held by the call that uses the check: equal checkers do not run side by side.
	turn chan struct{}
	// server is the language server; the holder of turn uses it.
	server *server
	starts int
}

// New returns a Checker that has started nothing.
func New(ctx context.Context, o Options) *Checker {
	c := &Checker{o: o}
	c.ctx, c.cancel = context.WithCancel(ctx)
	for _, d := range o.Checks {
		c.checks = append(c.checks, &check{Diagnostic: d, turn: make(chan struct{}, 1)})
	}
	return c
}

// Close ends the language servers and waits for their end.
func (c *Checker) Close() {
	c.cancel()
	c.begun.Wait()
}

// Check runs every check that one of the files concerns, side by side, and returns what
// they say in the order in which they are declared. Files are paths in the workspace that
// a call has changed or deleted.
func (c *Checker) Check(ctx context.Context, call message.ToolCall, files []string) []message.Check {
	said := make([]*message.Check, len(c.checks))
	var wg sync.WaitGroup
	for i, ck := range c.checks {
		if chosen := ck.concerned(files); len(chosen) > 0 {
			wg.Go(func() { said[i] = c.carryOut(ctx, ck, call, chosen) })
		}
	}
	wg.Wait()
	var all []message.Check
	for _, s := range said {
		if s != nil {
			all = append(all, *s)
		}
	}
	return all
}

// concerned are those of some files that the check is about.
func (k *check) concerned(files []string) []string {
	var chosen []string
	for _, f := range files {
		matches := func(glob string) bool { ok, err := doublestar.Match(glob, f); return ok && err == nil }
		if slices.ContainsFunc(k.Files, matches) && !slices.Contains(chosen, f) && len(chosen) < maxFiles {
			chosen = append(chosen, f)
		}
	}
	slices.Sort(chosen)
	return chosen
}

// carryOut returns nil where there is nothing to look at.
func (c *Checker) carryOut(ctx context.Context, k *check, call message.ToolCall, files []string) *message.Check {
	began := c.o.Now()
	ctx, cancel := context.WithTimeout(ctx, min(cmp.Or(k.Timeout.Duration, MaxTimeout), MaxTimeout))
	defer cancel()
	out := &message.Check{Name: k.Name}
	defer func() { out.DurationMicros = c.o.Now().Sub(began).Microseconds() }()
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return failed(ctx, out, k, errBusy)
	}
	root, err := c.o.Root(ctx)
	if err != nil {
		return failed(ctx, out, k, err)
	}
	argv, some := k.argv(root, files)
	if !some {
		return nil
	}
	if decision, err := c.o.Judge(ctx, call, argv); err != nil || decision.Action != message.Allow {
		out.State, out.Rule, out.Message = message.CheckRefused, decision.Rule, c.text(decision.Message, maxMessage)
		if err != nil {
			out.Message = err.Error()
		}
		return out
	}
	var found []message.Finding
	if len(k.Server) > 0 {
		found, err = c.ask(ctx, k, root, argv, files)
	} else {
		found, err = c.run(ctx, k, root, argv, out)
	}
	if err != nil {
		return failed(ctx, out, k, err)
	}
	c.keep(out, k, found, files)
	return out
}

// failed says why a check found nothing out. The time of a check that passes is no
// failure of the call.
func failed(ctx context.Context, out *message.Check, k *check, err error) *message.Check {
	out.State, out.Message = message.CheckFailed, err.Error()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		out.State, out.Message = message.CheckTimeout, fmt.Sprintf("no answer within %s (timeout of the check)", k.Timeout.Duration)
		if errors.Is(err, errBusy) || errors.Is(err, errStarting) {
			out.Message += ": " + err.Error()
		}
	}
	out.Message = cut(out.Message, maxSaid)
	return out
}

var (
	errBusy     = errors.New("an earlier check of that name still runs")
	errStarting = errors.New("its server is still starting; the next change asks it again")
)

// keep takes the findings into the result, those in changed files first.
func (c *Checker) keep(out *message.Check, k *check, found []message.Finding, changed []string) {
	slices.SortStableFunc(found, func(x, y message.Finding) int {
		in := func(f message.Finding) int {
			if slices.Contains(changed, f.File) {
				return 0
			}
			return 1
		}
		return cmp.Or(in(x)-in(y), cmp.Compare(x.File, y.File), x.Line-y.Line, x.Column-y.Column)
	})
	found = slices.Compact(found)
	most := int(cmp.Or(k.MaxFindings, 20))
	out.More += max(0, len(found)-most)
	for _, f := range found[:min(len(found), most)] {
		f.File, f.Message = c.text(f.File, maxPath), c.text(f.Message, maxMessage)
		out.Findings = append(out.Findings, f)
	}
	switch {
	case len(out.Findings) > 0:
		out.State = message.CheckFound
	case out.State == "":
		out.State = message.CheckClean
	}
}

// text is a foreign text without secrets, in valid UTF-8, and not longer than most.
func (c *Checker) text(s string, most int) string {
	return cut(c.o.Clean(strings.ToValidUTF8(s, "\uFFFD")), most)
}

func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// argv is the command of a check for some files. It is not some when none of the files
// that it should be told of exists.
func (k *check) argv(root string, files []string) (argv []string, some bool) {
	if len(k.Server) > 0 {
		return k.Server, true
	}
	some = true
	for _, word := range k.Command {
		var names []string
		switch word {
		case "{files}":
			names = existing(root, files)
		case "{folders}":
			for _, f := range files {
				if dir := path.Dir(f); !slices.Contains(names, dir) {
					names = append(names, dir)
				}
			}
			names = existing(root, names)
		default:
			argv = append(argv, word)
			continue
		}
		some = some && len(names) > 0
		for _, n := range names {
			argv = append(argv, "./"+strings.TrimPrefix(n, "./")) // never an option
		}
	}
	return argv, some
}

// existing are those of some names that are in a folder.
func existing(folder string, names []string) []string {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil
	}
	defer root.Close() //nolint:errcheck // nothing was written
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !exists(root, n) })
}

// exists reports whether a name is in a folder. A link that leads out of it is not
// followed: what a check names must not tell which files this host has.
func exists(root *os.Root, name string) bool {
	_, err := root.Lstat(name)
	return err == nil
}

// Text is what the model reads of some checks, below the result of its call.
func Text(checks []message.Check) string {
	var b strings.Builder
	for i := range checks {
		c := &checks[i]
		fmt.Fprintf(&b, "[diagnostics %s: %s]\n", c.Name, headline(c))
		for _, f := range c.Findings {
			b.WriteString(line(f) + "\n")
		}
		if c.Message != "" && (c.State == message.CheckFailed || c.State == message.CheckFound) {
			b.WriteString(strings.TrimRight(c.Message, "\n") + "\n")
		}
	}
	return strings.TrimRight(cut(b.String(), maxText), "\n")
}

func headline(c *message.Check) string {
	switch c.State {
	case message.CheckClean:
		return "nothing found"
	case message.CheckRefused:
		return "not run: refused by " + cmp.Or(c.Rule, "the policy") + colon(c.Message)
	case message.CheckTimeout:
		return "not known: " + c.Message
	case message.CheckFailed:
		return "could not be run"
	case message.CheckFound:
	}
	said := ""
	switch n := len(c.Findings) + c.More; {
	case n == 1:
		said = "1 finding"
	case n > 1:
		said = fmt.Sprintf("%d findings", n)
	}
	if c.More > 0 {
		said += fmt.Sprintf(", the first %d", len(c.Findings))
	}
	if c.ExitCode != nil && *c.ExitCode != 0 && said == "" {
		said = fmt.Sprintf("exit code %d", *c.ExitCode)
	}
	return cmp.Or(said, "it says")
}

func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// line is a finding as a compiler would write it.
func line(f message.Finding) string {
	at := f.File
	if f.Line > 0 {
		at += fmt.Sprintf(":%d", f.Line)
		if f.Column > 0 {
			at += fmt.Sprintf(":%d", f.Column)
		}
	}
	text := strings.ReplaceAll(f.Message, "\n", "\n\t")
	if f.Severity != "" && !strings.HasPrefix(strings.ToLower(text), f.Severity) {
		text = f.Severity + ": " + text
	}
	return at + ": " + text
}
