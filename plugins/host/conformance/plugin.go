package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"agentctl.dev/agentctl/plugins/host"
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
