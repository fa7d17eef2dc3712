//go:build !linux

package diagnose

import "errors"

// readText exists on Linux only, as runs do.
func readText(string, string) (text string, there bool, err error) {
	return "", false, errors.New("language servers run on Linux only")
}
