package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// room is a model's server that answers one conversation at once and lets all
// further ones wait until every one has asked, as runs wait for a slow model.
// It has the process weighed when idle and when all wait.
type room struct {
	endpoint
	want   int
	weigh  func() treePeak
	settle time.Duration // how long the process is left alone before it is weighed
	full   chan struct{} // closed when all wait and have been weighed

	mu         sync.Mutex
	asked      int
	faults     []string
	idle, held treePeak
}

func openRoom(ctx context.Context, want int, settle time.Duration, weigh func() treePeak) (*room, error) {
	r := &room{want: want, weigh: weigh, settle: settle, full: make(chan struct{})}
	return r, r.listen(ctx, r.answer)
}

func (r *room) answer(w http.ResponseWriter, req *http.Request) {
	if strings.HasSuffix(req.URL.Path, "/idle") {
		time.Sleep(r.settle)
		r.mu.Lock()
		r.idle = r.weigh()
		r.mu.Unlock()
		return
	}
	if !asksModel(req) {
		http.NotFound(w, req)
		return
	}
	if _, err := io.Copy(io.Discard, http.MaxBytesReader(w, req.Body, maxBody)); err != nil {
		r.fault(fmt.Sprintf("read request: %v", err))
		return
	}
	r.mu.Lock()
	r.asked++
	n := r.asked
	r.mu.Unlock()
	switch {
	case n == 1:
	case n > r.want+1:
		r.fault("more requests than conversations")
	case n == r.want+1:
		time.Sleep(r.settle)
		r.mu.Lock()
		r.held = r.weigh()
		r.mu.Unlock()
		close(r.full)
	default:
		select {
		case <-r.full:
		case <-req.Context().Done():
			r.fault("a conversation was given up")
			return
		}
	}
	send(w, talk{}.answer(1)) // a talk without turns is a final answer
}

func (r *room) fault(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.faults) < 10 {
		r.faults = append(r.faults, text)
	}
}

// heldKB is what each waiting conversation costs above the idle process.
func (r *room) heldKB() (float64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case len(r.faults) > 0:
		return 0, errors.New(strings.Join(r.faults, "; "))
	case r.asked != r.want+1:
		return 0, fmt.Errorf("%d requests, want %d", r.asked, r.want+1)
	case r.idle.RSS == 0 || r.held.RSS == 0:
		return 0, errors.New("the process was not weighed")
	}
	return float64(r.held.RSS-r.idle.RSS) / 1024 / float64(r.want), nil
}
