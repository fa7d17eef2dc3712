// Package sdk turns typed Go functions into tools that an agent can call.
//
// A tool is one function; a plugin program is a list of tools given to Serve:
//
//	type In struct {
//		Name string `json:"name" jsonschema:"whom to greet"`
//	}
//
//	func greet(ctx context.Context, call *sdk.Call, in In) (*sdk.Result, error) {
//		return &sdk.Result{Text: "hello " + in.Name}, nil
//	}
//
//	func main() { sdk.Serve(sdk.New("greet", "Greets somebody.", greet)) }
//
// The program is started by agentctl with the environment its manifest declares
// and nothing else, in the workspace of the run. It answers calls until the run
// ends; several calls may run at the same time. "agentctl plugin init" begins one,
// "agentctl plugin test" tries whether it does what a run relies on.
package sdk
