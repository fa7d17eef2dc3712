package sdk_test

import (
	"context"
	"encoding/json"
	"fmt"

	"agentctl.dev/agentctl/plugins/sdk"
)

// A tool is one typed function. Its test calls it without a process.
func Example() {
	type In struct {
		Words []string `json:"words" jsonschema:"what to count"`
	}
	count := sdk.New("count", "Counts words.", func(_ context.Context, _ *sdk.Call, in In) (*sdk.Result, error) {
		if len(in.Words) == 0 {
			return nil, sdk.Errorf("there are no words")
		}
		return &sdk.Result{Text: fmt.Sprintf("%d words", len(in.Words))}, nil
	})
	for _, args := range []string{`{"words":["a","b"]}`, `{"words":[]}`, `{"word":1}`} {
		res, err := count.Run(context.Background(), nil, json.RawMessage(args))
		fmt.Println(res.IsError, res.Code, err)
	}
	// Output:
	// false  <nil>
	// true tool <nil>
	// true schema <nil>
}
