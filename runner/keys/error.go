package keys

import "fmt"

// StoreError says what is wrong with the store, and what helps.
type StoreError struct {
	Err  error
	Hint string
}

func (e *StoreError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *StoreError) Unwrap() error { return e.Err }

func problem(format string, args ...any) *StoreError {
	return &StoreError{Err: fmt.Errorf(format, args...)}
}

func (e *StoreError) hint(text string) *StoreError {
	e.Hint = text
	return e
}
