package embedded

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"

	"k8s.io/apiserver/pkg/endpoints/request"
)

const (
	// diskReserve is how much of the disk is left free: below it no write is
	// accepted. The database ends the process when one of its own writes fails,
	// and several of them may be in progress when the last request before a full
	// disk is accepted.
	diskReserve = 32 << 20
	// databaseReserve is how much of the disk the file of the database has
	// beyond what it uses. The database needs it for the compaction every few
	// minutes, which continues also when other programs have filled the disk.
	databaseReserve = 16 << 20
)

// disk refuses writes while there is too little room for them.
//
//	room on the disk     audit log          a write
//	less than reserve    any                is refused with 507
//	enough               cannot be written  is refused with 507: it could not be recorded
//	enough               is written         is let through
//	unknown              is written         is let through
//
// Nothing that is refused has been begun, and no restart is needed afterwards.
type disk struct {
	dir     string
	reserve uint64
	free    func(dir string) (uint64, error)
	audit   *auditLog
	// ahead has the database reserve room; nil: nothing to do.
	ahead func() error
	log   *slog.Logger

	mu   sync.Mutex
	full bool // as it was when it was looked last
}

// room returns an error if there is no room for a write.
func (d *disk) room() error {
	err := d.look()
	d.mu.Lock()
	defer d.mu.Unlock()
	if was := d.full; was != (err != nil) {
		d.full = !was
		if err != nil {
			d.log.Error("writes are refused", "error", err)
		} else {
			d.log.Info("there is room on the disk again: writes are served")
		}
	}
	return err
}

func (d *disk) look() error {
	if free, err := d.free(d.dir); err == nil && free < d.reserve {
		return fmt.Errorf("the disk of %s is full (%d MiB are free, %d MiB are kept free): nothing is written until files are removed from it", d.dir, free>>20, d.reserve>>20)
	}
	if err := d.audit.flush(); err != nil {
		return fmt.Errorf("the audit log cannot be written, so nothing else is until it can be: %w", err)
	}
	if d.ahead != nil {
		if err := d.ahead(); err != nil {
			return fmt.Errorf("reserve room for the database in %s: %w", d.dir, err)
		}
	}
	return nil
}

// hold passes on those requests that write nothing, or for which there is room.
func (d *disk) hold(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if info, ok := request.RequestInfoFrom(r.Context()); ok && info.IsResourceRequest && !slices.Contains(readVerbs, info.Verb) {
			if err := d.room(); err != nil {
				refuse(w, http.StatusInsufficientStorage, err.Error())
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}
