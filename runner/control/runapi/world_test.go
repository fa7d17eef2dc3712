package runapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/journal"
)

// patience is what a test waits at most; only a failure takes it.
const patience = 5 * time.Minute

// narrow is about how much a connection buffers: with the default size a test would have
// to write megabytes to notice that the reader does not read.
const narrow = 64 << 10

// world is a server over objects in memory and journals in a folder.
type world struct {
	t testing.TB
	client.WithWatch
	state  string
	server *Server
	http   *httptest.Server
	client *http.Client
	cancel context.CancelCauseFunc // ends the requests, as a revoked token does
	who    string
}

func newWorld(t testing.TB, change func(*Options)) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, state: t.TempDir(), who: "jane"}
	w.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.Run{}).Build()
	o := Options{
		Client: w, State: w.state, Log: slog.New(slog.DiscardHandler),
		RunID:     func(run *v1alpha1.Run, attempt int32) string { return fmt.Sprintf("%s-%d", run.UID, attempt) },
		Caller:    func(context.Context) Caller { return Caller{Name: w.who} },
		lookEvery: 5 * time.Millisecond, statusPatience: time.Minute,
	}
	if change != nil {
		change(&o)
	}
	w.server = New(o)
	ctx, cancel := context.WithCancelCause(context.Background())
	w.cancel = cancel
	w.http = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		one, end := context.WithCancelCause(r.Context())
		defer end(nil)
		defer context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })()
		w.server.ServeHTTP(rw, r.WithContext(one))
	}))
	w.http.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetWriteBuffer(narrow)
		return ctx
	}
	w.http.Start()
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			err = c.(*net.TCPConn).SetReadBuffer(narrow)
		}
		return c, err
	}}
	w.client = &http.Client{Transport: transport}
	t.Cleanup(transport.CloseIdleConnections)
	t.Cleanup(func() {
		w.http.CloseClientConnections()
		w.http.Close()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := w.server.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return w
}

// run makes a Run object.
func (w *world) run(name string, status v1alpha1.RunStatus) *v1alpha1.Run {
	w.t.Helper()
	return w.runOf(name, "uid-"+name, status)
}

func (w *world) runOf(name, uid string, status v1alpha1.RunStatus) *v1alpha1.Run {
	w.t.Helper()
	run := &v1alpha1.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(uid)},
		Spec:       v1alpha1.RunSpec{AgentRef: v1alpha1.Reference{Name: "a"}}, Status: status,
	}
	if err := w.Create(context.Background(), run); err != nil {
		w.t.Fatal(err)
	}
	run.Status = status
	w.say(run)
	return run
}

// say writes the status of a run, and wakes its streams as the controllers do.
func (w *world) say(run *v1alpha1.Run) {
	w.t.Helper()
	if err := w.Status().Update(context.Background(), run); err != nil {
		w.t.Fatal(err)
	}
	w.server.Wake(run.Namespace, run.Name)
}

func standing(phase v1alpha1.Phase, why, message string) v1alpha1.RunStatus {
	return v1alpha1.RunStatus{Phase: phase, Conditions: []metav1.Condition{{
		Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionUnknown, Reason: why, Message: message, LastTransitionTime: metav1.NewTime(time.Unix(0, 0)),
	}}}
}

// book is the journal of an attempt, with its writer.
type book struct {
	*journal.Writer
	w   *world
	id  string
	dir string
	now time.Time
}

func (w *world) begin(run *v1alpha1.Run, attempt int32) *book {
	w.t.Helper()
	return w.beginID(w.server.o.RunID(run, attempt))
}

func (w *world) beginID(id string) *book {
	w.t.Helper()
	b := &book{w: w, id: id, dir: journal.Dir(w.state, id), now: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)}
	var err error
	b.Writer, err = journal.Create(context.Background(), journal.Options{
		Dir: b.dir, Run: id, Clock: func() time.Time { return b.now }, Sync: func(*os.File) error { return nil },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = b.Close() })
	return b
}

func (b *book) add(payloads ...event.Payload) {
	b.w.t.Helper()
	for _, p := range payloads {
		if _, err := b.Append(event.Event{Data: p}); err != nil {
			b.w.t.Error(err)
		}
	}
}

// lines are the journal as it is in its files.
func (b *book) lines() []string {
	b.w.t.Helper()
	files, err := filepath.Glob(filepath.Join(b.dir, "events-*.jsonl"))
	if err != nil {
		b.w.t.Fatal(err)
	}
	var all []string
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			b.w.t.Fatal(err)
		}
		all = append(all, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")...)
	}
	return all
}

func finished(phase v1alpha1.Phase, code int) event.RunFinished {
	return event.RunFinished{Phase: string(phase), Reason: "Completed", ExitCode: code}
}

