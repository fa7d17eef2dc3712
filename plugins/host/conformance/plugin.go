package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/plugins/internal/toolpb"
)

var handshakeCheck = check{
	name: "handshake", promise: "it starts, prints one line that says how to be reached, and describes its tools",
	fix: "print 1|1|unix|PATH|grpc and a newline, first and once the server listens on PATH inside $PLUGIN_UNIX_SOCKET_DIR; write everything else to stderr; a program that is started for each call is no plugin, and tried with --exec",
	try: func(ctx context.Context, t *trial) error {
		return t.with(ctx, func(p *host.Plugin) error {
			t.probes = map[string]bool{}
			for _, tool := range p.Tools() {
				if strings.HasPrefix(tool.Name, "probe_") {
					t.probes[tool.Name] = true
				} else {
					t.tools = append(t.tools, tool)
				}
			}
			if len(t.tools) == 0 {
				return errors.New("it serves no tool of its own")
			}
			return nil
		})
	},
}

// pluginChecks are the promises of every plugin program.
func pluginChecks() []check {
	return []check{
		{
			name: "schema", promise: "each tool has a description and a JSON Schema whose type is object",
			fix: "a model knows of a tool only what these two say", try: schema,
		},
		{
			name: "unknown tool", promise: "a call of a tool it does not serve is a result with code unknown_tool",
			fix: "answer with a result that has is_error and code \"unknown_tool\"", try: unknownTool,
		},
		{
			name: "bad arguments", promise: "arguments that do not fit the schema are an error result, and nothing is done",
			fix: "hold the arguments against the schema before anything else and answer with code \"schema\"", try: badArguments,
		},
		{
			name: "large request", promise: "a request of 6 MiB is answered",
			fix: "raise the server's receive limit (gRPC's default is 4 MiB) to 64 MiB", try: largeRequest,
		},
		{
			name: "parallel calls", promise: "64 calls at once are all answered, and none waits for another",
			fix: "handle each call in a thread or task of its own, at least 64 of them", try: parallelCalls,
		},
		{
			name: "deadline", promise: "a call ends by itself when deadline_ms have passed, with code timeout and the output so far", probe: "probe_wait", attempts: 2,
			fix: "start a timer with each call and end the call when it fires", try: func(ctx context.Context, t *trial) error {
				return deadline(ctx, t, Sample{"probe_wait", []byte(`{"ms":60000}`)}, "begun\n")
			},
		},
		{
			name: "cancel", promise: "a cancelled call ends at once and the program keeps running", probe: "probe_wait", attempts: 2,
			fix: "implement the method Cancel: end the call of that ticket and return when it has ended", try: func(ctx context.Context, t *trial) error {
				return cancel(ctx, t, Sample{"probe_wait", []byte(`{"ms":60000}`)})
			},
		},
		{
			name: "10 MB output", promise: "10 MB of output arrive whole, and no more than max_output_bytes when it is less", probe: "probe_flood",
			fix: "send output in chunks of at most 32 KB; above max_output_bytes count and drop it, and tell how much in dropped_bytes", try: bigOutput,
		},
		{
			name: "panic", promise: "a tool that fails as a defect does is an error result, and the program keeps running", probe: "probe_panic",
			fix: "catch everything a tool can throw and answer with code \"tool\"", try: panics,
		},
		{
			name: "stdout pollution", promise: "what tools and their programs print to stdout does no harm", probe: "probe_print",
			fix: "make file descriptor 1 a copy of stderr once the handshake line is out", try: pollution,
		},
		{
			name: "stdin", promise: "stdin is empty and a tool that reads it ends", probe: "probe_stdin",
			fix: "leave stdin as it was given", try: stdin,
		},
		{
			name: "leaked environment", promise: "what a tool starts sees the declared environment, without the variables of the handshake", probe: "probe_environ",
			fix: "take AGENTCTL_PLUGIN and PLUGIN_* out of the environment once they have been read", try: environment,
		},
		{
			name: "orphan processes", promise: "nothing that a tool has started is left when the program has been ended", probe: "probe_spawn",
			fix: "start programs as children, and do not hide them from the process that ends the tree", try: orphans,
		},
		{
			name: "question", promise: "a tool can ask a person, and gets an error when no person is there", probe: "probe_ask",
			fix: "send an ask event and implement the method Answer", try: question,
		},
		{
			name: "shutdown", promise: "SIGTERM ends the program within 0.2 s, whatever runs", attempts: 3,
			fix: "do not ignore SIGTERM; end the calls, then the program", try: shutdown,
		},
	}
}

