package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"

	"agentctl.dev/agentctl/runner/storytest"
)

// stories plays the scripts of the command line's tests. What they want to see is
// left to those tests: here the commands they give are compared.
func stories(h *harness) ([]scenario, error) {
	files, err := filepath.Glob(filepath.Join(h.stories, "*.txtar"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no script in %s: %w", h.stories, err)
	}
	var all []scenario
	for _, f := range files {
		c := scenario{name: strings.TrimSuffix(filepath.Base(f), ".txtar")}
		c.skip, err = unplayable(f)
		if err != nil {
			return nil, err
		}
		c.play = func(_ context.Context, s *stage) error { return s.story(f) }
		all = append(all, c)
	}
	return all, nil
}

// unplayable is the first word of a script that neither testscript nor this program
// knows, as the reason not to play it.
func unplayable(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the story: %w", err)
	}
	script, _, _ := strings.Cut(string(text), "\n-- ")
	known := []string{"cd", "chmod", "cmp", "cmpenv", "cp", "env", "exec", "exists", "grep", "kill", "mkdir", "mv", "rm", "skip", "stderr", "stdin", "stdout", "stop", "symlink", "ttyin", "ttyout", "unix2dos", "unquote", "wait"}
	for line := range strings.Lines(script) {
		words := slices.DeleteFunc(strings.Fields(line), func(w string) bool { return strings.HasPrefix(w, "[") || w == "!" || w == "?" })
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		for _, own := range []string{"mcp-client", "mcp-oauth", "xdg-open"} {
			if slices.Contains(words, own) {
				return fmt.Sprintf("it uses %s, a program of the command line's own tests", own), nil
			}
		}
		if !slices.Contains(known, words[0]) && storytest.Commands()[words[0]] == nil {
			return fmt.Sprintf("it uses %q, which storytest does not have", words[0]), nil
		}
	}
	return "", nil
}

func (s *stage) story(file string) error {
	calls, shims := s.at("calls"), s.at("shims")
	for _, d := range []string{calls, shims} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	// A script, so that a copy of it somewhere else, without an environment, still
	// finds its way.
	if err := s.put("shims/agentctl", fmt.Sprintf("#!/bin/sh\nexec %s %s %d %s %s \"$@\"\n", self, wrapWord, os.Getpid(), calls, s.slot.path("bin", "agentctl"))); err != nil {
		return err
	}
	// A program, not a script: a sandbox shows a plugin's own file and not this one.
	for name := range storyPrograms() {
		if err := copyFile(self, s.at("shims", name), 0o755); err != nil {
			return err
		}
	}
	bare := s.at("bare")
	if err := os.Mkdir(bare, 0o755); err != nil {
		return err
	}
	if err := os.Symlink(s.slot.path("bin", "agentctl-tools"), filepath.Join(bare, "agentctl-tools")); err != nil {
		return err
	}
	end := playScript(testscript.Params{
		Files:               []string{file},
		WorkdirRoot:         s.dir,
		RequireExplicitExec: true,
		ContinueOnError:     true,
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, ".home")
			for k, v := range map[string]string{
				"PATH": shims + ":" + env.Getenv("PATH"), "AGENTCTL_STATE": filepath.Join(env.WorkDir, ".state"), "AGENTCTL_LIBEXEC": s.slot.path("bin"),
				"LIBEXEC_WITHOUT_SANDBOX": bare, "AGENTCTL_OUTER_ISOLATION": "container", "HOME": home,
				"GIT_CONFIG_NOSYSTEM": "1", "NO_COLOR": "", "REPOSITORY": s.h.tree,
			} {
				env.Setenv(k, v)
			}
			return os.Mkdir(home, 0o700)
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "sandbox":
				return canSandbox(), nil
			case "cgroup2":
				_, err := os.Stat("/sys/fs/cgroup/cgroup.controllers")
				return err == nil, nil
			case "record":
				actions, err := os.ReadFile("/proc/sys/kernel/seccomp/actions_avail")
				return err == nil && strings.Contains(string(actions), "user_notif"), nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: storytest.Commands(),
	})
	s.note("the script %s", withoutTexts(end))
	if err := s.invocations(calls); err != nil {
		return err
	}
	// The workspace of a story is often its folder, which holds outputs with times.
	sizes := regexp.MustCompile(`("files":[0-9]+,"bytes":|[0-9]+ files?, )[0-9,]+`)
	text := sizes.ReplaceAllString(s.seen.String(), "${1}SIZE")
	s.seen.Reset()
	s.seen.WriteString(text)
	return nil
}

