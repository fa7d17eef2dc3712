package display

import (
	"regexp"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"
)

// narrowest is the least width in which what a flag does is broken into lines.
const narrowest = 24

// flagLine finds where in a line of a usage it begins to say what a flag does.
var flagLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^ +(?:-\w, )?--\S+(?: \S+)? {2,}`) })

// Help shows what a command is for and how it is used. Where the terminal is
// narrow, what flags do is broken into lines below one another.
func Help(s *Screen, about, usage string) error {
	s.print(strings.TrimRight(about, " \n") + "\n\n")
	for line := range strings.Lines(usage) {
		s.print(hung(line, s.width()))
	}
	return s.Err()
}

// hung breaks a line about a flag so that its second part hangs below the first.
func hung(line string, width int) string {
	line = strings.TrimRight(line, "\n")
	at := len(flagLine().FindString(line))
	if at == 0 || width == 0 || width-at < narrowest || ansi.StringWidth(line) <= width {
		return line + "\n"
	}
	text := ansi.Wordwrap(line[at:], width-at, "")
	return line[:at] + strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", at)) + "\n"
}
