package expr

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"agentctl.dev/agentctl/runner/credential"
)

// secretText bounds the text that one call of secret() looks at. It takes 4 ms
// for it, 200 where every word begins like a credential, and it cannot be
// stopped in the middle.
const secretText = 1 << 20

// secretFunction is secret(text): does a text hold a credential of a known form?
func secretFunction() cel.EnvOption {
	return cel.Function("secret", cel.Overload("secret_string", []*cel.Type{cel.StringType}, cel.BoolType,
		cel.UnaryBinding(func(v ref.Val) ref.Val {
			s, ok := v.(types.String)
			if !ok {
				return types.MaybeNoSuchOverloadErr(v)
			}
			if len(s) > secretText {
				return types.NewErr("the text is longer than %d bytes", secretText)
			}
			return types.Bool(credential.Within(string(s)))
		})))
}
