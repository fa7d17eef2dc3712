package tool

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// Bounds of what a call may leave on the disk of the run's files. The host
// gives a folder no quota, so the disk is checked while a call runs.
const (
	// leastSpace is what must be left on the disk for journals and other
	// programs of this host.
	leastSpace = 512 << 20
	// ownShare is by how much less must be left than when a call began before the
	// call is ended for a lack of space.
	ownShare = 64 << 20
	// spaceEvery is how often the disk is checked.
	spaceEvery = 250 * time.Millisecond
	// measureEvery is how often the files of the run are measured when the disk gives
	// no reason to: other processes may free what a call takes. A measurement takes
	// at most one part in measureShare of the time.
	measureEvery = 10 * time.Second
	measureShare = 20
	// soonShare is measureShare for when the disk does give a reason.
	soonShare = 4
)

// errSpace ends a call that fills the disk.
var errSpace = errors.New("the call was ended because it filled the disk: less than 512 MiB are left where it writes")

// Fits returns why a disk has no room for so many bytes more; nil if it has, or if what is
// left is not known.
func Fits(dir string, bytes int64) error {
	left, ok := FreeSpace(dir)()
	if !ok || left-bytes >= leastSpace {
		return nil
	}
	return fmt.Errorf("%d MiB more would be needed on the disk, of which %d MiB are left and %d must stay", (bytes+1<<20-1)>>20, left>>20, leastSpace>>20)
}

// growthError ends a call under which the files of the run outgrow their limit.
type growthError struct{ grown, limit int64 }

func (e *growthError) Error() string {
	return fmt.Sprintf("the call was ended because the files of the run have grown by %d MiB, and spec.workspace.growthLimit is %d MiB; remove what is not needed",
		(e.grown+1<<20-1)>>20, e.limit>>20)
}

// Growth bounds what the calls of a run add to its files altogether.
type Growth struct {
	// Limit in bytes.
	Limit int64
	// Measure returns by how many bytes the files have grown since the run began.
	Measure func(context.Context) (int64, error)
	// Free returns how many bytes are left on their disk.
	Free func() (int64, bool)

	mu sync.Mutex
	// known is set when the other fields are: what was measured, when, what was
	// left on the disk then, and how long it took.
	known bool
	grown int64
	at    time.Time
	left  int64
	took  time.Duration
}

// begin takes the disk as it is before the first call as a start, without a
// measurement: nothing has grown.
func (g *Growth) begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if left, ok := g.Free(); ok && !g.known {
		g.known, g.at, g.left = true, time.Now(), left
	}
}

// look returns by how much the files have grown. It measures them when the disk has
// lost so much that the limit may have been reached, and from time to time.
func (g *Growth) look(ctx context.Context) (int64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	left, ok := g.Free()
	since := time.Since(g.at)
	suspect := !ok || !g.known || g.grown > g.Limit || g.left-left > g.Limit-g.grown
	if suspect && since < soonShare*g.took || !suspect && since < measureEvery+measureShare*g.took {
		return g.grown, nil
	}
	begun := time.Now()
	grown, err := g.Measure(ctx)
	if err != nil {
		return g.grown, err
	}
	g.known, g.grown, g.at, g.left, g.took = true, grown, time.Now(), left, time.Since(begun)
	return grown, nil
}

// writes returns the disks that a tool writes to, and the growth it is counted in.
func (r *Registry) writes(d *Definition) (disks []func() (int64, bool), growth *Growth) {
	if d.Spec.WorkspaceAccess == v1alpha1.AccessReadWrite {
		if r.Space != nil {
			disks = append(disks, r.Space)
		}
		growth = r.Growth
	} else if d.WritesDisk && r.Space != nil {
		disks = append(disks, r.Space)
	}
	for _, m := range d.Spec.Isolation.Mounts {
		if m.Access == v1alpha1.MountReadWrite {
			disks = append(disks, FreeSpace(m.Path))
		}
	}
	return disks, growth
}

// watchSpace cancels a call when a disk is nearly full and was not as it began, and
// when the files of the run outgrow their limit. The function it returns ends the
// watch; its error is of a call that has ended by itself and has passed the limit.
func watchSpace(ctx context.Context, cancel context.CancelCauseFunc, disks []func() (int64, bool), growth *Growth) (stop func() error) {
	if len(disks) == 0 && growth == nil {
		return func() error { return nil }
	}
	before := make([]int64, len(disks))
	for i, free := range disks {
		before[i], _ = free()
	}
	var began int64
	if growth != nil {
		growth.begin()
		growth.mu.Lock()
		began = growth.grown
		growth.mu.Unlock()
	}
	look := func(ctx context.Context) error {
		for i, free := range disks {
			if left, ok := free(); ok && left < leastSpace && before[i]-left > ownShare {
				return errSpace
			}
		}
		if growth == nil {
			return nil
		}
		// A call that removes files may do so, however large they are.
		if grown, err := growth.look(ctx); err == nil && grown > growth.Limit && grown > began {
			return &growthError{grown, growth.Limit}
		}
		return nil
	}
	watching, end := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { // stop waits for it
		defer close(done)
		every := time.NewTicker(spaceEvery)
		defer every.Stop()
		for {
			select {
			case <-watching.Done():
				return
			case <-every.C:
			}
			if err := look(watching); err != nil && watching.Err() == nil {
				cancel(err)
				return
			}
		}
	}()
	return func() error {
		end()
		<-done
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the call was ended, and its result has the reason
		}
		var over *growthError
		if err := look(ctx); errors.As(err, &over) {
			return over
		}
		return nil
	}
}
