package coder

import (
	"regexp"
	"slices"
	"sync"
)

var drivers = sync.OnceValue(func() []Driver { return []Driver{opencode(), codex(), claude()} })

// version is the form of a version, as in 1.18.33.
var version = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+\S*$`) })

// Drivers are those of all programs.
func Drivers() []Driver { return slices.Clone(drivers()) }

// DriverOf returns the driver of a name.
func DriverOf(name string) (Driver, bool) {
	i := slices.IndexFunc(drivers(), func(d Driver) bool { return d.Name == name })
	if i < 0 {
		return Driver{}, false
	}
	return drivers()[i], true
}
