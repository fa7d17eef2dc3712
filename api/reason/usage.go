package reason

import "fmt"

// UsageError says that what was asked for makes no sense: nothing came about, and
// whoever asked can mend it. The command line exits with 2.
type UsageError struct {
	Err error
	// Hint is the next step; "" where there is none.
	Hint string
}

// Usagef makes an UsageError of a text, as fmt.Errorf does.
func Usagef(format string, args ...any) *UsageError {
	return &UsageError{Err: fmt.Errorf(format, args...)}
}

// WithHint names the next step.
func (e *UsageError) WithHint(text string) *UsageError {
	e.Hint = text
	return e
}

func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.Err }
