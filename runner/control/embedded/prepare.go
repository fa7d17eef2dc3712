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

var (
	errLogMissing    = errors.New("the write-ahead log is missing")
	errDatabaseEmpty = errors.New("the database is an empty file")
)

// prepare ensures that etcd can start in a folder. It finds what etcd would not
// report: states that etcd takes for a first start, hangs on, or starts from
// without the latest writes.
//
//	database   log            the folder
//	none       none           is fine
//	no entry   none or empty  is that of a first start that was killed: etcd would wait for
//	                          itself for ever, so what there is, which is nothing, is removed
//	entry n    ends before n  is damaged
//	shorter than it says      is damaged
//	pages out of place        is damaged
func prepare(log *zap.Logger, dir string) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // the file is mapped: beyond its end is a fault
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	end, err := lastLogged(log, filepath.Join(dir, "member", "wal"))
	if err != nil {
		return fmt.Errorf("read the write-ahead log: %w", err)
	}
	path := filepath.Join(dir, "member", "snap", "db")
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		if err := checkPages(path); err != nil {
			return err
		}
	}
	applied, used, err := lastApplied(path)
	if err != nil && (end > 0 || !errors.Is(err, errDatabaseEmpty)) {
		return err
	}
	switch {
	case end >= max(applied, 1):
		return trim(path, used)
	case applied == 0:
		return os.RemoveAll(dir)
	case end == 0:
		return fmt.Errorf("%w or empty, the database has entry %d", errLogMissing, applied)
	default:
		return fmt.Errorf("the write-ahead log ends at entry %d, the database has entry %d", end, applied)
	}
}

// trim returns disk space that the database has reserved and not used yet, up
// to 16 MB: etcd maps the file with all its pages, which for a small control
// plane is an eighth of the memory. The database reserves new pages when it
// needs them.
func trim(path string, used int64) error {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil || used == 0 || info.Size() <= used {
		return err
	}
	return os.Truncate(path, used)
}

// lastApplied is the last entry of the log that the database has, 0 for none,
// and the size of what the database uses of its file.
func lastApplied(path string) (index uint64, used int64, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	if info.Size() == 0 {
		return 0, 0, errDatabaseEmpty
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return 0, 0, err
	}
	defer db.Close()
	err = db.View(func(tx *bbolt.Tx) error {
		if used = tx.Size(); info.Size() < used {
			return fmt.Errorf("%s has %d bytes of %d", path, info.Size(), used)
		}
		if b := tx.Bucket([]byte("meta")); b != nil {
			if v := b.Get([]byte("consistent_index")); len(v) == 8 {
				index = binary.BigEndian.Uint64(v)
			}
		}
		return nil
	})
	return index, used, err
}

// lastLogged is the last entry of the log. 0: there is none, or none that was
// committed, so no client has seen it. Only the newest of the files is read.
func lastLogged(log *zap.Logger, dir string) (uint64, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	if err != nil || len(files) == 0 {
		return 0, err
	}
	newest := filepath.Base(slices.Max(files))
	var seq, first uint64 // the first entry that the file may have
	if _, err := fmt.Sscanf(newest, "%016x-%016x.wal", &seq, &first); err != nil {
		return 0, fmt.Errorf("file %s: %w", newest, err)
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
	if first == 0 && state.Commit == 0 {
		return 0, nil
	}
	end := max(first, state.Commit)
	if n := len(entries); n > 0 {
		end = max(end, entries[n-1].Index)
	}
	return end, nil
}
