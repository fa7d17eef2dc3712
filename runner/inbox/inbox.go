// Package inbox stores messages and answers that other processes send to a run, until the run has recorded them.
package inbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"agentctl.dev/agentctl/api/message"
)

const (
	// TextLimit bounds the text of a message.
	TextLimit = 1 << 20
	// fileLimit bounds the file of a message: escapes in JSON take up to six bytes for
	// one.
	fileLimit = 6*TextLimit + 4096
	byLimit   = 256
	// takenTexts bounds the texts that one Take returns; the next one returns the rest.
	takenTexts = 4 << 20
)

// ErrClosed is the error for a message to a run that no longer accepts messages.
var ErrClosed = errors.New("it takes no messages any more")

// Inbox holds the messages to a run that it has not read. Its folder exists as long as the
// run accepts messages. A run that is about to end with its final answer removes the
// folder first. That fails while there is a message in it, and the run continues with the
// message. So every message that could be stored is read, unless the run ends otherwise.
type Inbox struct {
	// Refused is called for files that are not messages, with the reason. Optional.
	Refused func(name string, why error)

	run    string
	folder Folder
	unread string
}

// New returns the inbox of the run that has the id and the folder.
func New(run, dir string) *Inbox {
	b := &Inbox{run: run, folder: NewFolder(filepath.Join(dir, "messages")), unread: filepath.Join(dir, "unread")}
	b.folder.Scratch = dir
	return b
}

// Open begins to accept messages. Messages that Shut has put aside in a process that was
// killed afterwards are back.
func (b *Inbox) Open() error {
	if os.Rename(b.unread, b.folder.Dir) == nil {
		return nil
	}
	if err := os.Mkdir(b.folder.Dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("open the inbox: %w", err)
	}
	return nil
}

// letter is the content of a message file.
type letter struct {
	Run string `json:"run"`
	message.Incoming
}

// Check returns what is wrong with a message.
func Check(m message.Incoming) error {
	switch {
	case !ValidID(m.ID):
		return fmt.Errorf("its id %q is none", m.ID)
	case len(m.Text) > TextLimit:
		return fmt.Errorf("its text is longer than %d bytes", TextLimit)
	case !utf8.ValidString(m.Text):
		return errors.New("its text is no UTF-8")
	case strings.TrimSpace(m.Text) == "":
		return errors.New("it says nothing")
	case len(m.By) > byLimit || !utf8.ValidString(m.By):
		return errors.New("who sent it is no name")
	}
	return nil
}

const extension = ".json"

// Put stores a message, durably. Messages are read in the order of their ids. The error is
// ErrClosed when the run no longer accepts messages.
func (b *Inbox) Put(m message.Incoming) error {
	err := Check(m)
	if err == nil {
		var raw []byte
		if raw, err = json.Marshal(letter{b.run, m}); err == nil {
			err = b.folder.Put(m.ID+extension, raw)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrClosed
	}
	if err != nil {
		return fmt.Errorf("leave a message for run %s: %w", b.run, err)
	}
	return nil
}

// Take returns the stored messages, the oldest first, without removing them. A file that
// is not a message is removed.
func (b *Inbox) Take(ctx context.Context) (messages []message.Incoming) {
	names, all, err := b.folder.Names("")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		b.refuse(filepath.Base(b.folder.Dir), err)
		return nil
	}
	if !all {
		b.refuse(filepath.Base(b.folder.Dir), fmt.Errorf("it holds more than %d files, and not all are looked at", Looked))
	}
	size := 0
	for _, name := range names {
		if ctx.Err() != nil || size >= takenTexts {
			break
		}
		m, err := b.read(name)
		switch {
		case err == nil:
			size += len(m.Text)
			messages = append(messages, m.Incoming)
		case !errors.Is(err, fs.ErrNotExist):
			_ = b.folder.Remove(name)
			b.refuse(name, err)
		}
	}
	return messages
}

func (b *Inbox) read(name string) (*letter, error) {
	raw, err := b.folder.Read(name, fileLimit)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	m := &letter{}
	if err := d.Decode(m); err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is text behind it")
	}
	switch {
	case m.Run != b.run:
		return nil, errors.New("it is for another run")
	case name != m.ID+extension:
		return nil, errors.New("its name is not that of the message in it")
	}
	return m, Check(m.Incoming)
}

func (b *Inbox) refuse(name string, why error) {
	if b.Refused != nil {
		b.Refused(name, why)
	}
}

// Heard removes messages that the run has recorded. One that cannot be removed is read
// again, and recognised.
func (b *Inbox) Heard(messages []message.Incoming) {
	for _, m := range messages {
		_ = b.folder.Remove(m.ID + extension)
	}
}

// Close stops accepting messages if none is waiting, and reports whether it did.
func (b *Inbox) Close() bool {
	err := syscall.Rmdir(b.folder.Dir)
	return !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, syscall.EEXIST)
}

// Shut stops accepting messages in any case, and returns how many files are unread. They
// are put aside, since the end of the run may fail to be recorded.
func (b *Inbox) Shut() (unread int) {
	if b.Close() {
		return 0
	}
	names, _, _ := b.folder.Names("")
	if os.Rename(b.folder.Dir, b.unread) != nil {
		_ = os.RemoveAll(b.unread) // of an end that was never recorded
		_ = os.Rename(b.folder.Dir, b.unread)
	}
	return len(names)
}

// Discard removes what was put aside, now that the run has ended: it is not read any more,
// and it may hold secrets that the journal redacts. Of very many files some stay.
func (b *Inbox) Discard() {
	put := Folder{Dir: b.unread, UID: b.folder.UID}
	for range Looked / Most {
		names, _, err := put.Names("")
		if err != nil || len(names) == 0 {
			break
		}
		for _, name := range names {
			_ = os.RemoveAll(filepath.Join(b.unread, name))
		}
	}
	_ = syscall.Rmdir(b.unread)
}
