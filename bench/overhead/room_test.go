package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"agentctl.dev/agentctl/bench/overhead/floor"
)

func TestRoomLetsGoWhenAllHaveCome(t *testing.T) {
	const guests = 5
	var weighed atomic.Int64
	r, err := openRoom(t.Context(), guests, 0, func() treePeak { return treePeak{RSS: weighed.Add(1) * guests << 10} })
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	var out bytes.Buffer
	if err := floor.Run(t.Context(), []string{"-many", "5", r.url}, &out); err != nil {
		t.Fatal(err)
	}
	if out.String() != "5 ended\n" {
		t.Errorf("said %q", &out)
	}
	got, err := r.heldKB()
	if err != nil || got != 1 {
		t.Errorf("held %v KB each, %v, want 1", got, err)
	}
	if got := post(t, r.url+"/chat/completions", "{}"); got != http.StatusOK {
		t.Errorf("one more is answered %d", got)
	}
	if _, err := r.heldKB(); err == nil || !strings.Contains(err.Error(), "more requests than conversations") {
		t.Errorf("one more went unnoticed: %v", err)
	}
}

func TestRoomMissesWhoDidNotCome(t *testing.T) {
	r, err := openRoom(t.Context(), 2, 0, func() treePeak { return treePeak{RSS: 1} })
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	post(t, r.url+"/chat/completions", "{}")
	if _, err := r.heldKB(); err == nil || !strings.Contains(err.Error(), "1 requests, want 3") {
		t.Errorf("got %v", err)
	}
	if got := post(t, r.url+"/models", "{}"); got != http.StatusNotFound {
		t.Errorf("another path answers %d", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := floor.Run(ctx, []string{"-many", "2", r.url}, io.Discard); err == nil {
		t.Error("a floor that cannot ask says nothing")
	}
}

func TestPageCacheDropsSingleFilesForEverybody(t *testing.T) {
	name := t.TempDir() + "/program"
	if err := os.WriteFile(name, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	// As somebody who may not empty the whole cache, which a test must not do.
	c := &pageCache{files: []string{name}}
	if err := c.drop(); err != nil {
		t.Error(err)
	}
	c.files = append(c.files, name+"x")
	if err := c.drop(); err == nil {
		t.Error("a file that is not there was dropped")
	}
	c, err := newPageCache([]string{name})
	if err != nil || c.how == "" {
		t.Errorf("%+v, %v", c, err)
	}
	c.close()
	if _, err := newPageCache([]string{name + "x"}); err == nil {
		t.Error("a file that is not there was written out")
	}
}
