package shell

import (
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/plugins/sdk"
)

// A shell needs about as long to start as a small command to run, so the next
// one is started while the model thinks: it waits, with nothing to do, for the
// command of the next call. Each call still has a process of its own.
//
// The command comes over a socket, not a pipe: another process of the same user
// cannot open it by its name in /proc and put words in. What such a shell has and
// another has not is the variable REPLY.
const waiting = `IFS= read -r -d "" -u 3 || exit 0; exec 3<&-; eval "$REPLY"`

// waitingFree is the same for a shell that can be bound. It reports that it can, and before
// the command comes a word: bound, or another.
const waitingFree = `enable -f /proc/self/fd/5 ` + bindCommand + ` 2>/dev/null || exit 0; exec 5<&-; printf . >&3; IFS= read -r -d "" -u 3 || exit 0; ` +
	`case $REPLY in bound) ` + bindCommand + `;; esac; enable -d ` + bindCommand + `; exec 4<&-; ` + waiting

// readyTime bounds the wait for a shell that has been started long ago.
const readyTime = 2 * time.Second

// maxHanded is the longest command that is handed over: the shell reads it byte
// by byte. Longer ones are a matter for a shell of their own.
const maxHanded = 4096

// ready is a shell that waits.
type ready struct {
	*process
	words *os.File
	// rules bind it when its command comes; nil if it cannot be bound.
	rules *rules
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
	_ = unix.SetNonblock(pair[0], true) // so that its reads can have a deadline
	words, theirs := os.NewFile(uintptr(pair[0]), "words"), os.NewFile(uintptr(pair[1]), "words")
	defer theirs.Close()
	free, object := b.bindable()
	files, script := []*os.File{theirs}, waiting
	if free != nil {
		defer object.Close()
		files, script = append(files, free.File, object), waitingFree
	}
	p, err := b.spawn(&folder{path: dir}, os.Environ(), files, nil, "-c", script)
	if err != nil {
		_ = words.Close()
		free.end()
		return
	}
	b.next = &ready{p, words, free, root}
}

// bindable returns what a shell needs to be bound when its command comes; nil if it cannot
// be.
func (b *bash) bindable() (*rules, *os.File) {
	if b.unbindable {
		return nil, nil
	}
	free, err := newRules(false)
	if err != nil || free == nil {
		return nil, nil
	}
	object := bindFile()
	if object == nil {
		free.end()
		return nil, nil
	}
	return free, object
}

// handOver gives the command to the shell that waits. It returns nil when none
// does, or when the command needs one of its own.
func (b *bash) handOver(command, dir string, bound *sdk.Binding) (*process, error) {
	if len(command) > maxHanded {
		return nil, nil
	}
	b.mu.Lock()
	r := b.next
	if r != nil && bound != nil && (r.rules == nil || bound.Network) {
		b.mu.Unlock()
		return nil, nil
	}
	b.next = nil
	b.mu.Unlock()
	if r == nil {
		return nil, nil
	}
	// Closing the socket is the end of the words, and of a shell without any.
	defer r.words.Close()
	defer r.rules.end()
	now, err := os.Stat(dir)
	if err != nil || !os.SameFile(now, r.root) || closed(r.exited) || !b.listens(r) {
		b.discard(r)
		return nil, nil
	}
	words := command + "\x00"
	if bound != nil {
		if err := r.rules.add(bound, os.Getenv("PATH"), dir); err != nil {
			b.discard(r)
			return nil, err
		}
		words = "bound\x00" + words
	} else if r.rules != nil {
		words = "free\x00" + words
	}
	// Whole or not at all: without its end, the shell does not run the words. Once
	// they are sent the call is this shell's, even if it has ended already.
	if _, err := io.WriteString(r.words, words); err != nil {
		b.discard(r)
		return nil, nil
	}
	return r.process, nil
}

// listens waits until a shell that can be bound has reported that it can. A shell that
// could not load the command for it has ended.
func (b *bash) listens(r *ready) bool {
	if r.rules == nil {
		return true
	}
	_ = r.words.SetReadDeadline(time.Now().Add(readyTime))
	if n, err := r.words.Read(make([]byte, 1)); n == 1 && err == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unbindable = true
	return false
}

// discard ends a shell that waits in vain.
func (b *bash) discard(r *ready) {
	_ = r.cmd.Process.Kill()
	<-r.exited
	b.forest.forget(r.tree)
	_ = r.pipe.Close()
}
