package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// settings are the flags.
type settings struct {
	old, new, stories, tree, work, report        string
	only                                         *regexp.Regexp
	slots, kills, lines, decisions, shown, again int
}

// part is a group of cases.
type part struct {
	name string
	// cases lists them; an error is about the set-up, not about a case.
	cases func(*harness) ([]scenario, error)
}

// parts in the order they are played.
func parts() []part {
	return []part{
		{"decisions", decisions},
		{"wires", wires},
		{"ends", ends},
		{"stories", stories},
		{"mounts", mounts},
		{"reading", reading},
		{"crash", crashes},
		{"cross", crossings},
	}
}

// scenario is what both builds do and is compared.
type scenario struct {
	name string
	// skip is why it cannot be played on this host; "" plays it.
	skip string
	// count is how many things it compares; 0 is one.
	count int
	play  func(context.Context, *stage) error
}

// harness is what all parts share.
type harness struct {
	settings
	old, new build
	renamed  []renaming
	tree     string
	boxes    *boxes
	calm     calm
}

// verdict is what came of a scenario.
type verdict struct {
	Name string `json:"name"`
	// Skipped is why it was not played, Different how the builds differ, Failed why
	// the comparison was not possible.
	Skipped   string `json:"skipped,omitempty"`
	Different string `json:"different,omitempty"`
	Failed    string `json:"failed,omitempty"`
	// Unsteady is the difference of a case that was equal when it was played again: a
	// race that is in each build, or a machine that was too slow.
	Unsteady string `json:"unsteady,omitempty"`
	Count    int    `json:"count"`
}

// summary is what came of a part.
type summary struct {
	Part                             string `json:"part"`
	Cases, Equal, Different, Skipped int
	// Unsteady are among Equal.
	Unsteady int
	Seconds  float64
	Verdicts []verdict `json:"verdicts"`
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	var only string
	flags := flag.NewFlagSet("golden", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&s.old, "old", "", "`folder` with the programs that are right by definition")
	flags.StringVar(&s.new, "new", "", "`folder` with the programs to compare with them")
	flags.StringVar(&s.tree, "tree", "..", "`folder` of the tree with the policies, corpora and examples")
	flags.StringVar(&s.stories, "stories", "", "`folder` with the scripts of the part stories (default cmd/agentctl/testdata/script of -tree)")
	flags.StringVar(&s.work, "work", "", "`folder` to work in; keep its path short (default a temporary one)")
	flags.StringVar(&s.report, "json", "", "`file` to write the results to")
	flags.StringVar(&only, "only", "", "play the cases whose part/name matches the `expression`")
	flags.IntVar(&s.slots, "j", 2, "`number` of cases played at a time")
	flags.IntVar(&s.kills, "kills", 200, "`number` of runs killed under the old build and resumed by the new one")
	flags.IntVar(&s.lines, "lines", 1, "kill after every `n`th line of the journal in the part crash")
	flags.IntVar(&s.decisions, "decisions", 2000, "`number` of calls judged for each policy")
	flags.IntVar(&s.again, "again", 1, "`times` that a case that differs is played again; one that is equal then is listed as unsteady")
	flags.IntVar(&s.shown, "show", 5, "`number` of differences shown of each part")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if s.old == "" || s.new == "" || flags.NArg() > 0 {
		flags.Usage()
		return s, fmt.Errorf("-old and -new each name a folder with the programs of a build")
	}
	if s.stories == "" {
		s.stories = filepath.Join(s.tree, "cmd", "agentctl", "testdata", "script")
	}
	var err error
	s.only, err = regexp.Compile(only)
	return s, err
}

// compareBuilds returns the exit code: 0 without a difference, 1 with one, 2 when
// nothing could be compared.
func compareBuilds(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s, err := parse(args, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "error:", err)
		return 2
	}
	all, err := s.run(ctx, stdout)
	if err == nil && s.report != "" {
		err = writeReport(s.report, all)
	}
	if err != nil {
		fmt.Fprintln(stderr, "error:", err)
		return 2
	}
	failed := false
	fmt.Fprintf(stdout, "\n%-10s %7s %7s %8s %9s %7s %8s\n", "part", "cases", "equal", "unsteady", "different", "skipped", "seconds")
	for _, r := range all {
		fmt.Fprintf(stdout, "%-10s %7d %7d %8d %9d %7d %8.1f\n", r.Part, r.Cases, r.Equal, r.Unsteady, r.Different, r.Skipped, r.Seconds)
		failed = failed || r.Different > 0
	}
	if failed {
		return 1
	}
	return 0
}

func writeReport(file string, all []summary) error {
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return os.WriteFile(file, append(text, '\n'), 0o600)
}

