package container

import (
	"bytes"
	"context"
	"io"
	"sync"
	"time"

	"github.com/containerd/containerd/v2/pkg/cio"

	"agentctl.dev/agentctl/runner/sandbox/container/entry"
)

// input is what goes to a program's standard input: the greeting with its
// variables, then the program's own input. containerd passes input on by a
// pipe, never by a file, and the end of the input has to be reported to
// containerd.
type input struct {
	spec     *Spec
	greeting []byte

	once  sync.Once
	ended chan struct{}
}

func newInput(spec *Spec) (*input, error) {
	in := &input{spec: spec, ended: make(chan struct{})}
	if spec.hold {
		return in, nil
	}
	var err error
	in.greeting, err = entry.Greeting{Env: spec.Env, Input: spec.Stdin != nil}.Encode()
	return in, err
}

// creator connects the process's three streams.
func (in *input) creator(p *Process, fifos string) cio.Creator {
	var stdin io.Reader
	if !in.spec.hold {
		stdin = in
		rest := io.Reader(bytes.NewReader(nil))
		if in.spec.Stdin != nil {
			rest = in.spec.Stdin
		}
		in.spec.Stdin = io.MultiReader(bytes.NewReader(in.greeting), rest)
	}
	return cio.NewCreator(
		cio.WithStreams(stdin, &drop{in.spec.Stdout}, io.MultiWriter(p.stderr, &drop{in.spec.Stderr})),
		cio.WithFIFODir(fifos))
}

// Read implements io.Reader and notes the end.
func (in *input) Read(b []byte) (int, error) {
	n, err := in.spec.Stdin.Read(b)
	if err != nil {
		in.once.Do(func() { close(in.ended) })
	}
	return n, err
}

// inputTime bounds the telling of the end.
const inputTime = 10 * time.Second

// started reports the end of the input to containerd. It does so only when the
// process runs, because containerd ignores an earlier report.
func (in *input) started(r *Runtime, p *Process) {
	if in.spec.hold {
		return
	}
	r.watchers.Go(func() {
		select {
		case <-in.ended:
		case <-p.dead:
			return
		case <-r.stopped.Done():
			return
		}
		ctx, cancel := context.WithTimeout(r.stopped, inputTime)
		defer cancel()
		_ = p.task.closeInput(ctx) // a process that has ended has no input to close
	})
}
