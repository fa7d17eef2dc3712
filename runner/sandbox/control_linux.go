package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// listen reads the messages of the helper until it ends, and cleans up after
// it.
func (r *instance) listen(files chan<- *os.File) {
	buf, oob := make([]byte, maxReply), make([]byte, unix.CmsgSpace(4*cap(files)))
	for {
		n, oobn, flags, _, err := r.conn.ReadMsgUnix(buf, oob)
		if err != nil || n == 0 || flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
			break
		}
		for _, f := range received(oob[:oobn]) {
			select {
			case files <- f:
			default:
				_ = f.Close() // more than were announced
			}
		}
		m, err := spec.DecodeReply(buf[:n])
		if err != nil {
			break
		}
		r.hear(m)
	}
	close(files)
	r.end()
}

// maxReply bounds a message of the helper.
const maxReply = 32 << 10

// received returns the descriptors that came with a message.
func received(oob []byte) []*os.File {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	var out []*os.File
	for i := range msgs {
		fds, err := unix.ParseUnixRights(&msgs[i])
		if err != nil {
			continue
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			out = append(out, os.NewFile(uintptr(fd), "received"))
		}
	}
	return out
}

// hear passes a message to the goroutine that waits for it.
func (r *instance) hear(m *spec.Reply) {
	if m.Exceeded > 0 {
		if told := r.launcher.opts.Exceeded; told != nil {
			told(&r.profile, m.Exceeded)
		}
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if m.Exited {
		if g := r.inside[m.ID]; g != nil {
			g.exited <- exitInfo(m) // room for one, and only one comes
			delete(r.inside, m.ID)
		}
		return
	}
	if c := r.waiting[m.ID]; c != nil {
		c <- m
		delete(r.waiting, m.ID)
	}
}

func exitInfo(m *spec.Reply) ExitInfo {
	if m.Signal != 0 {
		return ExitInfo{Code: -1, Signal: syscall.Signal(m.Signal).String()}
	}
	return ExitInfo{Code: m.Code}
}

// end cleans up when the helper does not answer any more: it is killed, and the
// kernel kills everything inside.
func (r *instance) end() {
	r.launcher.mu.Lock()
	if r.launcher.instances[r.key] == r {
		delete(r.launcher.instances, r.key)
	}
	r.launcher.mu.Unlock()
	if r.proc != nil {
		_ = r.proc.Kill()
		_, _ = r.proc.Wait() // returns when all processes of the namespace have gone
	}
	r.mu.Lock()
	r.over = true
	for id, c := range r.waiting {
		close(c)
		delete(r.waiting, id)
	}
	for id, g := range r.inside {
		g.exited <- ExitInfo{Code: -1, Signal: syscall.SIGKILL.String()}
		delete(r.inside, id)
	}
	cancel := r.cancel
	r.mu.Unlock()
	if r.conn != nil {
		_ = r.conn.Close()
	}
	if cancel != nil {
		cancel()
	}
	r.serve.Wait()
	r.tail.close()
	r.group.remove()
	r.dir.remove()
	r.ending.Do(func() { close(r.gone) })
}

// stop ends the sandbox with everything inside, and waits for it.
func (r *instance) stop() {
	r.giveUp()
	<-r.ready
	r.kill()
}

func (r *instance) kill() {
	if r.conn == nil || r.proc == nil { // it was never ready: no helper reads the socket
		r.end()
		return
	}
	_ = r.proc.Kill() // harmless when it has been waited for
	<-r.gone          // the socket ends with the helper, and listen with the socket
}

// write sends a message with descriptors.
func (r *instance) write(b []byte, files []*os.File) error {
	var oob []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd()) //nolint:staticcheck // pipes of programs are blocking anyway
		}
		oob = unix.UnixRights(fds...)
	}
	if err := r.conn.SetWriteDeadline(time.Now().Add(answerTime)); err != nil {
		return err
	}
	_, _, err := r.conn.WriteMsgUnix(b, oob, nil)
	return err
}

// ask sends a request and returns the answer. An error of the helper is one.
func (r *instance) ask(ctx context.Context, m *spec.Request, files []*os.File, g *inner) (*spec.Reply, error) {
	c := make(chan *spec.Reply, 1)
	r.mu.Lock()
	if r.over {
		r.mu.Unlock()
		return nil, errGone
	}
	r.last++
	m.ID = r.last
	r.waiting[m.ID] = c
	if g != nil {
		g.id = m.ID
		r.inside[m.ID] = g
	}
	r.mu.Unlock()
	forget := func() {
		r.mu.Lock()
		delete(r.waiting, m.ID)
		delete(r.inside, m.ID)
		r.mu.Unlock()
	}
	b, err := spec.Encode(m)
	if err == nil {
		err = r.write(b, files)
	}
	if err != nil {
		forget()
		return nil, r.explain(err)
	}
	reply, err := r.await(ctx, m.ID, c)
	if err != nil && g != nil {
		forget()
	}
	return reply, err
}

// await waits for an answer.
func (r *instance) await(ctx context.Context, id uint64, c chan *spec.Reply) (*spec.Reply, error) {
	t := time.NewTimer(answerTime)
	defer t.Stop()
	var err error
	select {
	case m, ok := <-c:
		switch {
		case !ok:
			return nil, r.explain(errGone)
		case m.Error != "":
			return m, &refusal{m.Error, syscall.Errno(m.Errno)}
		}
		return m, nil
	case <-t.C:
		err = fmt.Errorf("the sandbox did not answer within %v", answerTime)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	r.mu.Lock()
	delete(r.waiting, id)
	r.mu.Unlock()
	return nil, err
}

// explain adds the helper's last output to an error of the connection.
func (r *instance) explain(err error) error {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed) {
		err = errGone
	}
	if words := r.tail.String(); words != "" {
		return fmt.Errorf("%w: %s", err, words)
	}
	return err
}

// refusal is what the helper could not do.
type refusal struct {
	text  string
	errno syscall.Errno
}

func (e *refusal) Error() string { return e.text }

func (e *refusal) Unwrap() error {
	if e.errno == 0 {
		return nil
	}
	return e.errno
}
