package expr

import (
	"fmt"
	"iter"
	"path"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
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

// passedWords bounds the words that calls.passed() takes.
const passedWords = 8

// passedFunction is calls.passed(word, ...): did one of some calls end well whose status is
// that of a command which begins with these words?
func passedFunction() cel.EnvOption {
	var overloads []cel.FunctionOpt
	args := []*cel.Type{cel.ListType(cel.DynType)}
	for n := 1; n <= passedWords; n++ {
		args = append(args[:n:n], cel.StringType)
		overloads = append(overloads, cel.MemberOverload(fmt.Sprintf("list_passed_%d", n), args, cel.BoolType, cel.FunctionBinding(passed)))
	}
	return cel.Function("passed", overloads...)
}

func passed(args ...ref.Val) ref.Val {
	calls, ok := args[0].(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(args[0])
	}
	for call := range items(calls) {
		if member(call, "state") != types.String("completed") || member(call, "exitCode") != types.Int(0) {
			continue
		}
		commands, _ := member(call, "commands").(traits.Lister)
		for command := range items(commands) {
			words, ok := member(command, "words").(traits.Lister)
			if ok && member(command, "decisive") == types.True && begins(words, args[1:]) {
				return types.True
			}
		}
	}
	return types.False
}

func begins(words traits.Lister, with []ref.Val) bool {
	for i, w := range with {
		if types.Int(i) >= words.Size().(types.Int) || words.Get(types.Int(i)).Equal(w) != types.True {
			return false
		}
	}
	return true
}

func items(list traits.Lister) iter.Seq[ref.Val] {
	return func(yield func(ref.Val) bool) {
		if list == nil {
			return
		}
		for it := list.Iterator(); it.HasNext() == types.True; {
			if !yield(it.Next()) {
				return
			}
		}
	}
}

// member is a field of an object, nil if it has none of this name.
func member(of ref.Val, name string) ref.Val {
	m, ok := of.(traits.Mapper)
	if !ok {
		return nil
	}
	v, ok := m.Find(types.String(name))
	if !ok {
		return nil
	}
	return v
}

// showedText bounds the outputs that one call of showed() looks at; it takes 4 ms for it.
const showedText = 16 << 20

// showedFunction is calls.showed(text): does the output of a call that has run hold a text?
// What no call has shown is in the answer of the model alone. It is linear, unlike
// calls.exists(c, c.output.contains(text)), for which CEL assumes the worst.
func showedFunction() cel.EnvOption {
	return cel.Function("showed", cel.MemberOverload("list_showed_string", []*cel.Type{cel.ListType(cel.DynType), cel.StringType}, cel.BoolType,
		cel.BinaryBinding(func(list, text ref.Val) ref.Val {
			calls, ok := list.(traits.Lister)
			want, is := text.(types.String)
			if !ok || !is {
				return types.MaybeNoSuchOverloadErr(list)
			}
			left := showedText
			for call := range items(calls) {
				output, _ := member(call, "output").(types.String)
				if ran := member(call, "state") == types.String("completed") || member(call, "exitCode") != nil; !ran || output == "" {
					continue
				}
				if left -= len(output); left < 0 {
					return types.NewErr("the outputs are longer than %d bytes", showedText)
				}
				if want != "" && strings.Contains(string(output), string(want)) {
					return types.True
				}
			}
			return types.False
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
