package tool

import "strings"

// fold maps names that differ only in case, "-" and "_" to the same name.
func fold(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "", " ", "").Replace(name))
}

// repair returns the one name that a misspelt name can mean; "" when there is
// none, or more than one.
func repair(written string, names []string) string {
	var found string
	for _, name := range names {
		if fold(name) == fold(written) {
			if found != "" {
				return ""
			}
			found = name
		}
	}
	return found
}
