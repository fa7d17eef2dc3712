package shell

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/plugins/shell/internal/record"
)

// A shell needs about as long to start as a small command to run, so the next
// one is started while the model thinks: it waits, with nothing to do, for the
// command of the next call. Each call still has a process of its own.
//
// The command comes over a socket, not a pipe: another process of the same user
// cannot open it by its name in /proc and put words in. What such a shell has and
// another has not is the variable REPLY.
const waiting = `IFS= read -r -d "" -u 3 || exit 0; exec 3<&-; eval "$REPLY"`

// A shell that waits is bound when its command comes, not before: which programs and files
// the command may use is not known earlier. A process can only bind itself, and bash has no
// command for that, but it can load one from a shared object (enable -f). Where it cannot,
// each bound call starts a shell of its own; see bind.
const (
	// bindCommand is the name of that command.
	bindCommand = "agentctl_bind"
	// wordsFD, rulesFD, objectFD and networkFD are descriptors of the shell: its socket, the
	// rules for a call without network, the command, and the rules for one with network.
	wordsFD, rulesFD, objectFD, networkFD = 3, 4, 5, 6
)

// waitingFree is waiting for a shell that can be bound. It reports that it can, and before
// the command comes a word: bound, bound with the rules for a call with network, or another.
const waitingFree = `enable -f /proc/self/fd/5 ` + bindCommand + ` 2>/dev/null || exit 0; exec 5<&-; printf . >&3; IFS= read -r -d "" -u 3 || exit 0; ` +
	`case $REPLY in bound) ` + bindCommand + `;; network) exec 4<&6; ` + bindCommand + `;; esac; enable -d ` + bindCommand + `; exec 4<&- 6<&-; ` + waiting

// readyTime bounds the wait for a shell that has been started long ago.
const readyTime = 2 * time.Second

// maxHanded is the longest command that is handed over: the shell reads it byte
// by byte. Longer ones are a matter for a shell of their own.
const maxHanded = 4096

// ready is a shell that waits.
type ready struct {
	*process
	words *os.File
	// rules bind it when its command comes, to a call without and one with network; nil if
	// it cannot be bound.
	rules [2]*rules
	// root is the folder it waits in, as it was when it was started.
	root os.FileInfo
}

// end releases what a shell that does not wait any more needed for that.
func (r *ready) end() {
	_ = r.words.Close()
	for _, rules := range r.rules {
		rules.end()
	}
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
	pair, err := socketpair()
	if err != nil {
		return
	}
	_ = unix.SetNonblock(pair[0], true) // so that its reads can have a deadline
	r := &ready{words: os.NewFile(uintptr(pair[0]), "words"), root: root}
	theirs := os.NewFile(uintptr(pair[1]), "words")
	defer theirs.Close()
	files, script := []*os.File{theirs}, waiting
	if free, object := b.bindable(); object != nil {
		r.rules = free
		files, script = append(files, free[0].File, object, free[1].File), waitingFree
	}
	r.process, err = b.spawn(&folder{path: dir}, os.Environ(), files, terms{}, "-c", script)
	if err != nil {
		r.end()
		return
	}
	b.next = r
}

// socketpair makes two connected sockets that no program inherits. Only Linux can make them
// so at once; elsewhere no program is started meanwhile.
func socketpair() (pair [2]int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if pair, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0); err == nil {
		unix.CloseOnExec(pair[0])
		unix.CloseOnExec(pair[1])
	}
	return pair, err
}

// bindable returns what a shell needs to be bound when its command comes: rules for a call
// without and one with network, and the command that applies them; nil if it cannot be.
func (b *bash) bindable() (free [2]*rules, object *os.File) {
	if b.unbindable {
		return free, nil
	}
	var err error
	for i, network := range []bool{false, true} {
		if free[i], err = newRules(network); err != nil || free[i] == nil {
			free[0].end()
			return [2]*rules{}, nil
		}
	}
	scope := record.Everything
	if !recordable() {
		scope = 0
	}
	if object, err = record.Command(bindCommand, scope, rulesFD, wordsFD); err != nil {
		free[0].end()
		free[1].end()
		return [2]*rules{}, nil
	}
	return free, object
}

// handOver gives the command to the shell that waits. It returns nil when none
// does, or when the command needs one of its own.
func (b *bash) handOver(command, dir string, j *job) (*process, error) {
	if len(command) > maxHanded {
		return nil, nil
	}
	bound := j.call.Binding
	b.mu.Lock()
	r := b.next
	if r != nil && (bound != nil && r.rules[0] == nil || bound == nil && j.call.RecordPrograms) {
		b.mu.Unlock()
		return nil, nil
	}
	b.next = nil
	b.mu.Unlock()
	if r == nil {
		return nil, nil
	}
	// Closing the socket is the end of the words, and of a shell without any.
	defer r.end()
	now, err := os.Stat(dir)
	if err != nil || !os.SameFile(now, r.root) || closed(r.exited) || !b.listens(r) {
		r.discard(b.forest)
		return nil, nil
	}
	words, rules := command+"\x00", r.rules[0]
	switch {
	case bound != nil && bound.Network:
		words, rules = "network\x00"+words, r.rules[1]
	case bound != nil:
		words = "bound\x00" + words
	case rules != nil:
		words = "free\x00" + words
	}
	if bound != nil {
		if err := rules.add(bound, os.Getenv("PATH"), dir); err != nil {
			r.discard(b.forest)
			return nil, err
		}
	}
	// Whole or not at all: without its end, the shell does not run the words. Once
	// they are sent the call is this shell's, even if it has ended already.
	if _, err := io.WriteString(r.words, words); err != nil {
		r.discard(b.forest)
		return nil, nil
	}
	if bound != nil {
		r.recorder, err = record.Attach(r.words, record.Options{Rights: &rules.rights, Excess: j.exceeded})
		if err != nil {
			r.discard(b.forest)
			return nil, err
		}
	}
	return r.process, nil
}

// listens waits until a shell that can be bound has reported that it can. A shell that
// could not load the command for it has ended.
func (b *bash) listens(r *ready) bool {
	if r.rules[0] == nil {
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