func schema(_ context.Context, t *trial) error {
	var wrong []string
	for _, tool := range t.tools {
		if strings.TrimSpace(tool.Description) == "" {
			wrong = append(wrong, fmt.Sprintf("tool %q has no description", tool.Name))
		}
		var object struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(tool.Parameters, &object); err != nil || object.Type != "object" {
			wrong = append(wrong, fmt.Sprintf("tool %q: the type of its schema is %q", tool.Name, object.Type))
		} else if t.Schema != nil {
			if err := t.Schema(tool.Parameters); err != nil {
				wrong = append(wrong, fmt.Sprintf("tool %q: its schema: %v", tool.Name, err))
			}
		}
	}
	return together(wrong)
}

// together is all that is wrong as one error, or nil.
func together(wrong []string) error {
	if len(wrong) == 0 {
		return nil
	}
	return errors.New(strings.Join(wrong, "; "))
}

const noSuchTool = "no-such-tool"

func unknownTool(ctx context.Context, t *trial) error {
	return t.with(ctx, func(p *host.Plugin) error {
		res, err := t.call(ctx, p, noSuchTool, `{}`)
		if err != nil {
			return err
		}
		return wantCode(res, "unknown_tool")
	})
}

func wantCode(res *host.CallResult, code string) error {
	switch {
	case !res.IsError:
		return fmt.Errorf("it was no error: %s", brief(res.Text))
	case res.Code != code:
		return fmt.Errorf("the code is %q, not %q: %s", res.Code, code, brief(res.Text))
	}
	return nil
}

// brief quotes the beginning of a program's text.
func brief(s string) string {
	if r := []rune(s); len(r) > 100 {
		s = string(r[:100]) + "…"
	}
	return strconv.Quote(s)
}

const unknownField = `{"no such field":1}`

// closed reports whether a schema refuses fields it does not name.
func closed(schema []byte) bool {
	var s struct {
		AdditionalProperties *bool `json:"additionalProperties"`
	}
	return json.Unmarshal(schema, &s) == nil && s.AdditionalProperties != nil && !*s.AdditionalProperties
}

// badArguments sends what no tool may act on, chosen so that one that does not
// look finds nothing to do either.
func badArguments(ctx context.Context, t *trial) error {
	return t.with(ctx, func(p *host.Plugin) error {
		var wrong []string
		for _, tool := range t.tools {
			bad := []string{``, `{`, `[]`, `"text"`, `null`, `{} {}`}
			if closed(tool.Parameters) {
				bad = append(bad, unknownField)
			}
			for _, args := range bad {
				res, err := t.call(ctx, p, tool.Name, args)
				switch {
				case err != nil:
					return fmt.Errorf("tool %q with the arguments %q: %w", tool.Name, args, err)
				case !res.IsError:
					wrong = append(wrong, fmt.Sprintf("tool %q accepted the arguments %q", tool.Name, args))
				}
			}
		}
		return together(wrong)
	})
}

func largeRequest(ctx context.Context, t *trial) error {
	return t.with(ctx, func(p *host.Plugin) error {
		text := strings.Repeat("x", 6<<20)
		args := `{"text":"` + text + `"}`
		res, err := t.call(ctx, p, noSuchTool, args)
		if err != nil {
			return err
		}
		if !res.IsError {
			return errors.New("a tool it does not serve answered")
		}
		if !t.probes["probe_echo"] {
			return nil
		}
		res, err = t.call(ctx, p, "probe_echo", args)
		if err != nil {
			return err
		}
		if res.Text != text {
			return fmt.Errorf("of a text of %d bytes %d came back", len(text), len(res.Text))
		}
		return nil
	})
}

func parallelCalls(ctx context.Context, t *trial) error {
	tool, args, want := noSuchTool, `{}`, ""
	if t.probes["probe_wait"] {
		tool, args, want = "probe_wait", `{"ms":500}`, "begun\nrested"
	}
	const calls, most = 64, 16 * time.Second // 32 s one after the other
	return t.with(ctx, func(p *host.Plugin) error {
		var wg sync.WaitGroup
		var mu sync.Mutex
		var wrong []string
		begin := time.Now()
		for range calls {
			wg.Go(func() {
				res, err := t.call(ctx, p, tool, args)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err != nil:
					wrong = append(wrong, err.Error())
				case want != "" && res.Text != want:
					wrong = append(wrong, "an answer was "+brief(res.Text))
				}
			})
		}
		wg.Wait()
		if d := time.Since(begin); len(wrong) == 0 && d > most {
			return fmt.Errorf("%d calls of 500 ms took %s", calls, d.Round(time.Millisecond))
		}
		slices.Sort(wrong)
		return together(slices.Compact(wrong))
	})
}

