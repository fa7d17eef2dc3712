package reason

import "fmt"

// UsageError reports a request that makes no sense: nothing was done, and the
// caller can correct it. The command line exits with 2.
type UsageError struct {
	Err error
	// Hint is the next step; "" where there is none.
	Hint string
}

// Usagef returns a UsageError whose text is formatted like fmt.Errorf.
func Usagef(format string, args ...any) *UsageError {
	return &UsageError{Err: fmt.Errorf(format, args...)}
}

// WithHint sets the next step and returns e.
func (e *UsageError) WithHint(text string) *UsageError {
	e.Hint = text
	return e
}

func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.Err }
