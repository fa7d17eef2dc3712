package storytest

import (
	"context"
	"encoding/base64"
	"strings"

	"agentctl.dev/agentctl/plugins/sdk"
)

type loginIn struct {
	// Variable is the name that the token is supplied by, Short a value that cannot be
	// hidden.
	Variable string `json:"variable,omitempty"`
	Short    bool   `json:"short,omitempty"`
}

type queryIn struct{}

// sessionToken is what the service of the story gives at a login. No file of the story and
// no program but this one has it.
var sessionToken = strings.Join([]string{"tok", "4711", "0815", "canary"}, "-")

// loginTool is a plugin with a tool that logs in, and one that needs the token of the
// login.
func loginTool() {
	sdk.Serve(sdk.New("login", "Logs in.", func(_ context.Context, call *sdk.Call, in loginIn) (*sdk.Result, error) {
		token := sdk.Variable{Name: "API_TOKEN", Value: sessionToken}
		if in.Variable != "" {
			token.Name = in.Variable
		}
		if in.Short {
			token.Value = "a-1"
		}
		return &sdk.Result{Text: "welcome, your token is " + token.Value, Variables: []sdk.Variable{token}}, nil
	}), sdk.New("query", "Asks the service.", func(_ context.Context, call *sdk.Call, _ queryIn) (*sdk.Result, error) {
		token := call.Getenv("API_TOKEN")
		if token != sessionToken {
			return nil, sdk.Errorf("401: the token has %d characters", len(token))
		}
		return &sdk.Result{
			Text: "200: " + token + " " + base64.StdEncoding.EncodeToString([]byte("Bearer "+token)), Metadata: map[string]string{"token": token},
			Parts: []sdk.Part{{Type: "query/answer", Data: map[string]string{"token": token}}},
		}, nil
	}))
}
