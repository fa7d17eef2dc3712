//go:build !linux

package watch

// Watch watches folders, which no system but Linux has here.
type Watch struct{}

// New returns ErrUnsupported.
func New(int) (*Watch, error) { return nil, ErrUnsupported }

// Add does nothing.
func (*Watch) Add(int, string) {}

// Err returns ErrUnsupported.
func (*Watch) Err() error { return ErrUnsupported }

// Touched returns ErrUnsupported.
func (*Watch) Touched() (Touched, error) { return Touched{}, ErrUnsupported }

// Close does nothing.
func (*Watch) Close() {}
