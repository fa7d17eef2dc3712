package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
)

// reading has the old build make state folders, journals and cassettes, in every way
// in which a run can end, and the build that is compared read them.
func reading(h *harness) ([]scenario, error) {
	var all []scenario
	for _, e := range endings(h) {
		all = append(all, scenario{name: e.name, skip: e.skip, play: func(ctx context.Context, s *stage) error {
			if err := s.slot.use(s.h.old); err != nil {
				return err
			}
			if !slices.Contains(e.args, "--record") {
				e.args = append(slices.Clone(e.args), "--record", "tape.jsonl")
			}
			if err := e.run(ctx, s, false); err != nil {
				return err
			}
			s.seen.Reset() // what a preparation has noted
			if err := s.slot.use(s.mine); err != nil {
				return err
			}
			return s.read(ctx)
		}})
	}
	return all, nil
}

// read notes what every command that reads a run prints.
func (s *stage) read(ctx context.Context) error {
	run := filepath.Base(s.latest())
	for _, args := range [][]string{
		{"get", "runs", "-o", "wide"},
		{"get", "runs", "-o", "json"},
		{"describe", "run", "@latest"},
		{"get", "run", "@latest", "-o", "yaml"},
		{"logs", "@latest"},
		{"events", "@latest"},
		{"events", "@latest", "-o", "jsonl"},
		{"attach", "@latest"},
		{"diff", "@latest"},
		{"diff", "@latest", "-o", "json"},
		{"approve"},
		{"policy", "explain", "@latest/1"},
		{"policy", "explain", "@latest/2", "-o", "json"},
		{"policy", "explain", "@latest"},
		{"replay", "tape.jsonl"},
		{"replay", "tape.jsonl", "-o", "jsonl"},
		{"replay", "tape.jsonl", "-f", "m", "-o", "json"},
		{"resume", "@latest", "-o", "json", "--approve", "all"},
		{"resume", "@latest", "--record", "later.jsonl"},
		{"replay", "later.jsonl"},
		{"apply-changes", "@latest"},
		{"delete", "run", run},
	} {
		if run == "." && strings.Contains(strings.Join(args, " "), "@latest") {
			continue // the command line was refused, and there is no run
		}
		if args[0] == "attach" && !s.finished() {
			continue // it would wait for a process that does not come
		}
		if _, err := s.agentctl(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// finished reports whether the newest run has ended.
func (s *stage) finished() bool {
	files, _ := filepath.Glob(filepath.Join(s.latest(), "events-*.jsonl")) // the pattern is right
	return len(files) > 0 && strings.Contains(lastLine(files[len(files)-1]), `"type":"run.finished"`)
}
