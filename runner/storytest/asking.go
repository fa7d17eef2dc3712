package storytest

import (
	"context"
	"errors"
	"os"

	"agentctl.dev/agentctl/plugins/sdk"
)

// askingIn are the arguments of the tool that asks.
type askingIn struct {
	Question string   `json:"question,omitempty"`
	Options  []string `json:"options,omitempty"`
	// Any asks for any text instead of an option.
	Any bool `json:"any,omitempty"`
	// Log leaves a line in the file "ran" of the workspace.
	Log bool `json:"log,omitempty"`
}

// askingTool is a plugin with a tool that asks a person. A question may name a
// variable of its environment.
func askingTool() {
	sdk.Serve(sdk.New("paint", "Asks which colour.", func(ctx context.Context, call *sdk.Call, in askingIn) (*sdk.Result, error) {
		if in.Log {
			if err := logRun(); err != nil {
				return nil, err
			}
		}
		if in.Question == "" {
			in.Question = "Which colour\x1b[2J?"
		}
		if in.Options == nil && !in.Any {
			in.Options = []string{"red", "blue"}
		}
		said, err := call.Ask(ctx, os.ExpandEnv(in.Question), in.Options...)
		if err != nil {
			return nil, sdk.Errorf("%v", err)
		}
		return &sdk.Result{Text: "painted " + said}, nil
	}), sdk.New("deploy", "Deploys, in two stages.", deploy))
}

type deployIn struct {
	Types []string `json:"types"`
}

// deploy sends a part of each type.
func deploy(_ context.Context, call *sdk.Call, in deployIn) (*sdk.Result, error) {
	call.Metadata("building", map[string]any{"stage": 1, "of": 2, "token": os.Getenv("SECRET")})
	res := &sdk.Result{Text: "deployed"}
	for _, kind := range in.Types {
		res.Parts = append(res.Parts, sdk.Part{Type: kind, Data: map[string]any{"host": "a.example", "token": os.Getenv("SECRET")}})
	}
	return res, nil
}

// logRun counts an execution, by a line of a file.
func logRun() error {
	ran, err := os.OpenFile("ran", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = ran.WriteString("ran\n")
	return errors.Join(err, ran.Close())
}
