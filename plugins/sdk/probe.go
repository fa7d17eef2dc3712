package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// probes are the tools by which "agentctl plugin test" tries what no call of a
// program's own tools can show. They are served only to that command.
func probes() []Tool {
	type none struct{}
	type size struct {
		Bytes int `json:"bytes"`
	}
	type wait struct {
		Ms int `json:"ms"`
	}
	return []Tool{
		New("probe_echo", "Returns the text.", func(_ context.Context, _ *Call, in probeText) (*Result, error) {
			return &Result{Text: in.Text}, nil
		}),
		New("probe_wait", "Writes a line, then waits and listens.", func(ctx context.Context, call *Call, in wait) (*Result, error) {
			fmt.Fprintln(call.Output(), "begun")
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(time.Duration(in.Ms) * time.Millisecond):
				return &Result{Text: "rested"}, nil
			}
		}),
		New("probe_flood", "Writes that many bytes.", func(_ context.Context, call *Call, in size) (*Result, error) {
			line := []byte(strings.Repeat("0123456789abcde\n", 2<<10))
			for left := in.Bytes; left > 0; left -= len(line) {
				_, _ = call.Output().Write(line[:min(left, len(line))])
			}
			return nil, nil
		}),
		New("probe_panic", "Fails as a defect does.", func(context.Context, *Call, none) (*Result, error) {
			panic("this is a probe")
		}),
		New("probe_print", "Prints the text to stdout, itself and by a program.", probePrint),
		New("probe_environ", "Returns the environment of a program it starts, as a JSON array.", func(ctx context.Context, _ *Call, _ none) (*Result, error) {
			out, err := exec.CommandContext(ctx, "env").Output()
			if err != nil {
				return nil, Errorf("start env: %v", err)
			}
			b, err := json.Marshal(strings.Split(strings.TrimSpace(string(out)), "\n"))
			return &Result{Text: string(b)}, err
		}),
		New("probe_stdin", "Reads stdin to its end and returns how many bytes it held.", func(context.Context, *Call, none) (*Result, error) {
			n, err := io.Copy(io.Discard, os.Stdin)
			if err != nil {
				return nil, Errorf("read stdin: %v", err)
			}
			return &Result{Text: fmt.Sprint(n)}, nil
		}),
		New("probe_spawn", "Starts a program that goes on after the call and returns its process id.", func(context.Context, *Call, none) (*Result, error) {
			c := exec.Command("sleep", "300") //nolint:noctx // it is to outlive the call
			if err := c.Start(); err != nil {
				return nil, Errorf("start sleep: %v", err)
			}
			go func() { _ = c.Wait() }()
			return &Result{Text: fmt.Sprint(c.Process.Pid)}, nil
		}),
		New("probe_ask", "Asks a person the text and returns the answer.", func(ctx context.Context, call *Call, in probeText) (*Result, error) {
			said, err := call.Ask(ctx, in.Text)
			if err != nil {
				return nil, Errorf("%v", err)
			}
			return &Result{Text: said}, nil
		}),
	}
}

func probePrint(ctx context.Context, _ *Call, in probeText) (*Result, error) {
	fmt.Fprintln(os.Stdout, in.Text)
	c := exec.CommandContext(ctx, "cat")
	c.Stdin, c.Stdout = strings.NewReader(in.Text+"\n"), os.Stdout
	if err := c.Run(); err != nil {
		return nil, Errorf("start cat: %v", err)
	}
	return &Result{Text: "printed"}, nil
}

type probeText struct {
	Text string `json:"text"`
}
