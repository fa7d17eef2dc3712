package sdktest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"agentctl.dev/agentctl/plugins/sdk"
)

type none struct{}

type textIn struct {
	Text string `json:"text" jsonschema:"any text"`
}

type bytesIn struct {
	Bytes int `json:"bytes" jsonschema:"how many"`
}

type milliIn struct {
	Ms int `json:"ms" jsonschema:"milliseconds"`
}

// Fixtures returns the tools that RunFixtures calls: one for each promise of
// the protocol, and some that misbehave.
func Fixtures() []sdk.Tool {
	return []sdk.Tool{
		sdk.New("echo", "Returns the text.", echo),
		sdk.New("fail", "Fails with the text.", fail),
		sdk.New("broken", "Cannot be asked.", broken),
		sdk.New("panics", "Panics with the text.", panics),
		sdk.New("flood", "Streams bytes.", flood),
		sdk.New("large", "Returns a text of bytes at once.", large),
		sdk.New("wait", "Writes a line, then waits and listens.", wait),
		sdk.New("deaf", "Writes a line, then waits and does not listen.", deaf),
		sdk.New("ticks", "Reports progress as fast as it can.", ticks),
		sdk.New("prints", "Prints the text to stdout in every way.", prints),
		sdk.New("environ", "Returns its environment and what a program it starts sees.", environ),
		sdk.New("stdin", "Reads stdin to its end.", stdin),
		sdk.New("daemon", "Leaves a daemon behind and returns its process id.", daemon),
		sdk.New("dies", "Writes the text to stderr and kills itself.", dies),
		sdk.New("about", "Returns the call it got.", about),
		sdk.New("asks", "Asks a person as often as told.", asks),
		sdk.New("history", "Returns what has been said in the run.", history),
		memory(),
	}
}

// memory returns what its process received about the run before its first call.
func memory() sdk.Tool {
	var mu sync.Mutex
	var told []string
	return sdk.New("memory", "Returns what it was told of the past.", func(context.Context, *sdk.Call, none) (*sdk.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		return &sdk.Result{Text: strings.Join(told, "\n"), Metadata: len(told)}, nil
	}, sdk.OnRecall(func(past sdk.Past) {
		if string(past.Metadata) == `"panic"` {
			panic("a bad memory")
		}
		mu.Lock()
		defer mu.Unlock()
		told = append(told, past.Run+" "+past.Workspace+" "+string(past.Metadata[:min(len(past.Metadata), 40)]))
	}))
}

func echo(_ context.Context, _ *sdk.Call, in textIn) (*sdk.Result, error) {
	return &sdk.Result{Text: in.Text, Title: "echo", Metadata: map[string]int{"length": len(in.Text)}}, nil
}

func fail(_ context.Context, _ *sdk.Call, in textIn) (*sdk.Result, error) {
	return nil, fmt.Errorf("fixture: %w", sdk.Errorf("%s", in.Text))
}

func broken(context.Context, *sdk.Call, none) (*sdk.Result, error) {
	return nil, errors.New("the service is not configured")
}

func panics(_ context.Context, _ *sdk.Call, in textIn) (*sdk.Result, error) { panic(in.Text) }

func flood(_ context.Context, call *sdk.Call, in bytesIn) (*sdk.Result, error) {
	chunk := bytes.Repeat([]byte("0123456789abcde\n"), 8<<10)
	for left := in.Bytes; left > 0; left -= len(chunk) {
		_, _ = call.Output().Write(chunk[:min(left, len(chunk))])
	}
	return &sdk.Result{Text: "end"}, nil
}

func large(_ context.Context, _ *sdk.Call, in bytesIn) (*sdk.Result, error) {
	return &sdk.Result{Text: strings.Repeat("x", in.Bytes)}, nil
}

func wait(ctx context.Context, call *sdk.Call, in milliIn) (*sdk.Result, error) {
	fmt.Fprintln(call.Output(), "begun")
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(time.Duration(in.Ms) * time.Millisecond):
		return &sdk.Result{Text: "rested"}, nil
	}
}

func deaf(_ context.Context, call *sdk.Call, in milliIn) (*sdk.Result, error) {
	fmt.Fprintln(call.Output(), "begun")
	<-time.After(time.Duration(in.Ms) * time.Millisecond)
	return &sdk.Result{Text: "rested"}, nil
}

