package embedded

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// unfinished begins a request whose body does not end, and returns its connection.
func unfinished(t *testing.T, s *Server, token string) *tls.Conn {
	t.Helper()
	conn, err := tls.Dial("tcp", "127.0.0.1:"+s.port(), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // nothing is said that matters
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patient)); err != nil {
		t.Fatal(err)
	}
	head := "POST " + runsPath + " HTTP/1.1\r\nHost: 127.0.0.1:" + s.port() + "\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n"
	if token != "" {
		head += "Authorization: Bearer " + token + "\r\n"
	}
	if _, err := io.WriteString(conn, head+"\r\n{"); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestABodyWithoutATokenIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	conn := unfinished(t, s, "")
	r := bufio.NewReader(conn)
	answer, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil || answer.StatusCode != http.StatusUnauthorized || !strings.Contains(string(text), `"reason":"Unauthorized"`) {
		t.Errorf("got %s, %s, %v", answer.Status, text, err)
	}
	if _, err := r.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection is kept: %v", err)
	}
}

func TestABodyHasADeadline(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	conn := unfinished(t, s, token(t, s, "slow-body", RoleUser))
	text, err := io.ReadAll(conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection is kept: %q, %v", text, err)
	}
}

func TestUnfinishedBodiesOfAnIdentityAreBounded(t *testing.T) {
	b := newBodies(time.Minute)
	var all []*body
	for i := range bodiesEach {
		one := &body{of: b, unlimited: func() {}}
		if !one.count("jane") {
			t.Fatalf("body %d is refused", i)
		}
		all = append(all, one)
	}
	late := &body{of: b, unlimited: func() {}}
	if late.count("jane") || !late.count("joe") {
		t.Error("more than the share of one identity, or not that of another")
	}
	late.answered()
	for _, one := range all {
		one.answered()
		one.answered() // once it is over nothing more happens
	}
	if len(b.open) != 0 {
		t.Errorf("%v are counted", b.open)
	}
	one := &body{ReadCloser: io.NopCloser(strings.NewReader("{}")), of: b}
	taken := 0
	one.unlimited = func() { taken++ }
	if text, err := io.ReadAll(one); err != nil || string(text) != "{}" || taken != 1 {
		t.Errorf("got %q, %v; the deadline was taken away %d times", text, err, taken)
	}
}

// TestALocalProcessWithoutATokenLocksNobodyOut opens connections with unfinished
// bodies without an end, and uses the server meanwhile.
func TestALocalProcessWithoutATokenLocksNobodyOut(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	places := s.listener.(*connections).strangers
	for range min(places, 256) {
		unfinished(t, s, "")
	}
	code, body := newCaller(t, s).do("GET", runsPath, token(t, s, "not-locked-out", RoleViewer), nil, nil)
	if code != http.StatusOK {
		t.Error(fmt.Sprint(code, " ", body))
	}
}
