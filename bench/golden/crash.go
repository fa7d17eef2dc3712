package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// calm is what the run of the crashes comes to when nothing disturbs it, by build.
type calm struct {
	mu    sync.Mutex
	known map[string]undisturbed
}

type undisturbed struct {
	text  string
	lines int
	took  time.Duration
}

// fragile is a run in which a crash can harm something: reads and commands in
// parallel, calls that may never and calls that may safely be repeated, an answer that
// has to be mended. What changes files can happen twice without a difference, so
// that the moment of a crash makes none either.
func fragile() end {
	return end{
		agent: "tools: [{name: read}, {name: grep}, {name: bash}, {name: never}, {name: again}]\npolicyRefs: [{name: p}]\noutput: {retries: 1, schema: {type: object, properties: {ok: {type: boolean}}, required: [ok]}}",
		steps: `- calls: [{tool: read, args: {path: a.txt}}, {tool: read, args: {path: b.txt}}, {tool: grep, args: {pattern: one}}]
- say: first the change
  calls: [{tool: bash, args: {command: "sleep 0.02; echo two"}}]
- calls: [{tool: never, args: {num: 1}}, {tool: again, args: {num: 1}}, {tool: never, args: {num: 2}}]
- calls: [{tool: bash, args: {command: "sleep 0.02; echo three"}}]
- calls: [{tool: again, args: {num: 2}}]
- calls: [{tool: never, args: {num: 3}}]
- say: no JSON
- say: '{"ok": true}'
`,
		docs: allowAll + "\n---\n" + program("never", "retry: Never\nconcurrency: Shared\nworkspaceAccess: ReadWrite", "sleep 0.02; echo done") +
			"\n---\n" + program("again", "retry: Idempotent\nconcurrency: Shared\nworkspaceAccess: ReadWrite", "mkdir -p new; cat > again.json; echo two > a.txt; echo c > new/c.txt; rm -f b.txt; echo done"),
		files: map[string]string{"w/a.txt": "one\n", "w/b.txt": "one\n", "w/same.txt": "same\n"},
	}
}

// doom is when a run is killed: after a line of its journal, or after a time.
type doom struct {
	line  int
	share float64
}

// crashes kills a run of each build, and has the same build resume it.
func crashes(h *harness) ([]scenario, error) {
	var all []scenario
	for n := 1; n <= 70; n += max(1, h.lines) {
		all = append(all, scenario{name: fmt.Sprintf("line/%d", n), play: func(ctx context.Context, s *stage) error { return s.crash(ctx, s.mine, doom{line: n}) }})
	}
	random := rand.New(rand.NewPCG(5, 6)) //nolint:gosec // the same moments each time
	for n := range max(1, h.kills/10) {
		share := random.Float64()
		all = append(all, scenario{name: fmt.Sprintf("moment/%d", n), play: func(ctx context.Context, s *stage) error { return s.crash(ctx, s.mine, doom{share: share}) }})
	}
	return all, nil
}

// crossings kills a run of the old build, and has the build that is compared resume it.
func crossings(h *harness) ([]scenario, error) {
	var all []scenario
	random := rand.New(rand.NewPCG(7, 8)) //nolint:gosec // the same moments each time
	for n := range h.kills {
		d := doom{share: random.Float64()}
		if n%2 == 0 {
			d = doom{line: 1 + random.IntN(65)}
		}
		all = append(all, scenario{name: fmt.Sprint(n), play: func(ctx context.Context, s *stage) error { return s.crash(ctx, s.h.old, d) }})
	}
	return all, nil
}

// crash has a build begin the run and be killed, and the compared one resume it.
func (s *stage) crash(ctx context.Context, first build, d doom) error {
	want, err := s.undisturbed(ctx)
	if err != nil {
		return err
	}
	if err := s.slot.use(first); err != nil {
		return err
	}
	if err := s.killed(ctx, d, want.took); err != nil {
		return err
	}
	if err := s.slot.use(s.mine); err != nil {
		return err
	}
	got, err := s.resumed(ctx)
	if err != nil {
		return err
	}
	if got != want.text {
		return fmt.Errorf("after a kill at %+v the run has not come to the same:\n%s", d, difference(want.text, got))
	}
	s.seen.WriteString(got)
	return nil
}

