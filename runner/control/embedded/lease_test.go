package embedded

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"testing"
)

// TestWhatGoesOnEndsWithItsToken revokes the token of a watch and of a stream.
func TestWhatGoesOnEndsWithItsToken(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	for name, path := range map[string]string{"watch": runsPath + "?watch=1", "stream": "/ws/b?wait=1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open := func(who string) io.ReadCloser {
				req, err := http.NewRequestWithContext(t.Context(), "GET", s.URL()+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Authorization", "Bearer "+token(t, s, who, RoleViewer))
				resp, err := newCaller(t, s).http.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = resp.Body.Close() })
				if resp.StatusCode != 200 {
					t.Fatal(resp.Status)
				}
				return resp.Body
			}
			gone, rotated := open(name+"-gone"), open(name+"-rotated")
			if err := s.Tokens().Revoke(t.Context(), name+"-gone"); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Tokens().Rotate(t.Context(), name+"-rotated", ""); err != nil {
				t.Fatal(err)
			}
			s.leases.check()
			for _, body := range []io.Reader{gone, rotated} {
				if _, err := io.ReadAll(body); err != nil { // to its end, or the time-out of the client
					t.Error(err)
				}
			}
		})
	}
}

func TestLeasesEndWithTheirTokensAlone(t *testing.T) {
	tokens, err := OpenTokens(stateDir(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	l := newLeases(tokens)
	hold := func(name string) context.Context {
		secret, err := tokens.Create(t.Context(), Identity{Name: name, Role: RoleViewer})
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancelCause(t.Context())
		giveBack, ok := l.take(&lease{name, hash(secret), end})
		if !ok {
			t.Fatal("the first is one too many")
		}
		t.Cleanup(giveBack)
		return ctx
	}
	gone, rotated, stays := hold("gone"), hold("rotated"), hold("stays")
	l.check()
	if gone.Err() != nil || rotated.Err() != nil || stays.Err() != nil {
		t.Fatal("a valid token is none")
	}
	if err := tokens.Revoke(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.Rotate(t.Context(), "rotated", RoleAdmin); err != nil {
		t.Fatal(err)
	}
	l.check()
	if !errors.Is(context.Cause(gone), ErrRevoked) || !errors.Is(context.Cause(rotated), ErrRevoked) || stays.Err() != nil {
		t.Errorf("gone %v, rotated %v, stays %v", context.Cause(gone), context.Cause(rotated), context.Cause(stays))
	}
	if err := os.Chmod(tokens.path, 0o644); err != nil { // others may have changed it
		t.Fatal(err)
	}
	if err := os.Truncate(tokens.path, 0); err != nil {
		t.Fatal(err)
	}
	l.check()
	if !errors.Is(context.Cause(stays), ErrRevoked) {
		t.Error("a request goes on by a token that cannot be read")
	}
}

// TestWatchesOfOneIdentityAreBounded: who may only read can ask for as much as it
// likes, and each watch that begins with all objects takes memory.
func TestWatchesOfOneIdentityAreBounded(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	many, other := token(t, s, "leases-many", RoleViewer), token(t, s, "leases-other", RoleViewer)
	giveBack := make([]func(), leasesEach)
	for i := range giveBack {
		var ok bool
		if giveBack[i], ok = s.leases.take(&lease{"leases-many", hash(many), func(error) {}}); !ok {
			t.Fatalf("%d are too many", i)
		}
	}
	const watch = runsPath + "?watch=1&timeoutSeconds=1"
	c := newCaller(t, s)
	for _, one := range []struct {
		path, token string
		code        int
	}{
		{watch, many, http.StatusTooManyRequests},
		{"/ws/b?wait=1", many, http.StatusTooManyRequests},
		{runsPath, many, http.StatusOK},
		{watch, other, http.StatusOK},
	} {
		if code, body := c.do("GET", one.path, one.token, nil, nil); code != one.code {
			t.Errorf("%s: %d, want %d: %.200s", one.path, code, one.code, body)
		}
	}
	for _, f := range giveBack {
		f()
	}
	if code, body := c.do("GET", watch, many, nil, nil); code != http.StatusOK {
		t.Errorf("when they have ended: %d %.200s", code, body)
	}
	s.leases.mu.Lock()
	defer s.leases.mu.Unlock()
	if n, there := s.leases.each["leases-many"]; there {
		t.Errorf("%d are still counted", n)
	}
}
