package shell

import (
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A shell needs about as long to start as a small command to run, so the next
// one is started while the model thinks: it waits, with nothing to do, for the
// command of the next call. Each call still has a process of its own.
//
// The command comes over a socket, not a pipe: another process of the same user
// cannot open it by its name in /proc and put words in. What such a shell has and
// another has not is the variable REPLY.
const waiting = `IFS= read -r -d "" -u 3 || exit 0; exec 3<&-; eval "$REPLY"`

// maxHanded is the longest command that is handed over: the shell reads it byte
// by byte. Longer ones are a matter for a shell of their own.
const maxHanded = 4096

// ready is a shell that waits.
type ready struct {
	*process
	words *os.File
	// root is the folder it waits in, as it was when it was started.
	root os.FileInfo
}

// prepareNext starts the next shell, unless one waits already.
func (b *bash) prepareNext(dir string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next != nil || filepath.Base(b.shell) != "bash" {
		return
	}
	root, err := os.Stat(dir)
	if err != nil {
		return
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return
	}
	words, theirs := os.NewFile(uintptr(pair[0]), "words"), os.NewFile(uintptr(pair[1]), "words")
	p, err := b.spawn(&folder{path: dir}, os.Environ(), []*os.File{theirs}, "-c", waiting)
	_ = theirs.Close()
	if err != nil {
		_ = words.Close()
		return
	}
	b.next = &ready{p, words, root}
}

// handOver gives the command to the shell that waits. It returns nil when none
// does, or when the command needs one of its own.
func (b *bash) handOver(command, dir string) *process {
	if len(command) > maxHanded {
		return nil
	}
	b.mu.Lock()
	r := b.next
	b.next = nil
	b.mu.Unlock()
	if r == nil {
		return nil
	}
	// Closing the socket is the end of the words, and of a shell without any.
	defer r.words.Close()
	now, err := os.Stat(dir)
	if err != nil || !os.SameFile(now, r.root) || closed(r.exited) {
		b.discard(r)
		return nil
	}
	// Whole or not at all: without its end, the shell does not run the words. Once
	// they are sent the call is this shell's, even if it has ended already.
	if _, err := io.WriteString(r.words, command+"\x00"); err != nil {
		b.discard(r)
		return nil
	}
	return r.process
}

// discard ends a shell that waits in vain.
func (b *bash) discard(r *ready) {
	_ = r.cmd.Process.Kill()
	<-r.exited
	b.forest.forget(r.tree)
	_ = r.pipe.Close()
}
