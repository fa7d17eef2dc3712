package tool

import (
	"encoding/json"

	"agentctl.dev/agentctl/plugins/sdk/patch"
)

// argumentChecks are for shipped tools whose arguments have a syntax of their own: a call
// that cannot be read cannot be judged either.
var argumentChecks = map[string]func(json.RawMessage) error{"patch": checkPatch}

func checkPatch(raw json.RawMessage) error {
	var args struct {
		Patch string `json:"patch"`
	}
	if err := json.Unmarshal(raw, &args); err != nil {
		return err
	}
	_, err := patch.Parse(args.Patch)
	return err
}
