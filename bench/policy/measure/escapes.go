package measure

import (
	"context"
	"slices"
	"strings"
)

// shells start further commands.
var shells = []string{"sh", "bash", "dash", "ash", "ksh", "zsh", "csh", "tcsh", "fish"}

// measureEscapes counts the commands whose facts show what the corpus says that they do.
func measureEscapes(ctx context.Context, b *bench) error {
	escapes, err := readLines[escape](b.corpus("third-party/gtfobins.jsonl"))
	if err != nil {
		return err
	}
	commands := make([]string, len(escapes))
	for i, e := range escapes {
		commands[i] = e.Command
	}
	all, err := b.program.facts(ctx, commands)
	if err != nil {
		return err
	}
	shown, recognised, either, unnamed := 0, 0, 0, 0
	for i, f := range all {
		direct := f.shows(escapes[i])
		switch {
		case direct:
			shown++
			recognised++
			either++
		case f.Dynamic:
			recognised++
			either++
		case f.opaque():
			either++
		default:
			unnamed++
		}
		if !direct && !f.Dynamic {
			b.report.fail(failure{ID: escapes[i].Program, Command: commands[i], Want: escapes[i].Does, Got: f.String(), Why: f.summary()})
		}
	}
	n := len(all)
	b.report.share("the facts show what it does", shown, n, nil)
	b.report.share("they show it, or are dynamic (recognised)", recognised, n, atLeast(80))
	b.report.share("recognised, or opaque", either, n, atLeast(98))
	return b.opaqueEveryday(ctx)
}

// opaqueEveryday reports beside it how many everyday commands are opaque: a program that
// calls everything opaque recognises everything.
func (b *bench) opaqueEveryday(ctx context.Context) error {
	commands, err := b.benign()
	if err != nil {
		return err
	}
	written, err := readCommands(b.corpus("third-party/nl2bash.txt"))
	if err != nil {
		return err
	}
	all, err := b.program.facts(ctx, append(commands, written...))
	if err != nil {
		return err
	}
	opaque := 0
	for _, f := range all {
		if f.opaque() {
			opaque++
		}
	}
	b.report.share("everyday commands that are opaque", opaque, len(all), nil)
	return nil
}

// shows reports whether the facts name what the escape does: a start, a read, a write or
// a connection. A path that may be read or written does not count.
func (f facts) shows(e escape) bool {
	switch e.Does {
	case "shell":
		return f.starts(e.Program, shells...)
	case "command":
		return f.starts(e.Program, append([]string{"command", "command-argument"}, shells...)...)
	case "file-read":
		return named(f.Reads, "input")
	case "file-write":
		return named(f.Writes, "output") || named(f.Writes, "input-file") // which some lines overwrite
	case "upload", "download", "reverse-shell", "bind-shell":
		return f.Network
	case "library-load":
		return named(f.Reads, "lib.so") || f.starts(e.Program, "lib.so")
	case "privilege-escalation":
		return len(f.Writes) > 0 || named(f.Reads, "shadow")
	}
	return f.starts(e.Program) // inherit: what another program runs
}

// starts reports whether a command is named besides the first of the program itself: one
// of those, or any if none are given.
func (f facts) starts(program string, names ...string) bool {
	self := false
	for _, n := range f.names() {
		if n == program && !self {
			self = true
			if !slices.Contains(names, n) {
				continue
			}
		}
		if len(names) == 0 && n != program || slices.Contains(names, n) {
			return true
		}
	}
	return false
}

func named(paths []string, part string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return p == "?" || strings.Contains(strings.ToLower(p), part) })
}

// summary is what the facts name, for lists of failures.
func (f facts) summary() string {
	text := "commands " + strings.Join(f.names(), ",") + " reads " + strings.Join(f.Reads, ",") + " writes " + strings.Join(f.Writes, ",")
	if f.Network {
		text += " network"
	}
	return text
}
