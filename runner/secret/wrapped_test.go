package secret

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"
)

func wrap(s string, width int) string {
	var b strings.Builder
	for len(s) > width {
		b.WriteString(s[:width] + "\n")
		s = s[width:]
	}
	return b.String() + s + "\n"
}

func TestLongSecretIsHiddenWhereItsEncodingIsWrapped(t *testing.T) {
	const v = "qpW1tssz6QfVaOAFWD97MQCXLR9kTtMEOfhY5cg9NKOWVv5NPlzh4To8dvjrVtnmbtCl8mwDMrgeekItyQZsYxI7bR2nrYQQ"
	r := NewRedactor(NewValue(v))
	for _, end := range []string{"", "\n"} {
		base, digits := base64.StdEncoding.EncodeToString([]byte(v+end)), hex.EncodeToString([]byte(v+end))
		for name, text := range map[string]string{
			"base64": wrap(base, 76), "PEM": wrap(base, 64), "xxd -p": wrap(digits, 60), "upper case": wrap(strings.ToUpper(digits), 60), "CRLF": strings.ReplaceAll(wrap(base, 76), "\n", "\r\n"),
		} {
			for line := range strings.FieldsSeq(r.String(text)) {
				if strings.Trim(line, "*") != "" && len(line) > 8 {
					t.Errorf("%s: %q is left", name, line)
				}
			}
		}
	}
}
