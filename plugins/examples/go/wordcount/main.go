// Command wordcount is a tool of agentctl.
package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"agentctl.dev/agentctl/plugins/sdk"
)

func main() { sdk.Serve(tool()) }

// arguments are what the model sends; the schema it is told is made of them.
type arguments struct {
	Text    string `json:"text" jsonschema:"the text"`
	Seconds int    `json:"seconds,omitempty" jsonschema:"how long to take over it"`
}

func tool() sdk.Tool {
	return sdk.New("wordcount", "Counts the words of a text.", count)
}

func count(ctx context.Context, call *sdk.Call, in arguments) (*sdk.Result, error) {
	words := len(strings.Fields(in.Text))
	if words == 0 {
		return nil, sdk.Errorf("the text is empty") // the model reads this and mends its call
	}
	for range in.Seconds {
		call.Progress("counting")
		select {
		case <-time.After(time.Second):
		case <-ctx.Done(): // the call was cancelled, or its time is up
			return nil, ctx.Err()
		}
	}
	return &sdk.Result{Text: fmt.Sprintf("%d words", words)}, nil
}