// deadlineAfter is the time given to a call that takes longer.
const deadlineAfter = 500 * time.Millisecond

func deadline(ctx context.Context, t *trial, s Sample, soFar string) error {
	return t.with(ctx, func(p *host.Plugin) error {
		begin := time.Now()
		res, err := p.Call(ctx, host.CallRequest{Tool: s.Tool, Args: s.Args, ID: "test", Run: "test", Workspace: t.Workspace, Timeout: deadlineAfter}, nil)
		if err != nil {
			return err
		}
		if err := wantCode(res, "timeout"); err != nil {
			return err
		}
		if d := time.Since(begin); d > deadlineAfter+3*time.Second { // the host gave up waiting
			return fmt.Errorf("a deadline of %s ended it after %s", deadlineAfter, d.Round(time.Millisecond))
		}
		if !strings.HasPrefix(res.Text, soFar) {
			return fmt.Errorf("the output so far is missing: %s", brief(res.Text))
		}
		return t.alive(ctx, p)
	})
}

// alive reports whether a program still answers. It waits at most 2 s until a cancelled
// call has ended, or the program has been killed for it.
func (t *trial) alive(ctx context.Context, p *host.Plugin) error {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for p.Running() > 0 && ctx.Err() == nil {
		select {
		case <-p.Exited():
		case <-ctx.Done():
		case <-look.C:
		}
	}
	select {
	case <-p.Exited():
		return errors.New("the program ended, or was killed because the call went on")
	default:
	}
	res, err := t.call(ctx, p, noSuchTool, `{}`)
	if err != nil {
		return fmt.Errorf("the next call: %w", err)
	}
	if !res.IsError {
		return errors.New("the next call, of a tool it does not serve, was no error")
	}
	return nil
}

func cancel(ctx context.Context, t *trial, s Sample) error {
	return t.with(ctx, func(p *host.Plugin) error {
		live, stop := context.WithCancel(ctx)
		defer stop()
		begun, over := make(chan struct{}), make(chan error, 1)
		var once sync.Once
		go func() {
			_, err := p.Call(live, host.CallRequest{Tool: s.Tool, Args: s.Args, ID: "test", Run: "test", Workspace: t.Workspace, Timeout: patience}, func(host.Event) {
				once.Do(func() { close(begun) })
			})
			over <- err
		}()
		wait := time.NewTimer(time.Second) // a tool need not show that it has begun
		defer wait.Stop()
		select {
		case <-begun:
		case <-wait.C:
		case err := <-over:
			if err == nil {
				return errors.New("it ended before it could be cancelled")
			}
			return err
		}
		stop()
		if err := <-over; !errors.Is(err, context.Canceled) {
			if err == nil {
				return errors.New("it answered as if it had not been cancelled")
			}
			return err
		}
		return t.alive(ctx, p)
	})
}

func bigOutput(ctx context.Context, t *trial) error {
	const most, more = 10 << 20, 1 << 20
	return t.with(ctx, func(p *host.Plugin) error {
		res, err := t.call(ctx, p, "probe_flood", fmt.Sprintf(`{"bytes":%d}`, most))
		if err != nil {
			return err
		}
		if res.IsError || len(res.Text) != most || res.Dropped != 0 {
			return fmt.Errorf("of %d bytes %d arrived and %d were dropped", most, len(res.Text), res.Dropped)
		}
		res, err = p.Call(ctx, host.CallRequest{Tool: "probe_flood", Args: fmt.Appendf(nil, `{"bytes":%d}`, more), Timeout: patience, MaxOutput: 1000}, nil)
		if err != nil {
			return err
		}
		if len(res.Text) != 1000 || res.Dropped != more-1000 {
			return fmt.Errorf("of %d bytes with max_output_bytes 1000 %d arrived and %d were dropped", more, len(res.Text), res.Dropped)
		}
		return nil
	})
}

func panics(ctx context.Context, t *trial) error {
	return t.with(ctx, func(p *host.Plugin) error {
		res, err := t.call(ctx, p, "probe_panic", `{}`)
		if err != nil {
			return err
		}
		if err := wantCode(res, "tool"); err != nil {
			return err
		}
		_, err = t.call(ctx, p, noSuchTool, `{}`)
		return err
	})
}

func pollution(ctx context.Context, t *trial) error {
	return t.with(ctx, func(p *host.Plugin) error {
		line := strings.Repeat("1|1|unix|/nowhere|grpc ", 10<<10) // 230 KB: more than a pipe holds
		res, err := t.call(ctx, p, "probe_print", `{"text":"`+line+`"}`)
		if err != nil {
			return err
		}
		if res.IsError || res.Text != "printed" {
			return fmt.Errorf("the result is %s", brief(res.Text))
		}
		_, err = t.call(ctx, p, noSuchTool, `{}`)
		return err
	})
}

