package display

import "strings"

// Templates lists templates: name, shorter name or "", and what it does.
func Templates(s *Screen, templates [][]string) error {
	rows := [][]string{{"TEMPLATE", "ALSO", "WHAT IT DOES"}}
	for _, t := range templates {
		rows = append(rows, []string{t[0], dash(t[1]), t[2]})
	}
	return Text(s, table(rows)+"\nnext: agentctl init TEMPLATE writes it to agents/TEMPLATE")
}

// BegunSet lists the files of a new set of manifests, and what to do next.
func BegunSet(s *Screen, dir string, files []string, pipeline string) error {
	var b strings.Builder
	for _, f := range files {
		b.WriteString(Line(f) + "\n")
	}
	if pipeline != "" {
		b.WriteString(Line(pipeline) + "\n")
	}
	b.WriteString("next: agentctl test -f " + Line(dir) + " needs no key; " + Line(dir) + "/README.md says what the agent may do")
	return Text(s, b.String())
}

// CarriedOver is a part of a foreign configuration: what it has become, or, where To is "",
// why it is in no manifest.
type CarriedOver struct{ At, To, Why string }

// CarriedSet lists what became of a foreign configuration, a line each, and what to do next.
func CarriedSet(s *Screen, dir string, files []string, parts []CarriedOver) error {
	var b strings.Builder
	for _, p := range parts {
		at := p.At
		if at == "" {
			at = "/"
		}
		switch {
		case p.To == "":
			b.WriteString("left     " + Line(at) + ": " + Line(p.Why) + "\n")
		case p.Why == "":
			b.WriteString("carried  " + Line(at) + ": " + Line(p.To) + "\n")
		default:
			b.WriteString("carried  " + Line(at) + ": " + Line(p.To) + "; stricter: " + Line(p.Why) + "\n")
		}
	}
	for _, f := range files {
		b.WriteString(Line(f) + "\n")
	}
	b.WriteString("next: agentctl validate -f " + Line(dir))
	return Text(s, b.String())
}
