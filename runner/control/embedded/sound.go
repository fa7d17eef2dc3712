package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.uber.org/zap"
)

var errLogMissing = errors.New("the write-ahead log is missing")

// sound finds what etcd would not report: what it takes for a new start, hangs
// on, or would go on from by forgetting writes in silence. The database must be
// as long as it says it is, and its log must not end before it.
func sound(log *zap.Logger, dir string) (err error) {
	path := filepath.Join(dir, "member", "snap", "db")
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // the file is mapped: beyond its end is a fault
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	applied, err := applied(path, info.Size())
	if err != nil {
		return err
	}
	end, err := logEnd(log, filepath.Join(dir, "member", "wal"))
	if err != nil {
		return fmt.Errorf("read the write-ahead log: %w", err)
	}
	if end < applied {
		return fmt.Errorf("the write-ahead log ends at entry %d, the database has entry %d", end, applied)
	}
	return nil
}

// applied is the last entry of the log that the database has.
func applied(path string, size int64) (index uint64, err error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return 0, err
	}
	defer db.Close()
	err = db.View(func(tx *bbolt.Tx) error {
		if size < tx.Size() {
			return fmt.Errorf("%s has %d bytes of %d", path, size, tx.Size())
		}
		if b := tx.Bucket([]byte("meta")); b != nil {
			if v := b.Get([]byte("consistent_index")); len(v) == 8 {
				index = binary.BigEndian.Uint64(v)
			}
		}
		return nil
	})
	return index, err
}

// logEnd is the last entry of the log. Only the newest of its files is read.
func logEnd(log *zap.Logger, dir string) (uint64, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	if err != nil || len(files) == 0 {
		return 0, errors.Join(errLogMissing, err)
	}
	slices.Sort(files)
	var seq, first uint64 // the first entry that the file may have
	if _, err := fmt.Sscanf(filepath.Base(files[len(files)-1]), "%016x-%016x.wal", &seq, &first); err != nil {
		return 0, err
	}
	w, err := wal.OpenForRead(log, dir, walpb.Snapshot{Index: first})
	if err != nil {
		return 0, err
	}
	defer w.Close()
	_, state, entries, err := w.ReadAll()
	// No snapshot has been taken where the file begins.
	if err != nil && !errors.Is(err, wal.ErrSnapshotNotFound) && !errors.Is(err, wal.ErrSnapshotMismatch) {
		return 0, err
	}
	end := max(first, state.Commit)
	if n := len(entries); n > 0 {
		end = max(end, entries[n-1].Index)
	}
	return end, nil
}
