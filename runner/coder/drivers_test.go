package coder

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// ended is a program that has ended.
type ended Exit

func (e ended) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

func (e ended) Wait() Exit         { return Exit(e) }
func (e ended) Kill(time.Duration) {}

// play runs a driver with a program that prints a log in pieces and ends.
func play(t *testing.T, d Driver, log []byte, exit Exit, stderr string) *Ended {
	t.Helper()
	e, err := Run(t.Context(), Job{
		Driver: &d, Limits: DefaultLimits(), Task: Task{Prompt: "p", Dir: "/srv/repo", Home: "/home/agent", Model: "m", Endpoint: "http://127.0.0.1:3128", Token: "t"},
		Launch: func(_ context.Context, _ Start, out, errs io.Writer) (Program, error) {
			for piece := range slices.Chunk(log, 100) {
				_, _ = out.Write(piece)
			}
			_, _ = io.WriteString(errs, stderr)
			return ended(exit), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestHowAProgramEnded(t *testing.T) {
	for _, c := range []struct {
		driver, log string
		exit        Exit
		stderr      string
		want        Outcome
		text, why   string
		reason      string
	}{
		{"opencode", "opencode-success", Exit{}, "", "completed", "I have changed it.", "", "the events of 1.18.33"},
		{"codex", "codex-success", Exit{}, "", "completed", "I have changed it.", "", "the events of 0.169.0"},
		{"claude", "claude-success", Exit{}, "", "completed", "I have changed it.", "", "the events of 2.1.197"},
		{"opencode", "opencode-overflow", Exit{Code: 1}, "", "completed", "The bug is mended.", "", "it has recovered, and exits with 1 all the same; synthetic texts are no answer"},
		{"opencode", "opencode-success", Exit{Code: 2}, "", "failed", "I have changed it.", "exit code 2", "another exit code is a failure, whatever was said"},
		{"opencode", "opencode-success", Exit{Code: -1, Signal: "killed"}, "", "failed", "I have changed it.", "signal killed", "so is a signal"},
		{"opencode", "opencode-rejected", Exit{}, "! permission requested: bash; auto-rejecting", "denied", "", "it has refused what its model asked for, and ended without an answer", "exit code 0 proves nothing"},
		{"opencode", "opencode-error", Exit{Code: 1}, "", "failed", "", "exit code 1: APIError: limits.maxCost is reached", "a session error"},
		{"codex", "codex-reconnect", Exit{}, "", "completed", "It is mended.", "", "errors from which it recovers are not its end"},
		{"codex", "codex-failed", Exit{Code: 1}, "", "failed", "I will look at it.", "exit code 1: stream disconnected before completion", "its last message is no answer"},
		{"codex", "codex-failed", Exit{}, "", "incomplete", "I will look at it.", "exit code 0 without a complete answer: stream disconnected before completion", "not even with exit code 0"},
		{"claude", "claude-max-turns", Exit{Code: 1}, "", "failed", "", "exit code 1: error_max_turns", "it has run out of turns"},
		{"claude", "claude-denied", Exit{}, "", "denied", "", "it has refused what its model asked for, and ended without an answer", "an empty answer is none"},
		{"opencode", "junk", Exit{}, "", "incomplete", "", "exit code 0 without a complete answer", "lines that are no events are kept and left out"},
		{"codex", "junk", Exit{Code: 1}, "old\nit is broken\n", "failed", "", "exit code 1: it is broken", "the last line on stderr says why"},
		{"codex", "empty", Exit{Code: 1}, "old\nneeds Node.js 22\n", "failed", "", "exit code 1 without an event: needs Node.js 22", "a program that needs a newer node has no events"},
		{"claude", "junk", Exit{}, "", "incomplete", "", "exit code 0 without a complete answer", ""},
	} {
		log, err := os.ReadFile(filepath.Join("testdata", c.log+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		d, _ := DriverOf(c.driver)
		e := play(t, d, log, c.exit, c.stderr)
		if e.Outcome != c.want || e.Said.Text != c.text || e.Why != c.why {
			t.Errorf("%s %s (%s): %s, %q, because %q", c.driver, c.log, c.reason, e.Outcome, e.Said.Text, e.Why)
		}
		if e.Stdout.Total != int64(len(log)) || string(e.Stdout.Kept) != string(log) {
			t.Errorf("%s %s: the log is not kept as it was printed", c.driver, c.log)
		}
		if warned := e.Warning != ""; warned != (c.log == "opencode-overflow") {
			t.Errorf("%s %s: warning %q", c.driver, c.log, e.Warning)
		}
	}
}

func TestOnlyListedArgumentsArePassedOn(t *testing.T) {
	for _, c := range []struct {
		driver string
		args   []string
		want   string
	}{
		{"opencode", []string{"--variant", "high", "--thinking"}, ""},
		{"opencode", []string{"--model", "other/model"}, `"--model" is not passed on to opencode`},
		{"opencode", []string{"--auto"}, `"--auto" is not passed on`},
		{"opencode", []string{"--variant"}, "--variant has no value"},
		{"opencode", []string{"--variant", "--auto"}, `--variant cannot be "--auto"`},
		{"opencode", []string{"--title", "--auto"}, `--title cannot be "--auto"`},
		{"opencode", []string{"--variant=high"}, "is not passed on"},
		{"opencode", []string{"--attach", "http://example.com"}, "is not passed on"},
		{"codex", []string{"-c", "model_reasoning_effort=high"}, ""},
		{"codex", []string{"-c", "sandbox_mode=danger-full-access"}, "-c cannot be"},
		{"codex", []string{"-c", "model_reasoning_effort=high\nx=1"}, "-c cannot be"},
		{"codex", []string{"--add-dir", "/"}, "is not passed on"},
		{"claude", []string{"--max-turns", "3"}, ""},
		{"claude", []string{"--dangerously-skip-permissions"}, "is not passed on"},
		{"claude", []string{"--"}, "is not passed on"},
		{"claude", slices.Repeat([]string{"--max-turns", "3"}, 9), "at most 16"},
	} {
		d, _ := DriverOf(c.driver)
		err := d.Check(c.args)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %v: %v, want %q", c.driver, c.args, err, c.want)
		}
	}
}

// What a program is given: the prompt as one argument behind --, a home of its own, the
// token of the call and no key, and our server as its model.
func TestWhatAProgramIsStartedWith(t *testing.T) {
	for _, d := range Drivers() {
		task := Task{
			Prompt: "--help $(id)\n", Dir: "/srv/repo", Home: "/home/agent", Model: "gpt \"x\"", Endpoint: "http://127.0.0.1:3128", Token: "tok-1",
			Window: 1000, Contained: true, Session: "ses_1", Args: []string{"--extra"},
		}
		s := d.Start(task)
		n := len(s.Args)
		if n < 3 || s.Args[n-1] != task.Prompt || s.Args[n-2] != "--" || !slices.Contains(s.Args, "ses_1") || !slices.Contains(s.Args, "--extra") {
			t.Errorf("%s: %q", d.Name, s.Args)
		}
		all := strings.Join(s.Env, "\n")
		for _, text := range s.Files {
			all += text
		}
		if !strings.Contains(all, "HOME=/home/agent") || !strings.Contains(all, "tok-1") || !strings.Contains(all, "http://127.0.0.1:3128") {
			t.Errorf("%s: %s", d.Name, all)
		}
		for _, kv := range s.Env {
			if name, value, ok := strings.Cut(kv, "="); !ok || name == "" || strings.ContainsRune(value, 0) {
				t.Errorf("%s: %q", d.Name, kv)
			}
		}
		task.ReadOnly = true
		if read := d.Start(task); slices.Equal(read.Args, s.Args) && slices.Equal(read.Env, s.Env) && d.Name != "codex" {
			t.Errorf("%s: a report is started as a change", d.Name)
		}
		task.Contained = false
		if d.Name == "codex" && !slices.Contains(d.Start(task).Args, "read-only") {
			t.Error("codex: outside of a sandbox its own must hold it")
		}
		if strings.TrimSpace(d.Install) == "" || !strings.HasSuffix(d.Install, d.Tested) {
			t.Errorf("%s: %q does not install %s", d.Name, d.Install, d.Tested)
		}
	}
}

// OpenCode installs the packages that its lock file does not name, and all of them if there is no
// folder node_modules.
func TestOpencodeFindsNothingToInstall(t *testing.T) {
	d, _ := DriverOf("opencode")
	files := d.Start(Task{Prompt: "x", Dir: "/srv/repo", Home: "/home/agent", Model: "m"}).Files
	var lock struct {
		Packages map[string]struct {
			Dependencies map[string]string `json:"dependencies"`
		} `json:"packages"`
	}
	if err := json.Unmarshal([]byte(files["config/opencode/package-lock.json"]), &lock); err != nil {
		t.Fatal(err)
	}
	if lock.Packages[""].Dependencies["@opencode-ai/plugin"] == "" {
		t.Errorf("the lock file is %+v", lock)
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(files)), func(name string) bool { return path.Dir(name) == "config/opencode/node_modules" }) {
		t.Errorf("no node_modules among %q", slices.Collect(maps.Keys(files)))
	}
}

// A prompt that Linux takes as no argument is what the program reads, and no part of its
// arguments or its environment.
func TestALongPromptIsStandardInput(t *testing.T) {
	for _, d := range Drivers() {
		for size, long := range map[int]bool{longestArgument: false, longestArgument + 1: true, 1 << 20: true} {
			task := Task{Prompt: strings.Repeat("x", size), Dir: "/srv/repo", Home: "/home/agent", Model: "m", Session: "ses_1"}
			s := d.Start(task)
			if long != (s.Stdin == task.Prompt) || long == (s.Stdin == "") || long == slices.Contains(s.Args, task.Prompt) {
				t.Errorf("%s: of %d bytes %d are standard input", d.Name, size, len(s.Stdin))
			}
			for _, arg := range slices.Concat(s.Args, s.Env) {
				if len(arg) > 128<<10-1 {
					t.Errorf("%s: an argument of %d bytes", d.Name, len(arg))
				}
			}
			if reads := s.Args[len(s.Args)-1] == "-"; reads != (long && d.Name == "codex") {
				t.Errorf("%s: %q", d.Name, s.Args[len(s.Args)-1])
			}
		}
	}
}

func TestTheVersionOfAProgram(t *testing.T) {
	for name, said := range map[string]string{"opencode": "1.18.33\n", "codex": "codex-cli 0.169.0\n", "claude": "2.1.197 (Claude Code)\n"} {
		d, _ := DriverOf(name)
		if got := d.Version(said); got != d.Tested {
			t.Errorf("%s: %q", name, got)
		}
		for _, other := range []string{"", "error: no", "usage: x"} {
			if got := d.Version(other); got != "" {
				t.Errorf("%s: %q is version %q", name, other, got)
			}
		}
	}
}
