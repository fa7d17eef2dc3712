package main

import (
	"context"

	"agentctl.dev/agentctl/plugins/sdk"
)

// askingTool is the plugin of the stories that asks a person.
func askingTool() {
	sdk.Serve(sdk.New("paint", "Asks which colour.", func(ctx context.Context, call *sdk.Call, _ struct{}) (*sdk.Result, error) {
		said, err := call.Ask(ctx, "Which colour\x1b[2J?", "red", "blue")
		if err != nil {
			return nil, sdk.Errorf("%v", err)
		}
		return &sdk.Result{Text: "painted " + said}, nil
	}))
}
