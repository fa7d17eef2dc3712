// Package entry is the first process of every container: it reads the environment from a pipe, runs the program and reaps.
//
// It exists for three reasons. containerd keeps the spec of a container on
// disk, so declared variables, which may be secrets, must not be in it: they
// come over standard input. A program that is process 1 ignores the signals it
// has no handler for, and the orphans of its children stay zombies. And a
// container whose programs are started by call needs a process that only keeps
// it running.
package entry

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// The first argument is the command.
const (
	// Run runs the program named by the other arguments.
	Run = "run"
	// Hold waits until it is asked to end.
	Hold = "hold"
)

// Exit codes of its own, those a shell has.
const (
	exitUsage      = 125
	exitCannotRun  = 126
	exitNotFound   = 127
	exitBySignal   = 128
	maxEnvironment = 1 << 20
)

// Greeting is what the program reads from standard input before its own input.
type Greeting struct {
	// Env are variables as NAME=value, added to those of the container.
	Env []string
	// Input is set when input follows; without it the program gets /dev/null.
	Input bool
}

// headerLen is a version, a flag and the length of what follows.
const headerLen = 6

const version = 1

// Encode returns the greeting as it is sent.
func (g Greeting) Encode() ([]byte, error) {
	body := strings.Join(g.Env, "\x00")
	for _, kv := range g.Env {
		if name, _, ok := strings.Cut(kv, "="); !ok || name == "" || strings.IndexByte(kv, 0) >= 0 {
			return nil, errors.New("a variable is not NAME=value, or holds a NUL byte")
		}
	}
	if len(body) > maxEnvironment {
		return nil, fmt.Errorf("the environment is over %d bytes", maxEnvironment)
	}
	out := make([]byte, headerLen, headerLen+len(body))
	out[0] = version
	if g.Input {
		out[1] = 1
	}
	binary.BigEndian.PutUint32(out[2:], uint32(len(body)))
	return append(out, body...), nil
}

// ReadGreeting reads a greeting and not one byte more: the rest is the program's.
func ReadGreeting(r io.Reader) (Greeting, error) {
	var head [headerLen]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return Greeting{}, fmt.Errorf("read the greeting: %w", err)
	}
	size := binary.BigEndian.Uint32(head[2:])
	switch {
	case head[0] != version || head[1] > 1:
		return Greeting{}, fmt.Errorf("the greeting is of version %d, not %d", head[0], version)
	case size > maxEnvironment:
		return Greeting{}, fmt.Errorf("the environment is over %d bytes", maxEnvironment)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return Greeting{}, fmt.Errorf("read the environment: %w", err)
	}
	g := Greeting{Input: head[1] == 1}
	if size > 0 {
		g.Env = strings.Split(string(body), "\x00")
	}
	for _, kv := range g.Env {
		if name, _, ok := strings.Cut(kv, "="); !ok || name == "" {
			return Greeting{}, errors.New("a variable is not NAME=value")
		}
	}
	return g, nil
}

// merge lets later variables replace earlier ones of the same name.
func merge(lists ...[]string) []string {
	at := map[string]int{}
	var out []string
	for _, list := range lists {
		for _, kv := range list {
			name, _, _ := strings.Cut(kv, "=")
			if i, ok := at[name]; ok {
				out[i] = kv
				continue
			}
			at[name] = len(out)
			out = append(out, kv)
		}
	}
	return out
}

// lookup finds the program as execvp would, in the PATH of env.
func lookup(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, executable(name)
	}
	var path string
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	for dir := range strings.SplitSeq(path, ":") {
		if !strings.HasPrefix(dir, "/") {
			continue // a relative entry would run any file of that name in the workspace
		}
		if p := dir + "/" + name; executable(p) == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("%s: no such program in PATH=%s: %w", name, path, os.ErrNotExist)
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s: it is a folder", path)
	case info.Mode()&0o111 == 0:
		return fmt.Errorf("%s: it is not executable: %w", path, os.ErrPermission)
	}
	return nil
}
