package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

func TestManyConversationsEnd(t *testing.T) {
	var asked, idle atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if strings.HasSuffix(req.URL.Path, "/idle") {
			if asked.Load() == 1 {
				idle.Add(1)
			}
			return
		}
		asked.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, delta := range []string{`{"role":"assistant","content":"Done."},"finish_reason":null`, `{},"finish_reason":"stop"`} {
			fmt.Fprintf(w, `data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"many","choices":[{"index":0,"delta":%s}]}`+"\n\n", delta)
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	defer srv.Close()
	t.Setenv("BENCH_API_KEY", "none")
	args := func(url string) []string {
		text, err := os.ReadFile("../many.yaml")
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		manifests := filepath.Join(dir, "many.yaml")
		if err := os.WriteFile(manifests, []byte(strings.ReplaceAll(string(text), "SERVER", url)), 0o600); err != nil {
			t.Fatal(err)
		}
		workspace := filepath.Join(dir, "workspace")
		if err := os.Mkdir(workspace, 0o700); err != nil {
			t.Fatal(err)
		}
		return []string{url, "3", manifests, workspace, filepath.Join(dir, "state")}
	}
	var out bytes.Buffer
	if err := run(t.Context(), args(srv.URL+"/v1"), &out); err != nil {
		t.Fatal(err)
	}
	if out.String() != "3 ended\n" || asked.Load() != 4 || idle.Load() != 1 {
		t.Errorf("said %q after %d requests, idle %d times after the first; want 3, 4, once", &out, asked.Load(), idle.Load())
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"usage":  {[]string{"x"}, "usage"},
		"number": {[]string{"x", "many", "x", "x", "x"}, "invalid syntax"},
		"nobody": {[]string{"x", "1", "/nowhere", "/nowhere", "/nowhere"}, "a mistake"},
	} {
		if err := run(t.Context(), c.args, io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
