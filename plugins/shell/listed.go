package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"agentctl.dev/agentctl/plugins/sdk"
)

const (
	// listedTime is how long a listed command may run.
	listedTime = 3 * time.Second
	// listedGrace is short: such a command has nothing to put in order.
	listedGrace = 200 * time.Millisecond
	// listedOutput is how much of its output is kept.
	listedOutput = 256 << 10
	// maxArgs and maxArgLen bound the arguments.
	maxArgs   = 64
	maxArgLen = 4096
	// maxShown is how much of a refused word a warning repeats.
	maxShown = 100
)

// listedSchema is written by hand for its bounds.
const listedSchema = `{"type":"object","properties":{"command":{"type":"string","minLength":1,"maxLength":64},` +
	`"args":{"type":"array","maxItems":64,"items":{"type":"string","maxLength":4096}},` +
	`"cwd":{"type":"string","maxLength":4096,"description":"folder within the workspace"}},"required":["command"],"additionalProperties":false}`

// listed answers workspace_shell. It shares with bash what is known of processes: whatever
// runs without belonging to a known command is ended.
type listed struct{ *bash }

func (l *listed) tool() sdk.Tool {
	return sdk.New("workspace_shell",
		fmt.Sprintf("Run one of these commands without a shell, to look at the workspace: %s. Patterns, pipes and variables are not expanded. Ends after 3 s; 256 KiB of output are kept.", offered()),
		l.run, sdk.Schema(json.RawMessage(listedSchema)))
}

type listedIn struct {
	Command string   `json:"command"`
	Args    []string `json:"args,omitempty"`
	Cwd     string   `json:"cwd,omitempty"`
}

// listedData is the metadata of a result, and the text of a refusal.
type listedData struct {
	OK      bool     `json:"ok"`
	Command string   `json:"command"`
	Args    []string `json:"args,omitempty"`
	Cwd     string   `json:"cwd,omitempty"`
	// Warnings are why a call was refused: then no part of it has run.
	Warnings   []string `json:"warnings,omitempty"`
	DurationMs int64    `json:"durationMs,omitempty"`
	Bytes      int64    `json:"bytes,omitempty"`
}

// run runs the command, or refuses it. A refusal is a result with the reason.
func (l *listed) run(ctx context.Context, call *sdk.Call, in listedIn) (*sdk.Result, error) {
	data := listedData{Command: in.Command, Args: in.Args, Cwd: in.Cwd}
	res, err := l.do(ctx, call, in)
	if ctx.Err() != nil && err != nil {
		return nil, err
	}
	if err == nil {
		data.OK = true
		data.DurationMs, data.Bytes = res.took.Milliseconds(), res.out.written()
		return res.listedResult(in, data), nil
	}
	data.Warnings = []string{err.Error()}
	shown := data
	shown.Args = nil // the model has just written them
	line, err := json.Marshal(shown)
	if err != nil {
		return nil, err
	}
	return &sdk.Result{Text: string(line), Title: "refused: " + in.title(), Metadata: data, IsError: true}, nil
}

// do checks the call and follows the command to its end. An error is a refusal.
func (l *listed) do(ctx context.Context, call *sdk.Call, in listedIn) (*job, error) {
	l.find.Do(l.prepare)
	limit, _ := patience(ctx, int(listedTime.Milliseconds()))
	end := time.Now().Add(limit)
	dir, err := within(call, "cwd", in.Cwd, "name a folder within it")
	if err != nil {
		return nil, err
	}
	root, err := within(call, "cwd", "", "")
	if err != nil {
		return nil, err
	}
	place := &place{root: root.path, dir: dir.path}
	p, err := in.check(place)
	if err != nil {
		return nil, err
	}
	file, err := place.find(in.Command)
	if err != nil {
		return nil, err
	}
	args := in.Args
	if in.Command == "git" && !p.neutral {
		if args, err = l.gitArgs(ctx, call, place, file, in.Args, end); err != nil {
			return nil, err
		}
	}
	at := place.dir
	if p.neutral {
		at = "/" // a folder can have settings that choose another version of a program, and run it
	}
	return l.follow(ctx, call, place, at, end, listedOutput, append([]string{file}, args...))
}

// follow runs a program to its end, or to that of its time.
func (l *listed) follow(ctx context.Context, call *sdk.Call, at *place, dir string, end time.Time, most int64, argv []string) (*job, error) {
	if call.MaxOutput > 0 {
		most = min(most, call.MaxOutput)
	}
	cmd := exec.Command(argv[0], argv[1:]...) //nolint:noctx // the whole tree is ended, not the one process a context knows
	cmd.Args[0] = filepath.Base(argv[0])
	cmd.Dir, cmd.Env = dir, at.environment(dir)
	j := &job{grace: listedGrace, call: call, out: newOutput(most), began: time.Now()}
	bound, err := bind(call.Binding, argv[0], cmd.Env, dir)
	if err != nil {
		return nil, sdk.Errorf("start %s: %w", argv[0], err)
	}
	defer bound.end()
	if j.process, err = l.forest.start(cmd, dir, j.terms(bound)); err != nil {
		return nil, sdk.Errorf("start %s: %w", argv[0], err)
	}
	j.run(ctx, max(time.Until(end), 0))
	return j, nil
}

// listedResult describes the end of a listed command.
func (j *job) listedResult(in listedIn, data listedData) *sdk.Result {
	res := &sdk.Result{Title: in.title(), Metadata: data, Record: j.record}
	if st, ok := j.cmd.ProcessState.Sys().(syscall.WaitStatus); ok {
		if st.Signaled() {
			res.Signal = st.Signal().String()
		} else {
			code := st.ExitStatus()
			res.ExitCode = &code
		}
	}
	switch j.why {
	case stopTimeout:
		res.Code = sdk.CodeTimeout
	case stopCancelled:
		res.Code = sdk.CodeCancelled
	case stopNone:
	}
	res.IsError = res.Code != ""
	res.Text = j.text(j.notes(listedTime, true))
	return res
}

// title is what people see of the call.
func (in *listedIn) title() string {
	return title(bashIn{Command: strings.Join(append([]string{in.Command}, in.Args...), " ")})
}

// check refuses what is not in the list.
func (in *listedIn) check(at *place) (program, error) {
	p, ok := programs[in.Command]
	if !ok {
		return p, sdk.Errorf("%s is not in the list of commands: %s", word(in.Command), offered())
	}
	if len(in.Args) > maxArgs {
		return p, sdk.Errorf("there are %d arguments, more than %d", len(in.Args), maxArgs)
	}
	for _, a := range in.Args {
		switch {
		case len(a) > maxArgLen:
			return p, sdk.Errorf("an argument has %d bytes, more than %d", len(a), maxArgLen)
		case strings.ContainsRune(a, 0):
			return p, sdk.Errorf("an argument holds a NUL character")
		case strings.HasPrefix(a, "~"):
			return p, sdk.Errorf("%s: no shell replaces the ~: write the path", word(a))
		}
	}
	if slices.ContainsFunc(p.versions, func(v string) bool { return slices.Equal(in.Args, []string{v}) }) {
		return program{neutral: true}, nil
	}
	return p, p.checkArgs(in.Command, in.Args, at)
}

// word is a word of the model as a warning repeats it.
func word(s string) string {
	if len(s) > maxShown {
		s = string(whole([]byte(s[:maxShown]))) + "…"
	}
	return fmt.Sprintf("%q", s)
}
