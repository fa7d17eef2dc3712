package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"agentctl.dev/agentctl/api/view"
)

// Binding is a hash of the open question about a call, with the run, its agent, its tools
// and its policies: an answer is valid for exactly this question. "" is no open question.
func Binding(v *view.Run, call string) string {
	p, q := v.Call(call), v.Question(call)
	if in := v.Inquiry(call); in != nil {
		return hashed(struct {
			Run, Plan, Call, Inquiry, Text string
			Options                        []string
			Multiple                       bool `json:",omitempty"`
		}{v.ID, v.Started.Plan, call, in.ID, in.Text, in.Options, in.Multiple})
	}
	if p == nil || q == nil || p.Decision == nil {
		return ""
	}
	return hashed(struct {
		Run, Plan, Call, Tool, Essence string
		Args                           json.RawMessage
		Unknown                        bool
	}{v.ID, v.Started.Plan, call, q.Tool, p.Decision.Essence(), q.Args, q.Unknown})
}

func hashed(question any) string {
	b, err := json.Marshal(question)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}
