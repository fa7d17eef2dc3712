// Package measure compares the decisions of agentctl about shell commands with what corpora of attacks and of everyday commands call for.
package measure

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// options of one invocation.
type options struct {
	root     string // folder of the repository
	corpora  string
	agentctl string
	before   string
	dir      string
	failures string
	output   string
	only     []string
	run      bool
	peers    bool
	check    bool
}

// part is a part of the table.
type part struct {
	name    string
	measure func(context.Context, *bench) error
	// optional parts are measured only where they are named.
	optional bool
}

func parts() []part {
	return []part{
		{"attacks", measureAttacks, false},
		{"benign", measureBenign, false},
		{"nl2bash", measureWritten, false},
		{"gtfobins", measureEscapes, false},
		{"defenseclaw", measureLabelled, false},
		{"timing", measureTimes, false},
		{"run", measureRuns, true},
		{"presets", measurePresets, true},
	}
}

func partNames() []string {
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	return names
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("policy", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.root, "root", "..", "folder of the repository")
	f.StringVar(&o.corpora, "corpora", "", "folder that holds shell-attacks and third-party")
	f.StringVar(&o.agentctl, "agentctl", "", "program to measure (default: bin/agentctl of the repository)")
	f.StringVar(&o.before, "before", "", "agentctl of an older build: report which of its dynamic commands are opaque now")
	f.StringVar(&o.dir, "dir", "", "folder for workspaces and state (default: one in the cache folder of the user; not in /tmp, which a sandbox replaces)")
	f.StringVar(&o.failures, "failures", "", "folder to write failures-PART.txt to: each command that was not decided as wanted, and why")
	f.StringVar(&o.output, "o", "text", "format of the table: text, json or markdown")
	only := f.String("only", "", "parts to measure, separated by commas (default: all but run and presets): "+strings.Join(partNames(), ", "))
	f.BoolVar(&o.run, "run", false, "also run the commands of the attacks, as -only run does")
	f.BoolVar(&o.peers, "peers", false, "also ask OpenCode and Codex, which npm installs into the cache folder; takes some minutes")
	f.BoolVar(&o.check, "check", false, "exit 1 when a goal is missed")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if !slices.Contains([]string{"text", "json", "markdown"}, o.output) {
		return o, fmt.Errorf("-o %s: the formats are text, json and markdown", o.output)
	}
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	for _, name := range o.only {
		if !slices.Contains(partNames(), name) {
			return o, fmt.Errorf("-only %s: the parts are %s", name, strings.Join(partNames(), ", "))
		}
	}
	return o, nil
}

func (o options) selected(p part) bool {
	return slices.Contains(o.only, p.name) || p.name == "run" && o.run || len(o.only) == 0 && !p.optional
}

// bench is one invocation at work.
type bench struct {
	options
	dir     string
	program *program
	report  *report
	// model and peers are there where other programs are asked, too.
	model *model
	peers []peer
}

// Main measures what the arguments select, and prints the table.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parseOptions(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := checkCorpora(o.corpora); err != nil {
		return err
	}
	if o.agentctl, err = filepath.Abs(cmp.Or(o.agentctl, filepath.Join(o.root, "bin", "agentctl"))); err != nil {
		return err
	}
	if o.before != "" {
		if o.before, err = filepath.Abs(o.before); err != nil {
			return err
		}
	}
	if _, err := os.Stat(o.agentctl); err != nil {
		return fmt.Errorf("find the program to measure: %w; make build builds it", err)
	}
	report, err := measureParts(ctx, o, stderr)
	if err != nil {
		return err
	}
	if err := report.write(stdout, o.output); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	if o.check {
		return report.missed()
	}
	return nil
}

func measureParts(ctx context.Context, o options, progress io.Writer) (_ *report, err error) {
	dir, err := makeFolder(o.dir)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	b := &bench{options: o, dir: dir, report: &report{}}
	b.program = newProgram(o.agentctl, dir)
	if err := os.Mkdir(b.program.home, 0o700); err != nil {
		return nil, err
	}
	if o.peers {
		b.report.part = "peers"
		if err := b.startPeers(ctx); errors.Is(err, exec.ErrNotFound) {
			b.report.note("OpenCode and Codex were not asked: %v", err)
		} else if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, b.stopPeers()) }()
	}
	for _, p := range parts() {
		if !o.selected(p) {
			continue
		}
		begin := time.Now()
		b.report.part = p.name
		fmt.Fprintf(progress, "%s: ", p.name)
		if err := p.measure(ctx, b); err != nil {
			fmt.Fprintln(progress)
			return nil, fmt.Errorf("measure %s: %w", p.name, err)
		}
		fmt.Fprintf(progress, "%.1f s\n", time.Since(begin).Seconds())
		if err := b.report.writeFailures(o.failures, p.name); err != nil {
			return nil, err
		}
	}
	return b.report, nil
}

// makeFolder creates the folder in which everything happens. It must not be below /tmp:
// a sandbox has a /tmp of its own, so that a path there is not that of the host.
func makeFolder(parent string) (string, error) {
	if parent == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find the cache folder: %w; -dir names another", err)
		}
		parent = cache
	}
	parent, err := filepath.Abs(parent)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", err
	}
	return os.MkdirTemp(parent, "agentctl-bench-policy-")
}
