package coder

import (
	"regexp"
	"slices"
	"strings"
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

// longestArgument is the longest prompt, in bytes, that is an argument: Linux allows 128 KiB for each.
const longestArgument = 100 << 10

// ask adds a prompt to the arguments, as the last one. One that is too long for that becomes
// standard input, and read is added, which has the program read it.
func ask(args []string, prompt string, read ...string) (all []string, stdin string) {
	if len(prompt) > longestArgument {
		return append(args, read...), prompt
	}
	return append(args, "--", prompt), ""
}

// events is the part of a Reader that all programs share.
type events struct{ said Said }

// Said implements Reader.
func (e *events) Said() Said { return e.said }

// argument is a string among the arguments of a tool call; "" where there is none.
func argument(args map[string]any, name string) string {
	text, _ := args[name].(string)
	return text
}

// toolProgress shows people a tool call.
func toolProgress(tool, about string) string { return strings.TrimSpace(tool + " " + Clip(about, 120)) }
