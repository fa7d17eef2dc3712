package ci

import (
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"

	"agentctl.dev/agentctl/api/view"
)

// maxAnnotations is how many annotations of a level GitHub shows of a step.
const maxAnnotations = 10

// maxOutput bounds a value in GITHUB_OUTPUT; all those of a job may have 1 MiB.
const maxOutput = 256 << 10

var dataEscapes = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")

var propertyEscapes = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")

// command is a workflow command: its properties are pairs of a name and a value, of which
// empty ones are left out.
func command(name, message string, properties ...string) string {
	var b strings.Builder
	b.WriteString("::" + name)
	sep := " "
	for i := 0; i+1 < len(properties); i += 2 {
		if properties[i+1] != "" {
			b.WriteString(sep + properties[i] + "=" + propertyEscapes.Replace(properties[i+1]))
			sep = ","
		}
	}
	b.WriteString("::" + dataEscapes.Replace(message) + "\n")
	return b.String()
}

// annotations are the findings and the failure of a run, as far as GitHub shows them.
func annotations(r *view.Result, found []Finding) string {
	var b strings.Builder
	if p := problem(r); p != "" {
		b.WriteString(command("error", p, "title", "agentctl: "+line(r.Agent)))
	}
	names := map[Level]string{Error: "error", Warning: "warning", Note: "notice"}
	shown := map[Level]int{}
	for _, f := range found {
		if shown[f.Level]++; shown[f.Level] > maxAnnotations {
			continue
		}
		b.WriteString(command(names[f.Level], f.Message, "file", f.File, "line", count(f.Line), "col", count(f.Column), "title", f.Rule))
	}
	for _, l := range []Level{Error, Warning, Note} {
		if more := shown[l] - maxAnnotations; more > 0 {
			fmt.Fprintf(&b, "%d more findings with the level %s are in the reports\n", more, l)
		}
	}
	return b.String()
}

// count is a number as a property has it; "" is unknown.
func count(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// outputs are the outputs of the step. The delimiter is random, so that no value can end
// its own and begin another.
func outputs(r *view.Result, found []Finding, random io.Reader) (string, error) {
	secret := make([]byte, 16)
	if _, err := io.ReadFull(random, secret); err != nil {
		return "", fmt.Errorf("choose a delimiter: %w", err)
	}
	delimiter := "agentctl_" + hex.EncodeToString(secret)
	var b strings.Builder
	set := func(name, value string) error {
		if len(value) > maxOutput {
			value = "" // a part of it could be taken for all of it
		}
		if strings.Contains(value, delimiter) {
			return fmt.Errorf("the value of %s holds the delimiter", name)
		}
		fmt.Fprintf(&b, "%s<<%s\n%s\n%s\n", name, delimiter, strings.ReplaceAll(value, "\x00", ""), delimiter)
		return nil
	}
	cost := ""
	if r.Cost != nil {
		cost = r.Cost.String()
	}
	for _, o := range [][2]string{
		{"run", r.Run},
		{"phase", r.Phase},
		{"reason", r.Reason},
		{"exit-code", strconv.Itoa(r.ExitCode)},
		{"output", r.Output},
		{"structured", string(r.Structured)},
		{"findings", strconv.Itoa(len(found))},
		{"changed-files", strconv.Itoa(len(r.ChangedFiles) + r.ChangedFilesOmitted)},
		{"cost", cost},
		{"journal", r.Journal},
	} {
		if err := set(o[0], o[1]); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}
