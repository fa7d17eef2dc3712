// Package secret resolves references to secrets and removes their values from everything that leaves the runner.
package secret

import (
	"fmt"
	"log/slog"
)

// mask replaces a value.
const mask = "***"

// Value is a secret. However it is printed, formatted, logged or encoded, it
// shows as ***; only Reveal returns it.
type Value struct {
	// Pointers to plain strings, because fmt prints the unexported fields of a
	// struct without asking their methods: it shows an address then.
	text, source *string
}

// NewValue wraps a secret.
func NewValue(text string) Value { return Value{text: &text} }

// Reveal returns the secret itself.
func (v Value) Reveal() string { return plain(v.text) }

// Source is where a Resolver found the secret, for people: "environment variable X". It
// reveals nothing of the value.
func (v Value) Source() string { return plain(v.source) }

func plain(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// IsZero reports whether there is no secret.
func (v Value) IsZero() bool { return v.Reveal() == "" }

// String returns ***.
func (v Value) String() string { return mask }

// GoString returns ***.
func (v Value) GoString() string { return mask }

// Format prints *** for every verb, %x and %q included.
func (v Value) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(mask)) }

// MarshalText encodes ***.
func (v Value) MarshalText() ([]byte, error) { return []byte(mask), nil }

// MarshalJSON encodes "***".
func (v Value) MarshalJSON() ([]byte, error) { return []byte(`"` + mask + `"`), nil }

// LogValue logs ***.
func (v Value) LogValue() slog.Value { return slog.StringValue(mask) }
