package embedded

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/endpoints/request"

	"agentctl.dev/agentctl/runner/control/controltest"
)

// newDisk is a disk with so much room.
func newDisk(t *testing.T, free *atomic.Uint64, log *controltest.Log) *disk {
	t.Helper()
	l := slog.New(slog.NewTextHandler(log, nil))
	a, err := openAudit(filepath.Join(t.TempDir(), "audit.jsonl"), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Shutdown)
	return &disk{dir: "/d", reserve: 100, free: func(string) (uint64, error) { return free.Load(), nil }, audit: a, log: l}
}

// write sends a request of a verb through a disk and returns the answer.
func throughDisk(d *disk, verb string, resource bool) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h := d.hold(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	r := httptest.NewRequest(http.MethodPost, "/x", nil)
	info := &request.RequestInfo{IsResourceRequest: resource, Verb: verb}
	h.ServeHTTP(w, r.WithContext(request.WithRequestInfo(r.Context(), info)))
	return w
}

func TestAFullDiskRefusesWritesUntilThereIsRoom(t *testing.T) {
	var free atomic.Uint64
	var log controltest.Log
	d := newDisk(t, &free, &log)
	for name, c := range map[string]struct {
		free     uint64
		verb     string
		resource bool
		code     int
	}{
		"enough":            {100, "create", true, 200},
		"a create":          {99, "create", true, 507},
		"a delete":          {0, "delete", true, 507},
		"a list":            {0, "list", true, 200},
		"a watch":           {0, "watch", true, 200},
		"not for an object": {0, "get", false, 200},
	} {
		t.Run(name, func(t *testing.T) {
			free.Store(c.free)
			w := throughDisk(d, c.verb, c.resource)
			if w.Code != c.code || w.Code == 507 && !strings.Contains(w.Body.String(), "the disk of /d is full") {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
		})
	}
	free.Store(0)
	for range 3 {
		throughDisk(d, "create", true)
	}
	free.Store(100)
	if err := d.room(); err != nil {
		t.Error(err)
	}
	if text := log.String(); strings.Count(text, "writes are refused") == 0 || !strings.Contains(text, "writes are served") {
		t.Errorf("the log has %s", text)
	}
}

func TestAWriteThatCannotBeRecordedIsRefused(t *testing.T) {
	var free atomic.Uint64
	var log controltest.Log
	free.Store(1000)
	d := newDisk(t, &free, &log)
	d.audit.file.Close() // what is written to it fails
	if d.audit.ProcessEvents(&auditinternal.Event{Verb: "create"}) {
		t.Fatal("written to a closed file")
	}
	if w := throughDisk(d, "create", true); w.Code != 507 || !strings.Contains(w.Body.String(), "audit") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	d.audit.mu.Lock()
	d.audit.file = nil // opened again
	d.audit.mu.Unlock()
	if w := throughDisk(d, "create", true); w.Code != 200 {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if got := readAudit(t, d.audit.path); len(got) != 1 {
		t.Errorf("the audit log has %+v", got)
	}
	d.ahead = func() error { return errors.New("no room") }
	if w := throughDisk(d, "create", true); w.Code != 507 || !strings.Contains(w.Body.String(), "no room") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

func TestRoomIsReservedWithoutAChangeOfTheSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := reserveSpace(path, 1<<20); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 1 {
		t.Errorf("%v, %v", info, err)
	}
	if err := reserveSpace(path+"x", 1); err == nil {
		t.Error("reserved for a file that is not there")
	}
	if free, err := freeSpace(filepath.Dir(path)); err != nil || free == 0 {
		t.Errorf("%d bytes are free, %v", free, err)
	}
}
