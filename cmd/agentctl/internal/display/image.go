package display

import "fmt"

// Reference writes the reference of an image alone on its line, for a shell to
// take.
func Reference(s *Screen, ref string) error {
	_, err := fmt.Fprintln(s, Line(ref))
	return err
}
