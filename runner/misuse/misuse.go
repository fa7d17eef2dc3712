// Package misuse holds the error that says that what was asked for makes no sense.
package misuse

import "fmt"

// Error says that what was asked for makes no sense: nothing came about, and
// whoever asked can mend it. The command line exits with 2.
type Error struct {
	Err error
	// Hint is the next step; "" where there is none.
	Hint string
}

// Errorf makes an Error of a text, as fmt.Errorf does.
func Errorf(format string, args ...any) *Error { return &Error{Err: fmt.Errorf(format, args...)} }

// WithHint names the next step.
func (e *Error) WithHint(text string) *Error {
	e.Hint = text
	return e
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