func ticks(ctx context.Context, call *sdk.Call, in milliIn) (*sdk.Result, error) {
	end := time.After(time.Duration(in.Ms) * time.Millisecond)
	for i := 0; ; i++ {
		select {
		case <-end:
			return &sdk.Result{Text: fmt.Sprint(i)}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		default:
			call.Progress(strings.Repeat("é", 4000) + fmt.Sprint(i))
		}
	}
}

func prints(_ context.Context, _ *sdk.Call, in textIn) (*sdk.Result, error) {
	_, _ = io.WriteString(os.Stdout, in.Text+"\n")
	_, _ = syscall.Write(1, []byte(in.Text+"\n"))            // an os.File would close the descriptor when it is collected
	c := exec.Command("sh", "-c", "cat; echo on stderr >&2") //nolint:noctx // ends with its input
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(in.Text+"\n"), os.Stdout, os.Stderr
	if err := c.Run(); err != nil {
		return nil, sdk.Errorf("%v", err)
	}
	return &sdk.Result{Text: "printed"}, nil
}

// Environ is what the fixture environ returns.
type Environ struct {
	Own   []string `json:"own"`
	Child []string `json:"child"`
	Dir   string   `json:"dir"`
}

func environ(ctx context.Context, _ *sdk.Call, _ none) (*sdk.Result, error) {
	out, err := exec.CommandContext(ctx, "/usr/bin/env").Output()
	if err != nil {
		return nil, sdk.Errorf("%v", err)
	}
	dir, _ := os.Getwd()
	e := Environ{Own: os.Environ(), Dir: dir}
	for l := range strings.Lines(string(out)) {
		e.Child = append(e.Child, strings.TrimSuffix(l, "\n"))
	}
	b, err := json.Marshal(e)
	return &sdk.Result{Text: string(b)}, err
}

func stdin(context.Context, *sdk.Call, none) (*sdk.Result, error) {
	b, err := io.ReadAll(os.Stdin)
	return &sdk.Result{Text: fmt.Sprintf("%d bytes, %v", len(b), err)}, nil
}

// daemon detaches in the usual way: a session of its own, its parent gone, its
// descriptors its own.
func daemon(ctx context.Context, _ *sdk.Call, _ none) (*sdk.Result, error) {
	out, err := exec.CommandContext(ctx, "/bin/sh", "-c", `setsid sh -c 'echo $$; exec sleep 300 </dev/null >/dev/null 2>&1' &`).Output()
	if err != nil {
		return nil, sdk.Errorf("%v", err)
	}
	return &sdk.Result{Text: strings.TrimSpace(string(out))}, nil
}

func dies(_ context.Context, _ *sdk.Call, in textIn) (*sdk.Result, error) {
	fmt.Fprintln(os.Stderr, in.Text)
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	<-time.After(time.Minute)
	return nil, err
}

func about(ctx context.Context, call *sdk.Call, _ none) (*sdk.Result, error) {
	_, timed := ctx.Deadline()
	code := 7
	return &sdk.Result{
		Text:     strings.Join([]string{call.ID, call.Run, call.Agent, call.Session, call.Message, call.Workspace, call.Key, fmt.Sprint(call.MaxOutput, timed)}, " "),
		ExitCode: &code, Signal: "killed", Writes: true,
	}, nil
}

type askIn struct {
	Question string   `json:"question" jsonschema:"what to ask"`
	Options  []string `json:"options,omitempty" jsonschema:"what may be answered"`
	Times    int      `json:"times,omitempty" jsonschema:"how often; 0 is once"`
}

func asks(ctx context.Context, call *sdk.Call, in askIn) (*sdk.Result, error) {
	fmt.Fprintln(call.Output(), "begun")
	var said []string
	for range max(in.Times, 1) {
		answer, err := call.Ask(ctx, in.Question, in.Options...)
		switch {
		case errors.Is(err, sdk.ErrNobody):
			return nil, sdk.Errorf("%v", err)
		case err != nil:
			return nil, err
		}
		said = append(said, answer)
	}
	return &sdk.Result{Text: strings.Join(said, "\n")}, nil
}

type historyIn struct {
	Most int `json:"most,omitempty" jsonschema:"how many messages"`
}

func history(ctx context.Context, call *sdk.Call, in historyIn) (*sdk.Result, error) {
	said, err := call.History(ctx, in.Most)
	if err != nil {
		return nil, sdk.Errorf("%v", err)
	}
	var b strings.Builder
	for _, m := range said {
		fmt.Fprintf(&b, "%s %d %.20s\n", m.Role, len(m.Text), m.Text)
	}
	return &sdk.Result{Text: b.String(), Metadata: len(said)}, nil
}
