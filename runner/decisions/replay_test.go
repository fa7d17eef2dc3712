package decisions

import (
	"encoding/json"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/policy"
)

func TestACallIsJudgedAgainOnlyAsItWasJudged(t *testing.T) {
	t.Parallel()
	facts := func(text string) json.RawMessage { return json.RawMessage(text) }
	paths := policy.Reliance{Facts: facts(`{"paths":["b"]}`), Paths: []string{"/w/a"}}
	for name, c := range map[string]struct {
		reason      string
		made, again message.Decision
		relies      policy.Reliance
		want        string
	}{
		"the same":              {"nothing keeps it from being judged", message.Decision{Action: message.Allow, Hash: "h"}, message.Decision{Action: message.Allow, Hash: "h"}, policy.Reliance{}, ""},
		"other arguments":       {"a secret was taken out of the journal", message.Decision{Action: message.Allow, Hash: "h"}, message.Decision{Action: message.Allow, Hash: "i"}, policy.Reliance{}, "secrets are taken out"},
		"rewritten":             {"the hash is that of what is left", message.Decision{Action: message.Redact, Hash: "h", Args: facts(`{}`)}, message.Decision{Action: message.Deny, Hash: "i"}, policy.Reliance{}, ""},
		"no policy decided":     {"the policy could not be asked", message.Decision{Action: message.Deny, Message: "the policy could not be evaluated: late"}, message.Decision{Action: message.Allow, Hash: "h"}, policy.Reliance{}, "no policy has decided: the policy could not be evaluated: late"},
		"an unknown tool":       {"it is unknown still", message.Decision{Action: message.Deny, Rule: "default/unknown-tool"}, message.Decision{Action: message.Deny, Rule: "default/unknown-tool"}, policy.Reliance{}, ""},
		"later policies":        {"the journal does not hold them", message.Decision{Action: message.Deny, Hash: "h", Message: presentPrefix + ": no"}, message.Decision{Action: message.Ask, Hash: "h"}, policy.Reliance{}, "made while the run waited"},
		"the same facts":        {"then the files are of no account", message.Decision{Action: message.Deny, Hash: "h", Facts: facts(`{"paths":["a"],"audit":["x"]}`)}, message.Decision{Action: message.Deny, Hash: "h", Facts: facts(`{"paths":["a"]}`)}, paths, ""},
		"other facts":           {"the files were not recorded", message.Decision{Action: message.Deny, Hash: "h", Facts: facts(`{"paths":["a"]}`)}, message.Decision{Action: message.Deny, Hash: "h", Facts: facts(`{"paths":["b"]}`)}, paths, "its folder is gone"},
		"the guard has decided": {"its hash may be another one", message.Decision{Action: message.Ask, Rule: loopRule, Hash: "h"}, message.Decision{Action: message.Allow, Hash: "i"}, policy.Reliance{}, ""},
	} {
		r := &replay{}
		d := &decision{view: &view.Run{}, made: c.made}
		d.view.Started.Workspace.Dir = "/nowhere/w"
		got, err := r.unlike(d, c.again, c.relies)
		if err != nil || c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %s: got %q, %v, want %q", name, c.reason, got, err, c.want)
		}
	}
}
