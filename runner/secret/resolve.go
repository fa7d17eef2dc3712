package secret

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
)

const (
	// maxSize bounds a value.
	maxSize = 64 << 10
	// execTimeout bounds a command that prints a value.
	execTimeout = 10 * time.Second
)

// Resolver turns references into values.
type Resolver struct {
	// LookupEnv replaces the environment. Default: os.LookupEnv.
	LookupEnv func(name string) (string, bool)
	// Environ lists it, to find the name that was meant. Default: os.Environ.
	Environ func() []string
	// Stored looks up a name that the environment does not set; false means that it is not
	// stored either. Default: nothing is stored.
	Stored func(name string) (value string, found bool, err error)
	// Exec starts a program and returns its standard output. Programs are
	// started in one place, which gives them a minimal environment, bounds their
	// output and ends them with their children when ctx ends. Without it exec
	// references are refused.
	Exec func(ctx context.Context, argv []string) ([]byte, error)
}

// Resolve returns the value that from names. Field is what the errors call it,
// for example `model "fast": spec.apiKey`. No error holds any part of a value.
//
//	the place                                  Resolve returns
//	holds a value                              it, without one final line break
//	is not there, is empty or not private      reason CredentialMissing
//	is a variable that is not set, but stored  the stored value
//	is a Secret of a cluster                   reason CredentialMissing
//	answers after the end of ctx               reason CredentialMissing, wrapping ctx's error
func (r Resolver) Resolve(ctx context.Context, field string, from v1alpha1.ValueFrom) (Value, error) {
	var v Value
	var err error
	switch {
	case from.Env != "":
		v, err = r.env(from.Env)
	case from.File != "":
		v, err = file(from.File)
	case len(from.Exec) > 0:
		v, err = r.exec(ctx, from.Exec)
	case from.SecretKeyRef != nil:
		err = missing("a Kubernetes Secret can be read on a cluster only").WithHint("use env, file or exec here")
	default:
		err = missing("valueFrom names no place").WithHint("name one of env, file, exec, secretKeyRef")
	}
	if err != nil {
		return Value{}, fmt.Errorf("%s: %w", field, err)
	}
	return v, nil
}

func missing(format string, args ...any) *reason.Error {
	return reason.New(reason.CredentialMissing, format, args...)
}

func (r Resolver) env(name string) (Value, error) {
	lookup := r.LookupEnv
	if lookup == nil {
		lookup = os.LookupEnv
	}
	text, ok := lookup(name)
	switch {
	case ok && text == "":
		return Value{}, missing("environment variable %s is empty", name).
			WithHint("export %s=..., or unset it to use what agentctl auth set %s has stored", name, name)
	case ok:
		return check([]byte(text), "environment variable "+name)
	case r.Stored == nil:
		return Value{}, missing("environment variable %s is not set", name).WithHint("export %s=...", name)
	}
	text, found, err := r.Stored(name)
	switch {
	case err != nil:
		return Value{}, missing("environment variable %s is not set, and its stored value cannot be used: %w", name, err).WithHint("%s", reason.Hint(err))
	case !found:
		return Value{}, missing("environment variable %s is not set, and no value is stored for it", name).
			WithHint("%sexport %s=..., or store it: agentctl auth set %s", r.meant(name), name, name)
	}
	return check([]byte(text), "the value stored for "+name)
}

// meant returns a variable that is set and whose name is similar. Names of keys end alike:
// one that begins differently is for another purpose.
func (r Resolver) meant(name string) string {
	environ := r.Environ
	if environ == nil {
		environ = os.Environ
	}
	var names []string
	for _, kv := range environ() {
		n, value, _ := strings.Cut(kv, "=")
		if value != "" && n != "" && n[0] == name[0] {
			names = append(names, n)
		}
	}
	if near := reason.Nearest(name, names); near != "" {
		return near + " is set: did you mean it? Else "
	}
	return ""
}

// file reads a private file. It is opened without waiting and judged by what
// was opened: a pipe must not block, and a name can be changed after a look.
func file(path string) (Value, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return Value{}, missing("file %s does not exist", path).WithHint("write the value into it, with mode 0600")
	}
	if err != nil {
		return Value{}, missing("open the file of a secret: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return Value{}, missing("look at the file of a secret: %w", err)
	case !info.Mode().IsRegular():
		return Value{}, missing("%s is not a regular file", path)
	case info.Mode().Perm()&0o077 != 0:
		return Value{}, missing("file %s has mode %04o: others may read or change it", path, info.Mode().Perm()).WithHint("chmod 600 %s", path)
	case info.Size() > maxSize+2:
		return Value{}, missing("file %s is longer than %d bytes", path, maxSize)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSize+3))
	if err != nil {
		return Value{}, missing("read the file of a secret: %w", err)
	}
	return check(trim(b), "file "+path)
}

func (r Resolver) exec(ctx context.Context, argv []string) (Value, error) {
	source := "command " + argv[0]
	if r.Exec == nil {
		return Value{}, missing("%s: programs cannot be started here", source)
	}
	ctx, cancel := context.WithTimeout(ctx, execTimeout)
	defer cancel()
	out, err := r.Exec(ctx, argv)
	switch {
	case ctx.Err() != nil:
		return Value{}, missing("%s did not answer within %s: %w", source, execTimeout, ctx.Err()).
			WithHint("run the command by hand and see whether it asks for something: here nobody answers it")
	case err != nil:
		// The output of the command may hold the value: only its failure is reported.
		return Value{}, missing("%s: %w", source, err).WithHint("run the command by hand: is it there, and what does it say?")
	}
	return check(trim(out), source)
}

func trim(b []byte) []byte {
	s := strings.TrimSuffix(string(b), "\n")
	return []byte(strings.TrimSuffix(s, "\r"))
}

func check(b []byte, source string) (Value, error) {
	switch {
	case len(b) == 0:
		return Value{}, missing("%s gives an empty value", source)
	case len(b) > maxSize:
		return Value{}, missing("%s gives a value longer than %d bytes", source, maxSize)
	case strings.IndexByte(string(b), 0) >= 0:
		return Value{}, missing("%s gives a value with a NUL byte", source)
	}
	text := string(b)
	return Value{&text, &source}, nil
}
