package display

import "strings"

// Exported is a run that was written into one file.
type Exported struct {
	Run string `json:"run"`
	// Runs are that and those below it.
	Runs   []string `json:"runs"`
	File   string   `json:"file"`
	Bytes  int64    `json:"bytes"`
	SHA256 string   `json:"sha256"`
	// Seq and Hash are of the last event of the run.
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
	// HasFiles says that the files of the run are in it, Files counts them.
	HasFiles bool `json:"hasFiles"`
	Files    int  `json:"files"`
	Git      bool `json:"git"`
	// Excluded are globs of what was left out, Secrets are files that were.
	Excluded []string `json:"excluded"`
	Secrets  []string `json:"secrets"`
}

// mostLeftOut bounds the files that a text lists.
const mostLeftOut = 10

// WriteText says what is in the file, and what is not.
func (e Exported) WriteText(s *Screen) error {
	var b strings.Builder
	what := "without files"
	if e.HasFiles {
		what = plural(int64(e.Files), "file")
	}
	if below := len(e.Runs) - 1; below > 0 {
		what += ", " + plural(int64(below), "run") + " below it"
	}
	b.WriteString("exported run/" + Line(e.Run) + " to " + Line(e.File) + ": " + what + ", " + Size(e.Bytes) + "\n")
	for i, name := range e.Secrets {
		if i == mostLeftOut {
			b.WriteString("left out: " + count(int64(len(e.Secrets)-i)) + " more files that may hold secrets\n")
			break
		}
		b.WriteString("left out: " + Line(name) + ", which may hold secrets\n")
	}
	for _, glob := range e.Excluded {
		b.WriteString("left out: " + Line(glob) + "\n")
	}
	b.WriteString(next(s, "agentctl fork "+shellWord(e.File)+" -f MANIFESTS"))
	return Text(s, b.String())
}

// WriteJSON writes one object.
func (e Exported) WriteJSON(s *Screen) error {
	e.Excluded, e.Secrets = append([]string{}, e.Excluded...), append([]string{}, e.Secrets...)
	return writeJSON(s, e)
}
