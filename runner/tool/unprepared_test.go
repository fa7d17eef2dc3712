package tool

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"agentctl.dev/agentctl/api/message"
)

// A copy that is too large, or a full disk, leaves no files that a sandbox could
// show: who reads "this host gives no sandbox" looks in the wrong place.
func TestFilesThatCouldNotBePreparedAreToldBeforeTheProgram(t *testing.T) {
	tooLarge, noSandbox := errors.New("the copy is too large"), errors.New("there is no such folder to bind")
	for name, c := range map[string]struct{ files, program, want error }{
		"files missing":        {tooLarge, noSandbox, tooLarge},
		"files missing alone":  {tooLarge, nil, tooLarge},
		"program cannot start": {nil, noSandbox, noSandbox},
	} {
		r := registry(t, nil, shipped(t, "bash"))
		r.Serve = func(context.Context, *Definition, Outside) (Server, error) { return nil, c.program }
		r.Workspace = func(context.Context) (string, error) { return "/w", c.files }
		if _, err := r.Run(t.Context(), message.ToolCall{ID: "c", Tool: "bash", Args: json.RawMessage(`{"command":"ls"}`)}, func(string) {}); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}