func (s settings) run(ctx context.Context, stdout io.Writer) ([]summary, error) {
	h := &harness{settings: s, old: build{"old", s.old}, new: build{"new", s.new}}
	var err error
	if h.renamed, err = renamings(); err != nil {
		return nil, err
	}
	if h.tree, err = filepath.Abs(s.tree); err != nil {
		return nil, err
	}
	work := s.work
	if work == "" {
		if work, err = os.MkdirTemp("", "golden"); err != nil {
			return nil, err
		}
		defer func() { _ = clear(work) }() // what is left is in a temporary folder
	}
	if work, err = filepath.Abs(work); err != nil {
		return nil, err
	}
	slots, err := newSlots(work, s.slots, h.old, h.new)
	if err != nil {
		return nil, err
	}
	h.boxes = newBoxes(work)
	defer h.boxes.stop()
	var all []summary
	for _, p := range parts() {
		began := time.Now()
		cases, err := p.cases(h)
		if err != nil {
			return nil, fmt.Errorf("part %s: %w", p.name, err)
		}
		cases = slices.DeleteFunc(cases, func(c scenario) bool { return !s.only.MatchString(p.name + "/" + c.name) })
		if len(cases) == 0 {
			continue
		}
		fmt.Fprintf(stdout, "== %s: %d cases\n", p.name, len(cases))
		r := h.playAll(ctx, p.name, cases, slots, stdout)
		r.Seconds = time.Since(began).Seconds()
		all = append(all, r)
		if ctx.Err() != nil {
			return all, ctx.Err()
		}
	}
	return all, nil
}

// playAll plays the cases of a part, one at a time in each slot.
func (h *harness) playAll(ctx context.Context, name string, cases []scenario, slots []*slot, stdout io.Writer) summary {
	r := summary{Part: name, Verdicts: make([]verdict, len(cases))}
	var mu sync.Mutex
	done, shown := 0, 0
	next := make(chan int)
	var workers sync.WaitGroup
	for _, sl := range slots {
		workers.Go(func() {
			for i := range next {
				v := h.steadyJudge(ctx, name, cases[i], sl)
				mu.Lock()
				done++
				r.Verdicts[i] = v
				shown += tell(stdout, name, v, shown < h.shown)
				if done%50 == 0 {
					fmt.Fprintf(stdout, "   %s: %d of %d\n", name, done, len(cases))
				}
				mu.Unlock()
			}
		})
	}
	for i := range cases {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	workers.Wait()
	for _, v := range r.Verdicts {
		r.Cases += v.Count
		switch {
		case v.Skipped != "":
			r.Skipped += v.Count
		case v.Different != "" || v.Failed != "":
			r.Different += v.Count
		default:
			r.Equal += v.Count
			if v.Unsteady != "" {
				r.Unsteady += v.Count
			}
		}
	}
	return r
}

// tell prints what came of a case, and returns 1 if it took one of the places for
// differences.
func tell(stdout io.Writer, part string, v verdict, whole bool) int {
	switch {
	case v.Skipped != "":
		fmt.Fprintf(stdout, "-- skipped %s/%s: %s\n", part, v.Name, v.Skipped)
	case v.Unsteady != "":
		fmt.Fprintf(stdout, "-- unsteady %s/%s: equal when played again\n", part, v.Name)
	case v.Failed != "":
		fmt.Fprintf(stdout, "-- FAILED %s/%s: %s\n", part, v.Name, v.Failed)
	case v.Different != "" && whole:
		text := v.Different
		if lines := strings.SplitAfter(text, "\n"); len(lines) > 60 {
			text = strings.Join(lines[:60], "") + fmt.Sprintf("... %d more lines\n", len(lines)-60)
		}
		fmt.Fprintf(stdout, "-- DIFFERENT %s/%s\n%s", part, v.Name, clip(text))
		return 1
	case v.Different != "":
		fmt.Fprintf(stdout, "-- DIFFERENT %s/%s\n", part, v.Name)
	}
	return 0
}

// clip cuts very long lines of a difference that is shown.
func clip(text string) string {
	lines := strings.SplitAfter(text, "\n")
	for i, l := range lines {
		if len(l) > 1200 {
			lines[i] = l[:1200] + " ...\n"
		}
	}
	return strings.Join(lines, "")
}

// steadyJudge plays a case again where the builds differ.
func (h *harness) steadyJudge(ctx context.Context, part string, c scenario, sl *slot) verdict {
	first := h.judge(ctx, part, c, sl)
	for range h.again {
		if ctx.Err() != nil || first.Different == "" && first.Failed == "" {
			return first
		}
		if v := h.judge(ctx, part, c, sl); v.Different == "" && v.Failed == "" {
			v.Unsteady = first.Different + first.Failed
			return v
		}
	}
	return first
}

// judge plays a case with both builds and compares what was seen.
func (h *harness) judge(ctx context.Context, part string, c scenario, sl *slot) verdict {
	v := verdict{Name: c.name, Skipped: c.skip, Count: max(1, c.count)}
	if c.skip != "" {
		return v
	}
	var seen [2]string
	for i, mine := range []build{h.old, h.new} {
		s := &stage{h: h, slot: sl, mine: mine, name: part + "/" + c.name}
		text, err := s.play(ctx, c)
		if err != nil {
			v.Failed = fmt.Sprintf("%s build: %v", mine.name, err)
			return v
		}
		seen[i] = text
	}
	was, is := normal(rename(seen[0], h.renamed)), normal(seen[1])
	if was != is {
		v.Different = difference(was, is)
	}
	return v
}
