package model

import "testing"

func TestQuotedWordsAreOneLineWithoutEscapeSequences(t *testing.T) {
	for in, want := range map[string]string{
		"bad key sk-can\x1b[0mary":          "bad key sk-canary",
		"bad key sk-can\x1b]0;x\x07ary\r\n": "bad key sk-canary",
		"bad\x1b[31;1m key\nhere\x1b[":      "bad key here",
		"plain":                             "plain",
	} {
		if got := Quote([]byte(in)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
