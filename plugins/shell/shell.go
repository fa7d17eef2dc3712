// Package shell holds the tool that runs a command line and leaves no process of it behind.
package shell

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"agentctl.dev/agentctl/plugins/sdk"
)

const (
	// defaultTimeout is how long a command may run if neither its call nor its Tool says.
	defaultTimeout = 2 * time.Minute
	// grace is the time between the request to end and the kill.
	grace = 2 * time.Second
	// inText is up to which size output is part of the result's text.
	inText = 24 << 10
	// drain is how long output is awaited once every process is gone.
	drain = time.Second
)

// Tools returns bash and workspace_shell.
func Tools() []sdk.Tool {
	b := &bash{grace: grace}
	return []sdk.Tool{b.tool(), (&listed{b}).tool()}
}

func (b *bash) tool() sdk.Tool {
	return sdk.New("bash",
		"Run a command with bash -c in the workspace. stdin is empty; stdout and stderr come back together with the exit code. Background processes end with the command.",
		b.run)
}

type bashIn struct {
	Command     string `json:"command"`
	Timeout     int    `json:"timeout,omitempty" jsonschema:"milliseconds, default 120000"`
	Workdir     string `json:"workdir,omitempty" jsonschema:"folder within the workspace"`
	Description string `json:"description,omitempty" jsonschema:"what it does, in a few words"`
}

// bash runs commands; its calls share the shell found and the processes known.
type bash struct {
	grace  time.Duration
	find   sync.Once
	shell  string
	forest *forest

	mu   sync.Mutex
	next *ready
	// unbindable is set when the shell cannot load the command that binds it.
	unbindable bool
	preparing  sync.WaitGroup
}

// bashData is the metadata of a result.
type bashData struct {
	Command    string `json:"command"`
	Workdir    string `json:"workdir"`
	DurationMs int64  `json:"durationMs"`
	Bytes      int64  `json:"bytes"`
	// Ended counts the processes that outlived the command and were ended.
	Ended int `json:"ended,omitempty"`
}

func (b *bash) run(ctx context.Context, call *sdk.Call, in bashIn) (*sdk.Result, error) {
	switch {
	case strings.TrimSpace(in.Command) == "":
		return nil, sdk.Errorf("command is empty")
	case strings.ContainsRune(in.Command, 0):
		return nil, sdk.Errorf("command holds a NUL character")
	case in.Timeout < 0:
		return nil, sdk.Errorf("timeout is a number of milliseconds above 0")
	}
	dir, err := workdir(call, in.Workdir)
	if err != nil {
		return nil, err
	}
	defer dir.close()
	b.find.Do(b.prepare)
	if b.shell == "" {
		return nil, sdk.Errorf("there is neither a bash nor an sh to run commands")
	}
	j := &job{grace: b.grace, call: call, out: newOutput(call.MaxOutput), began: time.Now()}
	if !dir.outside() && len(call.Variables) == 0 { // a shell that waits does not have them
		j.process, err = b.handOver(in.Command, dir.path, j)
	}
	if j.process == nil && err == nil {
		j.process, err = b.begin(in.Command, dir, j)
	}
	if err != nil {
		return nil, sdk.Errorf("start the command: %w", err)
	}
	limit, whole := patience(ctx, in.Timeout)
	j.run(ctx, limit)
	if in.Workdir == "" {
		b.preparing.Go(func() { b.prepareNext(dir.path) })
	}
	return j.result(in, limit, whole), nil
}

// begin starts a shell of its own for a command.
func (b *bash) begin(command string, dir *folder, j *job) (*process, error) {
	env := j.call.Environ()
	bound, err := bind(j.call.Binding, b.shell, env, dir.path)
	if err != nil {
		return nil, err
	}
	defer bound.end()
	return b.spawn(dir, env, nil, j.terms(bound), "-c", "--", command)
}

// prepare looks for a shell and makes this process the one that orphans of
// commands come to.
func (b *bash) prepare() {
	b.forest = newForest()
	for _, name := range []string{"bash", "sh", "/bin/bash", "/bin/sh"} {
		if p, err := exec.LookPath(name); err == nil {
			b.shell = p
			return
		}
	}
}

