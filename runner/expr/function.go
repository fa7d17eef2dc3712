package expr

import (
	"path"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
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
			return types.Bool(HoldsCredential(string(s)))
		})))
}

// underFunction is path.under(folder): is a path the folder, or in it? Dots are resolved
// lexically; a text that is not an absolute path is under nothing.
func underFunction() cel.EnvOption {
	return cel.Function("under", cel.MemberOverload("string_under_string", []*cel.Type{cel.StringType, cel.StringType}, cel.BoolType,
		cel.BinaryBinding(func(p, folder ref.Val) ref.Val {
			a, ok := p.(types.String)
			b, is := folder.(types.String)
			if !ok || !is {
				return types.MaybeNoSuchOverloadErr(p)
			}
			in, root := path.Clean(string(a)), path.Clean(string(b))
			return types.Bool(path.IsAbs(in) && path.IsAbs(root) && strings.HasPrefix(in+"/", strings.TrimSuffix(root, "/")+"/"))
		})))
}

// globWork bounds what one call of glob() costs; it takes 4 ms for it.
const globWork = 1 << 21

// globFunction is glob(text, pattern): * is any run of characters, also across
// slashes, ? is one character, as in a list of permissions.
func globFunction() cel.EnvOption {
	return cel.Function("glob", cel.Overload("glob_string_string", []*cel.Type{cel.StringType, cel.StringType}, cel.BoolType,
		cel.BinaryBinding(func(text, pattern ref.Val) ref.Val {
			s, ok := text.(types.String)
			p, is := pattern.(types.String)
			if !ok || !is {
				return types.MaybeNoSuchOverloadErr(text)
			}
			if len(s)*len(p) > globWork {
				return types.NewErr("a pattern of %d bytes for a text of %d", len(p), len(s))
			}
			return types.Bool(Glob(string(p), string(s)))
		})))
}

// Glob reports whether a pattern matches the whole of a text.
func Glob(pattern, text string) bool {
	p, i, star, mark := 0, 0, -1, 0
	for i < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[i]):
			p++
			i++
		case star >= 0:
			mark++
			p, i = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
