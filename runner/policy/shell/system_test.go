package shell

import (
	"slices"
	"strings"
	"testing"
)

// TestSystemProgramsEditorsAndDocuments: what programs about the system show, change and
// start, however their options are written.
func TestSystemProgramsEditorsAndDocuments(t *testing.T) {
	const exact, opaque, dynamic = "exact", "opaque", "dynamic"
	for _, c := range []struct{ script, is, reads, writes string }{
		{"ps aux", exact, "", ""},
		{"ps -eo pid,cmd --sort=-rss", exact, "", ""},
		{"kill -9 $(pidof x)", exact, "", ""},
		{"pkill -F run.pid", exact, "run.pid", ""},
		{"top -bn1", exact, "", ""},
		{"top", opaque, "", ""},
		{"mount", exact, "", ""},
		{"mount -o loop x.img /data", opaque, "/data x.img", ""},
		{"journalctl -u x --no-pager", exact, "/var/log/journal", ""},
		{"journalctl --vacuum-time=1d", opaque, "/var/log/journal", ""},
		{"systemctl status x --no-pager", exact, "", ""},
		{"systemctl --user enable x", opaque, "", ""},
		{"crontab -l", exact, "", ""},
		{"crontab new.tab", dynamic, "new.tab", ""},
		{"crontab -e", dynamic, "", ""},
		{"echo x | at now", dynamic, "", ""},
		{"atq", exact, "", ""},
		{"jobs -l", exact, "", ""},
		{"jobs -x frob", opaque, "", ""},
		{"getent passwd root", exact, "", ""},
		{"getent shadow", exact, "/etc/gshadow /etc/shadow", ""},
		{"usermod -aG x y", opaque, "", "/etc/group /etc/passwd /etc/shadow"},
		{"chattr +i f", exact, "", "f"},
		{"nm -D x.so", exact, "x.so", ""},
		{"nm", exact, "a.out", ""},
		{"objdump -d @list", dynamic, "list", ""},
		{"objdump --plugin=x.so f", opaque, "f", ""},
		{"strings -n8 f", exact, "f", ""},
		{"column -ts, f", exact, "f", ""},
		{"less +F f", opaque, "f", ""},
		{"less -o log f", exact, "f", "log"},
		{"less '+!id' f", opaque, "f", ""},
		{"LESSOPEN='|x %s' less f", dynamic, "f", ""},
		{"man ls", exact, "", ""},
		{"man -l ./x.1", dynamic, "./x.1", ""},
		{"man --html=x ls", opaque, "", ""},
		{"vim f", dynamic, "f", "f"},
		{"bat f", exact, "f", ""},
		{"gdb -q ./x", dynamic, "./x", ""},
		{"tmux new -d x", dynamic, "", ""},
		{"pdflatex x.tex", dynamic, "", ""},
		{"groff -man x.1", dynamic, "x.1", ""},
		{"pwsh -c x", dynamic, "", ""},
		{"uudecode -o f g", exact, "g", "f"},
		{"uudecode g", dynamic, "g", ""},
		{"dos2unix -q f", exact, "f", "f"},
	} {
		f := Parse(c.script, "")
		is := exact
		switch {
		case f.Dynamic:
			is = dynamic
		case f.Opaque:
			is = opaque
		}
		if is != c.is {
			t.Errorf("%s is %s, not %s: %v %q", c.script, is, c.is, f.Reasons, f.Commands[0].Opaque)
		}
		if !slices.Equal(strings.Fields(c.reads), sorted(f.Reads)) || !slices.Equal(strings.Fields(c.writes), sorted(f.Writes)) {
			t.Errorf("%s reads %v and writes %v", c.script, f.Reads, f.Writes)
		}
	}
}