// canSandbox reports whether this host has user namespaces.
func canSandbox() bool {
	try := exec.Command("true") //nolint:noctx // ends by itself
	try.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	return try.Run() == nil
}

// invocations notes what the calls of agentctl printed. Of a command that a loop
// repeats until something has happened only the last counts.
func (s *stage) invocations(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return err
	}
	var all []invocation
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		var in invocation
		if err := json.Unmarshal(b, &in); err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
		all = append(all, in)
	}
	sequence(all)
	last := map[string]int{}
	for i, in := range all {
		last[in.key(i)] = i
	}
	for i, in := range all {
		if last[in.key(i)] != i || racing()[s.name+": "+strings.Join(in.Args, " ")] != "" {
			continue
		}
		s.note("stdin %s, signal %q", in.Stdin, in.Signal)
		s.tell(in.Args, outcome{in.Code, in.Stdout, in.Stderr})
	}
	return nil
}

// racing are invocations whose end depends on the moment, with the reason. They are
// not compared.
func racing() map[string]string {
	return map[string]string{
		"stories/attack: run -f mount.yaml -p go --workspace other --in-place --approve all": "its tool lists files in the order in which a folder has them",
		"stories/cancel: events @latest":                   "a loop pipes it into grep -q, which closes the pipe at the first match",
		"stories/signal: run -f agent.yaml -p go -o jsonl": "it is signalled when its call is in the journal, before or after the program of the call is started; the part ends has a signal behind that",
		"stories/approve: approve @latest/call_1_2":        "it is hung up when the run that it answers ends first and closes the terminal",
	}
}

// sequence orders invocations by their beginning, and those that overlap by what was
// asked: which of them was first depends on the moment.
func sequence(all []invocation) {
	slices.SortFunc(all, func(a, b invocation) int { return cmp.Compare(a.Began, b.Began) })
	for i := 0; i < len(all); {
		j, end := i+1, all[i].Ended
		for j < len(all) && all[j].Began < end {
			end = max(end, all[j].Ended)
			j++
		}
		slices.SortStableFunc(all[i:j], func(a, b invocation) int { return slices.Compare(a.Args, b.Args) })
		i = j
	}
}

// key is the same for the repetitions of a command by one shell: testscript itself
// starts all others.
func (in invocation) key(i int) string {
	if in.Parent == 0 {
		return strconv.Itoa(i)
	}
	return strconv.Itoa(in.Parent) + strings.Join(in.Args, "\x00")
}

// scriptEnd is how a script ended: testscript knows it from here.
type scriptEnd struct{ log strings.Builder }

type stopped struct{ why string }

func (e *scriptEnd) Skip(args ...any) { panic(stopped{"was skipped: " + fmt.Sprint(args...)}) }

func (e *scriptEnd) Fatal(args ...any)                  { panic(stopped{"failed: " + fmt.Sprint(args...)}) }
func (e *scriptEnd) FailNow()                           { panic(stopped{"failed"}) }
func (e *scriptEnd) Parallel()                          {}
func (e *scriptEnd) Log(args ...any)                    { fmt.Fprintln(&e.log, args...) }
func (e *scriptEnd) Run(_ string, f func(testscript.T)) { f(e) }
func (e *scriptEnd) Verbose() bool                      { return false }

// playScript returns how the script ended and, where it failed, at which lines.
func playScript(p testscript.Params) (end string) {
	e := &scriptEnd{}
	defer func() {
		if r := recover(); r != nil {
			st, ok := r.(stopped)
			if !ok {
				panic(r)
			}
			end = st.why
			for _, line := range failures().FindAllString(e.log.String(), -1) {
				end += "\n  " + line
			}
		}
	}()
	testscript.RunT(e, p)
	return "passed"
}

// withoutTexts leaves out of a script's end that a text was not found: the script belongs
// to the new build, whose texts may have changed, and what is printed is compared.
func withoutTexts(end string) string {
	lines := strings.Split(end, "\n")
	others := slices.DeleteFunc(lines[1:], func(line string) bool {
		return strings.Contains(line, ": no match for `") || strings.Contains(line, ": unexpected match for `")
	})
	if len(others) == 0 {
		return "ended"
	}
	return strings.Join(append(lines[:1:1], others...), "\n")
}

func failures() *regexp.Regexp { return regexp.MustCompile(`FAIL: \S+txtar:\d+: .*`) }