func stdin(ctx context.Context, t *trial) error {
	return t.with(ctx, func(p *host.Plugin) error {
		res, err := p.Call(ctx, host.CallRequest{Tool: "probe_stdin", Args: []byte(`{}`), Timeout: patience}, nil)
		if err != nil {
			return err
		}
		if res.IsError || res.Text != "0" {
			return fmt.Errorf("the result is %s", brief(res.Text))
		}
		return nil
	})
}

// ownVariables are set by shells and interpreters themselves.
var ownVariables = []string{"_", "PWD", "OLDPWD", "SHLVL", "LC_CTYPE"}

func environment(ctx context.Context, t *trial) error {
	return t.with(ctx, func(p *host.Plugin) error {
		res, err := t.call(ctx, p, "probe_environ", `{}`)
		if err != nil {
			return err
		}
		var got []string
		if err := json.Unmarshal([]byte(res.Text), &got); err != nil || res.IsError {
			return fmt.Errorf("the result is %s", brief(res.Text))
		}
		var wrong []string
		seen := map[string]bool{}
		for _, kv := range got {
			name, _, _ := strings.Cut(kv, "=")
			seen[kv] = true
			switch {
			case name == toolpb.CookieKey, strings.HasPrefix(name, "PLUGIN_"):
				wrong = append(wrong, name+" of the handshake is there")
			case !slices.Contains(t.Env, kv) && !slices.Contains(ownVariables, name):
				wrong = append(wrong, name+" was not declared")
			}
		}
		for _, kv := range t.Env {
			if name, _, _ := strings.Cut(kv, "="); !seen[kv] && !slices.Contains(ownVariables, name) && !strings.Contains(kv, "\n") {
				wrong = append(wrong, name+" was declared and is not there")
			}
		}
		return together(wrong)
	})
}

func orphans(ctx context.Context, t *trial) error {
	if t.Contained {
		return skipError{"it is contained: what it has started cannot be told from outside, and ends with it"}
	}
	var pid int
	err := t.with(ctx, func(p *host.Plugin) error {
		res, err := t.call(ctx, p, "probe_spawn", `{}`)
		if err != nil {
			return err
		}
		if pid, err = strconv.Atoi(strings.TrimSpace(res.Text)); err != nil || pid < 2 {
			return fmt.Errorf("the result is %s, not a process id", brief(res.Text))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !gone(ctx, pid) {
		return fmt.Errorf("process %d, which a tool had started, still runs", pid)
	}
	return nil
}

// dying is how long a busy machine may take to end a process that was killed.
const dying = 5 * time.Second

// gone reports whether a process has ended, or does so in a moment.
func gone(ctx context.Context, pid int) bool {
	late := time.NewTimer(dying)
	defer late.Stop()
	look := time.NewTicker(dying / 50)
	defer look.Stop()
	for runs(pid) {
		select {
		case <-look.C:
		case <-late.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// runs reports whether a process exists and is not a zombie.
func runs(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(b), ") Z ")
}

func question(ctx context.Context, t *trial) error {
	return t.with(ctx, func(p *host.Plugin) error {
		ask := func(person func(context.Context, host.Question) (string, error)) (*host.CallResult, error) {
			return p.Call(ctx, host.CallRequest{Tool: "probe_ask", Args: []byte(`{"text":"who is there?"}`), Timeout: patience, Ask: person}, nil)
		}
		var asked string
		res, err := ask(func(_ context.Context, q host.Question) (string, error) { asked = q.Text; return "me", nil })
		if err != nil {
			return err
		}
		if res.IsError || asked != "who is there?" || res.Text != "me" {
			return fmt.Errorf("to %s the answer \"me\" became %s", brief(asked), brief(res.Text))
		}
		if res, err = ask(nil); err != nil {
			return err
		}
		return wantCode(res, "tool")
	})
}

func shutdown(ctx context.Context, t *trial) error {
	return t.with(ctx, func(p *host.Plugin) error {
		var wg sync.WaitGroup
		defer wg.Wait() // its call ends with the program
		if t.probes["probe_wait"] {
			wg.Go(func() { _, _ = t.call(ctx, p, "probe_wait", `{"ms":60000}`) })
		}
		end, stop := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer stop()
		if err := p.Close(end); err != nil {
			return err
		}
		if p.Ending() == "signal killed" {
			return errors.New("it had to be killed")
		}
		return nil
	})
}
