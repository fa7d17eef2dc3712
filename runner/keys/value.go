package keys

import (
	"bytes"
	"errors"
	"fmt"

	"agentctl.dev/agentctl/runner/expr"
)

// maxName bounds a name; no environment variable of a credential is longer.
const maxName = 128

// checkName says what is wrong with the name of a value. It is the name of an
// environment variable: a letter or _, then letters, digits and _. What is wrong
// is not repeated, for it may be the value itself.
func checkName(name string) error {
	if !validName(name) {
		return errors.New("this is no name of an environment variable: a letter or _, then letters, digits and _, such as OPENAI_API_KEY")
	}
	// Some keys are made of such characters alone.
	if expr.HoldsCredential(name) {
		return errors.New("this looks like the value: what is named here is the environment variable, such as OPENAI_API_KEY")
	}
	return nil
}

func validName(name string) bool {
	if name == "" || len(name) > maxName {
		return false
	}
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// clean returns a value without the line break that ends it, or says why it
// cannot be one: it is empty or too long, or holds a NUL or another line break.
func clean(b []byte) (string, error) {
	b = bytes.TrimSuffix(b, []byte("\n"))
	b = bytes.TrimSuffix(b, []byte("\r"))
	switch {
	case len(b) == 0:
		return "", errors.New("the value is empty")
	case len(b) > MaxSize:
		return "", fmt.Errorf("the value is longer than %d bytes", MaxSize)
	case bytes.IndexByte(b, 0) >= 0:
		return "", errors.New("the value holds a NUL byte")
	case bytes.ContainsAny(b, "\r\n"):
		return "", errors.New("the value holds a line break: a key is one line")
	}
	return string(b), nil
}
