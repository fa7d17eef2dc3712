package expr

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// form is what one sort of credential looks like.
type form struct {
	// marks are what every such credential holds one of. To look for them costs a
	// hundredth of the pattern.
	marks   []string
	pattern *regexp.Regexp
}

func (f *form) within(text string) bool {
	return slices.ContainsFunc(f.marks, func(m string) bool { return strings.Contains(text, m) })
}

// credentials are tokens with a known prefix, and private keys. They are
// compiled when the first rule needs them, as every pattern here: most runs
// need none.
var credentials = sync.OnceValue(func() []form {
	return []form{
		{[]string{"PRIVATE KEY-----"}, regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\z)`)},
		{[]string{"sk-", "sk_", "pk-", "pk_", "rk-", "rk_"}, regexp.MustCompile(`\b(?:sk|pk|rk)[-_](?:live|test|proj|ant|or)?[-_]?[A-Za-z0-9_-]{20,}`)},
		{[]string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, regexp.MustCompile(`\b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{30,}`)},
		{[]string{"github_pat_", "glpat-"}, regexp.MustCompile(`\bgithub_pat_[A-Za-z0-9_]{40,}|\bglpat-[A-Za-z0-9_-]{20,}`)},
		{[]string{"AKIA", "ASIA"}, regexp.MustCompile(`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`)},
		{[]string{"AIza"}, regexp.MustCompile(`\bAIza[0-9A-Za-z_-]{35}`)},
		{[]string{"xox"}, regexp.MustCompile(`\bxox[abeoprs]-[A-Za-z0-9-]{10,}`)},
		{[]string{"npm_", "pypi-", "hf_"}, regexp.MustCompile(`\bnpm_[A-Za-z0-9]{36}|\bpypi-[A-Za-z0-9_-]{50,}|\bhf_[A-Za-z0-9]{30,}`)},
		{[]string{"eyJ"}, regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`)},
	}
})

var (
	bearer = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\b((?:bearer|basic)\s+)[A-Za-z0-9+/._~-]{16,}=*`)
	})
	inURL = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(\b[a-z][a-z0-9+.-]*://[^\s/:@]*:)[^\s/@]+(@)`)
	})
	assigned = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)([A-Z0-9_.-]*(?:password|passwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key)["']?\s*[:=]\s*)("[^"\n]{4,}"|'[^'\n]{4,}'|[^\s"',;]{4,})`)
	})
)

// HideCredentials replaces with mark everything in a text that looks like a credential: a
// known form, or a value after a name such as "secret".
func HideCredentials(text, mark string) string {
	for _, f := range credentials() {
		if f.within(text) {
			text = f.pattern.ReplaceAllString(text, mark)
		}
	}
	text = bearer().ReplaceAllString(text, "${1}"+mark)
	text = inURL().ReplaceAllString(text, "${1}"+mark+"${2}")
	return assigned().ReplaceAllString(text, "${1}"+mark)
}

// NamesCredential reports whether the name of a value indicates a credential.
func NamesCredential(name, value string) bool { return assigned().MatchString(name + "=" + value) }

// HoldsCredential reports whether a text holds a token of a known form or a private key.
// It is stricter than HideCredentials, because a call can be refused for it: password =
// getenv("X") is code, and pk_of_the_accounts_table is a name.
func HoldsCredential(text string) bool {
	return slices.ContainsFunc(credentials(), func(f form) bool {
		return f.within(text) && slices.ContainsFunc(f.pattern.FindAllString(text, -1), func(found string) bool {
			return strings.HasPrefix(found, "-----") || strings.ContainsAny(found, "0123456789")
		})
	})
}