const base = "/apis/agentctl.dev/v1alpha1/namespaces/default/"

// reader reads a stream, by whichever protocol.
type reader interface {
	// next returns a record; false at the end of the connection.
	next() (string, bool)
	close()
}

// open opens a stream: "sse" or "ws".
func (w *world) open(how, run, query string) reader {
	w.t.Helper()
	url := w.http.URL + base + "runs/" + run + "/events" + query
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	w.t.Cleanup(cancel)
	if how == "ws" {
		c, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPClient: w.client}) //nolint:bodyclose // the response has no body
		if err != nil {
			w.t.Fatal(err)
		}
		c.SetReadLimit(1 << 26)
		return &wsReader{ctx: ctx, t: w.t, c: c}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		text, _ := io.ReadAll(resp.Body)
		w.t.Fatalf("%s: %s %s", url, resp.Status, text)
	}
	return newSSEReader(w.t, resp.Body)
}

func newSSEReader(tb testing.TB, body io.ReadCloser) *sseReader {
	tb.Helper()
	return &sseReader{t: tb, body: body, in: bufio.NewReaderSize(body, 64<<10)}
}

// sseReader also compares the other fields of an event with its data.
type sseReader struct {
	t    testing.TB
	body io.Closer
	in   *bufio.Reader
}

func (r *sseReader) next() (string, bool) {
	r.t.Helper()
	id, kind, data := "", "", ""
	for {
		line, err := r.in.ReadString('\n')
		if err != nil {
			return "", false
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch {
		case line == "\n" && data != "":
			var h head
			if err := json.Unmarshal([]byte(data), &h); err != nil {
				r.t.Errorf("%v: %s", err, data)
			}
			want := fmt.Sprint(h.Seq)
			if h.Seq == 0 || strings.Contains(data, `","run":"scout-`) { // a record, or an event of a run below
				want = ""
			}
			if id != want || kind != string(h.Type) {
				r.t.Errorf("id %q, event %q before %s", id, kind, data)
			}
			return data, true
		case line == "\n" || name == "": // a comment
		case name == "id":
			id = value
		case name == "event":
			kind = value
		case name == "data":
			data = value
		default:
			r.t.Errorf("what is this: %q", line)
		}
	}
}

func (r *sseReader) close() { _ = r.body.Close() }

type wsReader struct {
	ctx  context.Context //nolint:containedctx // it bounds the test
	t    testing.TB
	c    *websocket.Conn
	code websocket.StatusCode
}

func (r *wsReader) next() (string, bool) {
	kind, text, err := r.c.Read(r.ctx)
	if err != nil {
		r.code = websocket.CloseStatus(err)
		return "", false
	}
	if kind != websocket.MessageText {
		r.t.Errorf("a frame of type %v", kind)
	}
	return string(text), true
}

func (r *wsReader) close() { _ = r.c.CloseNow() }

// received is a stream up to its end.
type received struct {
	events []string
	record []record // in their order, the attempts left out that begin at once
	code   websocket.StatusCode
}

func (t *received) last() record {
	if len(t.record) == 0 {
		return record{}
	}
	return t.record[len(t.record)-1]
}

// take adds one record, and returns it if it is not an event of a journal.
func (t *received) take(tb testing.TB, text string) *record {
	tb.Helper()
	r := record{}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		tb.Errorf("%v: %s", err, text)
	}
	if !strings.HasPrefix(string(r.Type), "stream.") {
		t.events = append(t.events, text)
		return nil
	}
	t.record = append(t.record, r)
	return &r
}

// all reads a stream to the end of its connection.
func all(tb testing.TB, r reader) *received {
	tb.Helper()
	t := &received{}
	for {
		text, ok := r.next()
		if !ok {
			break
		}
		t.take(tb, text)
	}
	if ws, ok := r.(*wsReader); ok {
		t.code = ws.code
	}
	return t
}

// until reads a stream until a record of that type, or to that event.
func until(tb testing.TB, r reader, t *received, kind event.Type) {
	tb.Helper()
	for {
		text, ok := r.next()
		if !ok {
			tb.Fatalf("the stream ended before there was %s", kind)
		}
		var h head
		if err := json.Unmarshal([]byte(text), &h); err != nil {
			tb.Fatal(err)
		}
		if t.take(tb, text); h.Type == kind {
			return
		}
	}
}

// damage appends invalid data to a journal.
func damage(tb testing.TB, b *book, text string) {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(b.dir, "events-*.jsonl"))
	if err != nil || len(files) == 0 {
		tb.Fatal(err)
	}
	f, err := os.OpenFile(files[len(files)-1], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		tb.Fatal(err)
	}
}
