package embedded

import (
	"net"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestStopEndsWatches: a client that watches does not keep the server, and
// learns at once that it is gone.
func TestStopEndsWatches(t *testing.T) {
	t.Parallel()
	p := start(t, stateDir(t))
	w, err := client(t, p).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range w.ResultChan() { //nolint:revive // until it ends
		}
	}()
	p.stop(t)
	select {
	case <-ended:
	case <-time.After(patient):
		t.Error("the watch goes on without a server")
	}
	if text := p.stderr.String(); strings.Contains(text, "level=ERROR") {
		t.Errorf("a stop is no error:\n%s", text)
	}
}

// TestAnotherPortWhenTheOldOneIsTaken: the kubeconfig follows.
func TestAnotherPortWhenTheOldOneIsTaken(t *testing.T) {
	t.Parallel()
	state := stateDir(t)
	p := start(t, state)
	old := strings.TrimPrefix(p.config(t).Host, "https://")
	p.stop(t)
	l, err := net.Listen("tcp", old)
	if err != nil {
		t.Skip("somebody else was faster: ", err)
	}
	defer l.Close()
	p = start(t, state)
	if got := p.config(t).Host; strings.HasSuffix(got, old) {
		t.Errorf("the kubeconfig has the port of another: %s", got)
	}
	if _, err := client(t, p).List(t.Context(), listOne); err != nil {
		t.Error(err)
	}
	p.stop(t)
}

// TestFailureIsTold: the caller is notified that the server has failed, and can
// still stop it.
func TestFailureIsTold(t *testing.T) {
	for part, want := range map[string]string{"listener": "failed: the API server stopped listening: ", "database": "failed: the database stopped: "} {
		t.Setenv(breakEnv, part)
		p := start(t, stateDir(t))
		err := p.cmd.Wait()
		if err != nil || !strings.Contains(p.stderr.String(), want) {
			t.Errorf("%s: %v, want %q in\n%s", part, err, want, p.stderr)
		}
	}
}