// undisturbed is what the run comes to with the compared build.
func (s *stage) undisturbed(ctx context.Context) (undisturbed, error) {
	s.h.calm.mu.Lock()
	defer s.h.calm.mu.Unlock()
	if u, ok := s.h.calm.known[s.mine.name]; ok {
		return u, s.prepare()
	}
	if err := s.prepare(); err != nil {
		return undisturbed{}, err
	}
	began := time.Now()
	text, err := s.resumed(ctx)
	if err != nil {
		return undisturbed{}, err
	}
	u := undisturbed{text: text, took: time.Since(began) * 2 / 3}
	if s.h.calm.known == nil {
		s.h.calm.known = map[string]undisturbed{}
	}
	s.h.calm.known[s.mine.name] = u
	if err := clear(s.at("state")); err != nil {
		return u, err
	}
	return u, s.prepare()
}

// prepare writes the manifests and files of the run.
func (s *stage) prepare() error {
	e := fragile()
	if err := s.put("m/all.yaml", e.manifest()); err != nil {
		return err
	}
	for name, text := range e.files {
		if err := s.put(name, text); err != nil {
			return err
		}
	}
	return nil
}

func fragileRun() []string {
	return []string{"run", "-f", "m", "-p", "Go on.", "--workspace", "w", "--approve", "all", "-o", "jsonl"}
}

// killed begins the run and kills it as nothing can be caught.
func (s *stage) killed(ctx context.Context, d doom, took time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := s.command(ctx, fragileRun()...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	kill := func() { _ = syscall.Kill(cmd.Process.Pid, syscall.SIGKILL) } // it may have ended
	var timer *time.Timer
	if d.line == 0 {
		timer = time.AfterFunc(time.Duration(d.share*float64(took)), kill)
	}
	lines := bufio.NewReader(out)
	for n := 1; ; n++ {
		if _, err := lines.ReadString('\n'); err != nil {
			break
		}
		if n == d.line {
			kill()
		}
	}
	if timer != nil {
		defer timer.Stop()
	}
	_ = cmd.Wait() // killed, or done before that
	return nil
}

// resumed brings the run to its end, beginning it if there is none, and returns what
// it has come to.
func (s *stage) resumed(ctx context.Context) (string, error) {
	o := outcome{code: 2}
	var err error
	if begun(s.latest()) {
		o, err = s.quiet(ctx, "resume", "@latest", "--approve", "all", "-o", "json")
	} else {
		// Killed before anything was durable: there is nothing to resume.
		args := fragileRun()
		o, err = s.quiet(ctx, append(args[:len(args)-1], "json")...)
	}
	if err != nil {
		return "", err
	}
	var result struct {
		Phase, Reason, Output string
		ExitCode, Steps       int
		ToolCalls             []struct {
			ID, Tool, State, Decision string
			Args                      json.RawMessage
			Error                     any
			ExitCode                  any
		}
		ChangedFiles any
	}
	if err := json.Unmarshal([]byte(o.stdout), &result); err != nil {
		return "", fmt.Errorf("the end of the run is no object: exit code %d: %w\n%s%s", o.code, err, o.stdout, o.stderr)
	}
	// A call that may have happened already is not repeated unless its tool allows it.
	for i := range result.ToolCalls {
		if c := &result.ToolCalls[i]; c.Error == "unknown" && (c.Tool == "never" || c.Tool == "bash") {
			c.State, c.Error, c.ExitCode = "completed", nil, 0
		}
	}
	text, err := json.MarshalIndent(result, "", " ")
	if err != nil {
		return "", err
	}
	diff, err := s.quiet(ctx, "diff", "@latest")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("exit code %d\n%s\n%s%s", o.code, text, diff.stdout, diff.stderr), nil
}

// begun reports whether the journal of a run has a first line.
func begun(run string) bool {
	if run == "" {
		return false
	}
	files, _ := filepath.Glob(filepath.Join(run, "events-*.jsonl")) // the pattern is right
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), "\n") {
			return true
		}
	}
	return false
}

// lastLine of a file, "" without one.
func lastLine(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return lines[len(lines)-1]
}
