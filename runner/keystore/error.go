package keystore

import "fmt"

// Error says what is wrong with the store, and what helps.
type Error struct {
	Err  error
	Hint string
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func problem(format string, args ...any) *Error { return &Error{Err: fmt.Errorf(format, args...)} }

func (e *Error) hint(text string) *Error {
	e.Hint = text
	return e
}
