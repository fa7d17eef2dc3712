package runapi

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/event"
)

// TestSilentStreamIsNotCut: a model may think for longer than a reader may take for
// one write, and HTTP/2 cuts off a stream whose time is over.
func TestSilentStreamIsNotCut(t *testing.T) {
	t.Parallel()
	const short = time.Second
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := newSSE(w, short, time.Now)
		select {
		case <-time.After(2 * short): // the server's own clock is what is tested
		case <-r.Context().Done():
			return
		}
		if s.event(head{Seq: 7, Type: event.TypeTextDelta}, []byte("{}")) == nil {
			_ = s.flush() // the reader reports what has come
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.ProtoMajor != 2 {
		t.Fatalf("spoken is %s", resp.Proto)
	}
	got, err := io.ReadAll(resp.Body)
	if want := "id: 7\nevent: text.delta\ndata: {}\n\n"; err != nil || string(got) != want {
		t.Errorf("read %q, %v; want %q", got, err, want)
	}
}