// patience is how long the command may run: what its call says, else the time of a call of
// the Tool. The call's own deadline comes first: the command ends so early before it that
// its output still arrives.
func patience(ctx context.Context, timeout int) (limit time.Duration, whole bool) {
	limit = defaultTimeout
	if timeout > 0 {
		limit = time.Duration(timeout) * time.Millisecond
	}
	end, ok := ctx.Deadline()
	if !ok {
		return limit, true
	}
	left := time.Until(end)
	left -= min(left/4, grace+drain+grace/4)
	if timeout <= 0 || left < limit {
		return max(left, 0), false
	}
	return limit, true
}

// result describes the end of the command.
func (j *job) result(in bashIn, limit time.Duration, whole bool) *sdk.Result {
	res := &sdk.Result{
		Title: title(in), Writes: true,
		Metadata: bashData{in.Command, j.dir, j.took.Milliseconds(), j.out.written(), j.ended},
		Record:   j.record,
	}
	if st, ok := j.cmd.ProcessState.Sys().(syscall.WaitStatus); ok {
		if st.Signaled() {
			res.Signal = st.Signal().String()
		} else {
			code := st.ExitStatus()
			res.ExitCode = &code
		}
	}
	notes := j.notes(limit, whole)
	switch j.why {
	case stopTimeout:
		res.Code = sdk.CodeTimeout
	case stopCancelled:
		res.Code = sdk.CodeCancelled
	case stopNone:
	}
	res.IsError = res.Code != ""
	res.Text = j.text(notes)
	return res
}

// text returns output and notes, as they came; an empty output is described where it is
// shown. Long output is streamed ahead of it in pieces, to avoid another copy.
func (j *job) text(notes []string) string {
	var b strings.Builder
	pieces := j.out.pieces()
	size := 0
	for _, p := range pieces {
		size += len(p)
	}
	var w io.Writer = &b
	if size > inText {
		w = j.call.Output()
	}
	last := byte('\n')
	for _, p := range pieces {
		_, _ = w.Write(p) // neither of the two can fail
		if len(p) > 0 {
			last = p[len(p)-1]
		}
	}
	if last != '\n' && len(notes) > 0 {
		b.WriteByte('\n')
	}
	b.WriteString(strings.Join(notes, "\n"))
	return b.String()
}

// notes are what the model should know beside the output and the exit code.
func (j *job) notes(limit time.Duration, whole bool) []string {
	var notes []string
	switch {
	case j.why == stopTimeout && whole:
		notes = append(notes, fmt.Sprintf("[timed out after %d ms; all processes of the command were ended]", limit.Milliseconds()))
	case j.why == stopTimeout:
		notes = append(notes, fmt.Sprintf("[timed out after %d ms, the limit of the call; all processes of the command were ended]", limit.Milliseconds()))
	case j.why == stopCancelled:
		notes = append(notes, "[cancelled; all processes of the command were ended]")
	case j.ended == 1:
		notes = append(notes, "[a background process of the command was ended with it]")
	case j.ended > 1:
		notes = append(notes, fmt.Sprintf("[%d background processes of the command were ended with it]", j.ended))
	}
	if j.left > 0 {
		notes = append(notes, fmt.Sprintf("[processes that could not be ended: %d]", j.left))
	}
	return notes
}

// title is what people see of the call.
func title(in bashIn) string {
	// The command, not its description: that is the model's own word for it.
	t, rest, more := strings.Cut(strings.TrimSpace(in.Command), "\n")
	if r := []rune(t); len(r) > 80 {
		t = string(r[:79]) + "…"
	}
	if !more {
		return t
	}
	// The first line never replaces all of them.
	lines := "lines"
	n := strings.Count(rest, "\n") + 1
	if n == 1 {
		lines = "line"
	}
	return fmt.Sprintf("%s … (+%d %s)", t, n, lines)
}
