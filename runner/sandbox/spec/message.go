package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// ControlFD is the one descriptor that the helper has besides stdin, stdout and
// stderr: its end of a socket pair that keeps message boundaries
// (SOCK_SEQPACKET). The first message is a Boot, answered by a Reply; then the
// helper receives Requests and sends Replies. The helper ends with the socket.
const ControlFD = 3

// MaxMessage bounds one message. The kernel's own bound is some 200 KB.
const MaxMessage = 160 << 10

// Boot is the first message.
type Boot struct {
	Version int     `json:"version"`
	Profile Profile `json:"profile"`
	// Root is an empty folder of the runner on which the helper builds the view.
	Root string `json:"root"`
	// UID and GID are those of the user that programs run as: the same inside
	// and outside.
	UID int `json:"uid"`
	GID int `json:"gid"`
}

// Op is what the runner asks for.
type Op string

// The operations.
const (
	// OpStart starts a program. Four descriptors may come with the message:
	// stdin, stdout, stderr and, when Checked, the file that was checked.
	OpStart Op = "start"
	// OpSignal sends a signal to the process group of a program.
	OpSignal Op = "signal"
	// OpSweep kills a program and all it started, and answers when no process of
	// it is left.
	OpSweep Op = "sweep"
	// OpProtect makes existing paths read-only or unreadable.
	OpProtect Op = "protect"
)

// Request is one message of the runner.
type Request struct {
	// ID is chosen by the runner, and never again in the same sandbox. That of
	// OpStart is the program's name in all that follows.
	ID uint64 `json:"id"`
	Op Op     `json:"op"`

	// Path, Argv, Env and Dir of OpStart. Path is as seen inside.
	Path    string   `json:"path,omitempty"`
	Argv    []string `json:"argv,omitempty"`
	Env     []string `json:"env,omitempty"`
	Dir     string   `json:"dir,omitempty"`
	Checked bool     `json:"checked,omitempty"`

	// Program that OpSignal and OpSweep are about, and the signal's number.
	Program uint64 `json:"program,omitempty"`
	Signal  int    `json:"signal,omitempty"`

	// ReadOnly and Masked of OpProtect.
	ReadOnly []string `json:"readOnly,omitempty"`
	Masked   []string `json:"masked,omitempty"`
}

// Reply is one message of the helper: the answer to a request, the end of a
// program, or, with ID 0, the answer to the Boot.
type Reply struct {
	ID uint64 `json:"id"`
	// Error is what was being done and why it failed, Errno its number, so that
	// the runner can return the same error as for a program without a sandbox.
	Error string `json:"error,omitempty"`
	Errno int    `json:"errno,omitempty"`

	// PID of a started program inside the sandbox.
	PID int `json:"pid,omitempty"`
	// Exited is set when program ID has ended: with Code, or by Signal.
	Exited bool `json:"exited,omitempty"`
	Code   int  `json:"code,omitempty"`
	Signal int  `json:"signal,omitempty"`

	// Exceeded is what the processes took together, in bytes, when some of them were
	// killed because that was more than the limit of memory. It answers no request.
	Exceeded int64 `json:"exceeded,omitempty"`

	// Missing paths of OpProtect, which do not exist.
	Missing []string `json:"missing,omitempty"`
	// Landlock is the ABI in force, 0 for none; Unenforced names the limits and
	// layers this sandbox lacks. Both belong to the answer to the Boot. Two
	// descriptors come with it: the file system behind SocketDir, whose folder
	// SocketFolder is what programs see, and, for NetworkProxy, the listener.
	Landlock   int      `json:"landlock,omitempty"`
	Unenforced []string `json:"unenforced,omitempty"`
}

// ErrTooLarge is the error for a message over MaxMessage.
var ErrTooLarge = errors.New("the message is too large")

// Encode checks and writes a message.
func Encode(m interface{ Check() error }) ([]byte, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	b, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	if len(b) > MaxMessage {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(b), MaxMessage)
	}
	return b, nil
}

// decode reads exactly one message without unknown fields.
func decode(b []byte, into any) error {
	if len(b) > MaxMessage {
		return ErrTooLarge
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the message")
	}
	return nil
}

// DecodeBoot reads and checks the first message.
func DecodeBoot(b []byte) (*Boot, error) {
	var m Boot
	if err := decode(b, &m); err != nil {
		return nil, fmt.Errorf("read the profile: %w", err)
	}
	if err := m.Check(); err != nil {
		return nil, fmt.Errorf("the profile is wrong: %w", err)
	}
	return &m, nil
}

// Check validates the message.
func (m *Boot) Check() error {
	if m.Version != Version {
		return fmt.Errorf("the runner speaks version %d, this helper %d: both must come from one build", m.Version, Version)
	}
	err := errors.Join(m.Profile.Check(), CheckPath("root", m.Root))
	if err == nil && (m.UID < 0 || m.GID < 0) {
		err = errors.New("the user is negative")
	}
	return err
}

// DecodeRequest reads and checks a request. When the error is set and the
// request is not nil, its ID can be answered.
func DecodeRequest(b []byte) (*Request, error) {
	var m Request
	if err := decode(b, &m); err != nil {
		return nil, fmt.Errorf("read a request: %w", err)
	}
	if err := m.Check(); err != nil {
		return &m, fmt.Errorf("request %d is wrong: %w", m.ID, err)
	}
	return &m, nil
}

// Check validates the request.
func (m *Request) Check() error {
	if m.ID == 0 {
		return errors.New("it has no id")
	}
	switch m.Op {
	case OpStart:
		return m.checkStart()
	case OpSignal:
		if m.Signal < 1 || m.Signal > 64 {
			return fmt.Errorf("there is no signal %d", m.Signal)
		}
		return m.checkProgram()
	case OpSweep:
		return m.checkProgram()
	case OpProtect:
		for _, p := range append(append([]string(nil), m.ReadOnly...), m.Masked...) {
			if err := CheckPath("path", p); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("there is no operation %q", m.Op)
}

func (m *Request) checkProgram() error {
	if m.Program == 0 {
		return errors.New("it names no program")
	}
	return nil
}

func (m *Request) checkStart() error {
	if len(m.Argv) == 0 {
		return errors.New("the command is empty")
	}
	for _, s := range append(append([]string{m.Path, m.Dir}, m.Argv...), m.Env...) {
		if strings.IndexByte(s, 0) >= 0 {
			return errors.New("a NUL byte in the command")
		}
		if !utf8.ValidString(s) { // JSON would replace invalid UTF-8
			return fmt.Errorf("%q in the command is not UTF-8", s)
		}
	}
	if !strings.HasPrefix(m.Path, "/") || !strings.HasPrefix(m.Dir, "/") {
		return errors.New("the program's path or folder is not absolute")
	}
	return nil
}

// Check accepts every reply: which fields are valid depends on the request.
func (m *Reply) Check() error { return nil }

// DecodeReply reads a message of the helper.
func DecodeReply(b []byte) (*Reply, error) {
	var m Reply
	if err := decode(b, &m); err != nil {
		return nil, fmt.Errorf("read an answer of the sandbox: %w", err)
	}
	return &m, nil
}
