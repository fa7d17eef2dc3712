package display

import "strings"

// Demos lists the demos: name and what happens.
func Demos(s *Screen, demos [][]string) error {
	rows := append([][]string{{"DEMO", "WHAT HAPPENS"}}, demos...)
	return Text(s, table(rows)+"\nnext: agentctl demo DEMO runs it; it needs no key")
}

// DemoBegins says what a demo is about, before its run.
func DemoBegins(s *Screen, name, does string) error { return Text(s, "demo "+name+": "+does+"\n") }

// DemoCommand names the command that follows.
func DemoCommand(s *Screen, command string) error { return Text(s, "$ agentctl "+Line(command)+"\n") }

// DemoEnds says what there was to be seen.
func DemoEnds(s *Screen, shown []string, dir string) error {
	var b strings.Builder
	b.WriteString("\n")
	for _, line := range shown {
		b.WriteString("- " + line + "\n")
	}
	b.WriteString("next: agentctl describe run/@latest shows the run on one page, and " + Line(dir) + " holds its manifests")
	return Text(s, b.String())
}
