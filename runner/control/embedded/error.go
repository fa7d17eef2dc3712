package embedded

// Error is a problem that a person can do something about.
type Error struct {
	Err error
	// Hint is the next step.
	Hint string
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func hinted(err error, hint string) *Error { return &Error{Err: err, Hint: hint} }
