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

// A tool that logs in supplies the token for others, and no model reads it. Their manifests
// say so: "supplies: [API_TOKEN]" in that of login, and in that of query
// "env: [{name: API_TOKEN, suppliedBy: {name: login}}]".
func ExampleVariable() {
	type none struct{}
	login := sdk.New("login", "Logs in.", func(context.Context, *sdk.Call, none) (*sdk.Result, error) {
		return &sdk.Result{Text: "logged in", Variables: []sdk.Variable{{Name: "API_TOKEN", Value: "the-token-of-2026"}}}, nil
	})
	query := sdk.New("query", "Asks the service.", func(_ context.Context, call *sdk.Call, _ none) (*sdk.Result, error) {
		return &sdk.Result{Text: fmt.Sprintf("a token of %d characters", len(call.Getenv("API_TOKEN")))}, nil
	})
	res, err := login.Run(context.Background(), &sdk.Call{}, json.RawMessage(`{}`))
	if err != nil {
		panic(err)
	}
	fmt.Println(res.Text, res.Variables)
	res, err = query.Run(context.Background(), &sdk.Call{Variables: res.Variables}, json.RawMessage(`{}`))
	if err != nil {
		panic(err)
	}
	fmt.Println(res.Text)
	// Output:
	// logged in [API_TOKEN=***]
	// a token of 17 characters
}
