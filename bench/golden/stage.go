package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"agentctl.dev/agentctl/runner/model/modeltest"
)

// patience ends a command that hangs. Nothing is slow when it takes less: machines
// are busy.
const patience = 2 * time.Minute

// stage is where one build plays one case: a new folder with a workspace, manifests,
// a home and a state folder. It collects what is seen.
type stage struct {
	h    *harness
	slot *slot
	// mine is the build that is compared; a case may use the old one first.
	mine build
	name string
	dir  string
	env  []string
	seen strings.Builder
}

// play plays a case and returns what was seen of it.
func (s *stage) play(ctx context.Context, c scenario) (string, error) {
	s.dir = s.slot.path("case")
	if err := clear(s.dir); err != nil {
		return "", fmt.Errorf("remove the last case: %w", err)
	}
	for _, d := range []string{"m", "w", "home", "tmp"} {
		if err := os.MkdirAll(s.at(d), 0o700); err != nil {
			return "", err
		}
	}
	if err := s.slot.use(s.mine); err != nil {
		return "", err
	}
	s.env = []string{
		"PATH=" + s.slot.path("bin") + ":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=" + s.at("home"), "AGENTCTL_STATE=" + s.at("state"), "AGENTCTL_LIBEXEC=" + s.slot.path("bin"),
		"GIT_CONFIG_NOSYSTEM=1", "TMPDIR=" + s.at("tmp"), "LANG=C.UTF-8", "TZ=UTC", "GOLDEN_KEY=" + modeltest.Key, "NO_COLOR=",
	}
	if err := c.play(ctx, s); err != nil {
		return "", err
	}
	return s.seen.String(), nil
}

func (s *stage) at(name ...string) string {
	return filepath.Join(append([]string{s.dir}, name...)...)
}

// put writes a file of the case.
func (s *stage) put(name, text string) error {
	path := s.at(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	mode := os.FileMode(0o600)
	if strings.HasPrefix(text, "#!") {
		mode = 0o755
	}
	return os.WriteFile(path, []byte(text), mode)
}

// note adds a line to what is seen.
func (s *stage) note(format string, args ...any) { fmt.Fprintf(&s.seen, format+"\n", args...) }

// outcome is how a command ended.
type outcome struct {
	code           int
	stdout, stderr string
}

// agentctl runs the program and notes what it prints.
func (s *stage) agentctl(ctx context.Context, args ...string) (outcome, error) {
	o, err := s.quiet(ctx, args...)
	if err == nil {
		s.tell(args, o)
	}
	return o, err
}

// tell notes a command and how it ended.
func (s *stage) tell(args []string, o outcome) {
	s.note("$ agentctl %s", strings.Join(args, " "))
	s.note("exit code %d", o.code)
	s.seen.WriteString(block("stdout", o.stdout))
	s.seen.WriteString(block("stderr", o.stderr))
}

// quiet runs the program.
func (s *stage) quiet(ctx context.Context, args ...string) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := s.command(ctx, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	return ended(ctx, cmd, cmd.Run(), &stdout, &stderr)
}

func ended(ctx context.Context, cmd *exec.Cmd, err error, stdout, stderr *bytes.Buffer) (outcome, error) {
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		return outcome{}, fmt.Errorf("run %s: %w", cmd.Args, err)
	} else if ok && exit.ExitCode() < 0 && ctx.Err() != nil {
		return outcome{}, fmt.Errorf("%s did not end in time:\n%s", cmd.Args, stderr)
	}
	return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}, nil
}

// command is agentctl in the workspace's parent, in a process group of its own.
func (s *stage) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.slot.path("bin", "agentctl"), args...)
	cmd.Dir, cmd.Env = s.dir, s.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// block is a text of a command. Events are put into an order that does not depend
// on the moment.
func block(name, text string) string {
	if text == "" {
		return ""
	}
	if all, ok := parseEvents(text); ok {
		return name + ": events\n" + steady(all)
	}
	if !strings.HasSuffix(text, "\n") {
		text += "(no line break)\n"
	}
	return name + ":\n" + text
}

// journals notes the events and blobs of every run of the state folder.
func (s *stage) journals() error {
	runs, err := filepath.Glob(s.at("state", "runs", "*"))
	if err != nil {
		return err
	}
	slices.SortFunc(runs, func(a, b string) int { return strings.Compare(ulidOf(a), ulidOf(b)) })
	for _, run := range runs {
		if err := s.journal(run); err != nil {
			return err
		}
	}
	return nil
}

func ulidOf(run string) string { return run[max(0, len(run)-26):] }

func (s *stage) journal(run string) error {
	files, err := filepath.Glob(filepath.Join(run, "events-*.jsonl"))
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		text.Write(b)
	}
	s.seen.WriteString(block("journal of "+filepath.Base(run), text.String()))
	blobs, err := filepath.Glob(filepath.Join(run, "blobs", "*"))
	if err != nil {
		return err
	}
	var all []string
	for _, f := range blobs {
		b, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		if len(b) > 256<<10 {
			b = fmt.Appendf(nil, "%d bytes", len(b))
		}
		all = append(all, normal(string(b)))
	}
	slices.Sort(all)
	for _, b := range all {
		s.seen.WriteString("blob:\n" + b + "\n")
	}
	return nil
}

// latest is the folder of the newest run, "" without one.
func (s *stage) latest() string {
	runs, _ := filepath.Glob(s.at("state", "runs", "*")) // the pattern is right
	if len(runs) == 0 {
		return ""
	}
	slices.SortFunc(runs, func(a, b string) int { return strings.Compare(ulidOf(a), ulidOf(b)) })
	return runs[len(runs)-1]
}

// object is the JSON object that a command printed.
func object(text string) map[string]any {
	var v map[string]any
	_ = json.Unmarshal([]byte(text), &v) // nil says it was none
	return v
}
