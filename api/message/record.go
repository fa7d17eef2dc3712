package message

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Record is what a call did, as the program that carried it out has observed it. It reports
// and decides nothing: what a call may do is up to its isolation and its binding.
type Record struct {
	// Programs are those that were executed, in the order of their first execution; each
	// with the same arguments is listed once.
	Programs []Execution `json:"programs,omitempty"`
	// Changes are those of files. One that failed for another reason than the binding of
	// the call may be among them.
	Changes []RecordedChange `json:"changes,omitempty"`
	// Connections are the addresses that were connected to, such as "192.0.2.7:443",
	// "[2001:db8::7]:53/udp" or "unix:/run/x.sock".
	Connections []string `json:"connections,omitempty"`
	// Exceeded is what the binding of the call did not allow, and what was denied for that.
	Exceeded []Excess `json:"exceeded,omitempty"`
	// Omitted counts what is not in the record: what is beyond its bounds, and what could
	// not be observed.
	Omitted int `json:"omitted,omitempty"`
}

// Execution is a program that a call has executed.
type Execution struct {
	// Path is absolute and without links.
	Path string `json:"path"`
	// Argv is how the program was called, its name included.
	Argv []string `json:"argv,omitempty"`
}

// RecordedChange is a change of a file or folder by a call. Its paths are absolute.
type RecordedChange struct {
	// Op is write, truncate, create, remove, rename, link or mode.
	Op   string `json:"op"`
	Path string `json:"path"`
	// To is the new name of rename and link.
	To string `json:"to,omitempty"`
}

// Excess is something that the binding of a call did not allow: a change of a path, the
// execution of a program, or an address.
type Excess struct {
	// Op is that of a change, or execute, connect or listen.
	Op      string `json:"op"`
	Path    string `json:"path,omitempty"`
	To      string `json:"to,omitempty"`
	Program string `json:"program,omitempty"`
	Address string `json:"address,omitempty"`
}

const (
	// namedExcesses is how many excesses are named in one line, excessWord how long the
	// name of one may be.
	namedExcesses = 8
	excessWord    = 200
)

// Size is how much the record holds and omits.
func (r *Record) Size() int {
	return len(r.Programs) + len(r.Changes) + len(r.Connections) + len(r.Exceeded) + r.Omitted
}

// Withheld is the record of a call whose result is withheld: what was denied, and a count of
// the rest.
func (r *Record) Withheld() *Record {
	if r == nil {
		return nil
	}
	return &Record{Exceeded: r.Exceeded, Omitted: r.Size() - len(r.Exceeded)}
}

// Excess is a line about what the binding of the call did not allow, "" if there is nothing.
// Paths below root are shown relative to it.
func (r *Record) Excess(root string) string {
	if r == nil || len(r.Exceeded) == 0 {
		return ""
	}
	var all []string
	for _, e := range r.Exceeded[:min(len(r.Exceeded), namedExcesses)] {
		all = append(all, e.words(root))
	}
	line := "exceeded its facts: " + strings.Join(all, ", ")
	if more := len(r.Exceeded) - len(all); more > 0 {
		line += fmt.Sprintf(" and %d more", more)
	}
	return line
}

func (e *Excess) words(root string) string {
	if e.Address != "" {
		return e.Op + " " + plain(e.Address)
	}
	words := e.Op + " " + plain(below(root, e.Path+e.Program)) // one of them
	if e.To != "" {
		words += " to " + plain(below(root, e.To))
	}
	return words
}

// below is a path relative to a folder, if it is below that.
func below(root, path string) string {
	if in, ok := strings.CutPrefix(path, strings.TrimSuffix(root, "/")+"/"); ok && root != "" && in != "" {
		return in
	}
	return path
}

// plain is a word that a program has chosen as a part of a line: it cannot end the line, nor
// look like more than one word.
func plain(s string) string {
	if len(s) > excessWord {
		s = strings.ToValidUTF8(s[:excessWord], "") + "…"
	}
	if strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsPrint(r) || r == ' ' || r == '"' || r == ',' || r == '[' || r == ']'
	}) {
		return strconv.Quote(s)
	}
	return s
}
