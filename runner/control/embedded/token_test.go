package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func openTestTokens(t *testing.T) *Tokens {
	t.Helper()
	tokens, err := OpenTokens(t.TempDir(), func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC) })
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

func TestTokensSpeakForTheirHolder(t *testing.T) {
	tokens := openTestTokens(t)
	if ids, err := tokens.List(); err != nil || len(ids) != 0 {
		t.Errorf("without a file: %v, %v", ids, err)
	}
	if _, ok, err := tokens.AuthenticateToken(t.Context(), "x"); ok || err != nil {
		t.Errorf("without a file: %v, %v", ok, err)
	}
	jane, err := tokens.Create(t.Context(), Identity{Name: "jane", Role: RoleViewer})
	if err != nil {
		t.Fatal(err)
	}
	worker, err := tokens.Create(t.Context(), Identity{Name: "w.1", Role: RoleWorker, Runs: []string{"default/r"}})
	if err != nil {
		t.Fatal(err)
	}
	r, ok, err := tokens.AuthenticateToken(t.Context(), jane)
	if err != nil || !ok || r.User.GetName() != "jane" || !cmp.Equal(r.User.GetGroups(), []string{"agentctl.dev:role:viewer", "system:authenticated"}) {
		t.Errorf("jane: %v %v %v", r, ok, err)
	}
	if r, ok, _ := tokens.AuthenticateToken(t.Context(), worker); !ok || !cmp.Equal(r.User.GetExtra()[runsExtra], []string{"default/r"}) {
		t.Errorf("worker: %v %v", r, ok)
	}
	for _, wrong := range []string{"", jane[:len(jane)-1], jane + " ", strings.ToUpper(jane), hash(jane)} {
		if _, ok, err := tokens.AuthenticateToken(t.Context(), wrong); ok || err != nil {
			t.Errorf("%q: %v, %v", wrong, ok, err)
		}
	}
	want := []Identity{
		{Name: "jane", Role: RoleViewer, Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		{Name: "w.1", Role: RoleWorker, Runs: []string{"default/r"}, Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
	}
	got, err := tokens.List()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
}

func TestTokensAreNotKept(t *testing.T) {
	tokens := openTestTokens(t)
	secret, err := tokens.Create(t.Context(), Identity{Name: "jane", Role: RoleAdmin})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(tokens.path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte(strings.TrimPrefix(secret, tokenPrefix))) {
		t.Error("the file has the token")
	}
	info, err := os.Stat(tokens.path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	if n := len(strings.TrimPrefix(secret, tokenPrefix)); n != 43 { // 256 bits in base64
		t.Errorf("a token of %d characters", n)
	}
}

// TestRotateAndRevokeCountAtOnce: the server is another process than the one
// that changes the file.
func TestRotateAndRevokeCountAtOnce(t *testing.T) {
	state := t.TempDir()
	server, err := OpenTokens(state, nil)
	if err != nil {
		t.Fatal(err)
	}
	verb, err := OpenTokens(state, nil)
	if err != nil {
		t.Fatal(err)
	}
	valid := func(token string) bool {
		t.Helper()
		_, ok, err := server.AuthenticateToken(t.Context(), token)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	first, err := verb.Create(t.Context(), Identity{Name: "jane", Role: RoleViewer})
	if err != nil || !valid(first) {
		t.Fatalf("the first token: %v", err)
	}
	second, err := verb.Rotate(t.Context(), "jane", RoleUser)
	if err != nil || valid(first) || !valid(second) {
		t.Errorf("after rotate: first %v, second %v, %v", valid(first), valid(second), err)
	}
	if ids, _ := verb.List(); len(ids) != 1 || ids[0].Role != RoleUser {
		t.Errorf("after rotate: %v", ids)
	}
	if err := verb.Revoke(t.Context(), "jane"); err != nil || valid(second) {
		t.Errorf("after revoke: %v, %v", valid(second), err)
	}
}

func TestTokensRefuseNonsense(t *testing.T) {
	tokens := openTestTokens(t)
	if _, err := tokens.Create(t.Context(), Identity{Name: "jane", Role: RoleViewer}); err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.Create(t.Context(), Identity{Name: "jane", Role: RoleAdmin}); !errors.Is(err, ErrTokenExists) {
		t.Errorf("a second jane: %v", err)
	}
	if _, err := tokens.Rotate(t.Context(), "joe", ""); !errors.Is(err, ErrTokenUnknown) {
		t.Errorf("rotate joe: %v", err)
	}
	if err := tokens.Revoke(t.Context(), "joe"); !errors.Is(err, ErrTokenUnknown) {
		t.Errorf("revoke joe: %v", err)
	}
	if _, err := tokens.Rotate(t.Context(), "jane", RoleWorker); err == nil {
		t.Error("jane became a worker without a run")
	}
	for _, id := range []Identity{
		{Name: "", Role: RoleViewer},
		{Name: "system:apiserver", Role: RoleViewer},
		{Name: "Jane", Role: RoleViewer},
		{Name: "a b", Role: RoleViewer},
		{Name: "../x", Role: RoleViewer},
		{Name: "x", Role: ""},
		{Name: "x", Role: "root"},
		{Name: "x", Role: RoleWorker},
		{Name: "x", Role: RoleViewer, Runs: []string{"default/r"}},
		{Name: "x", Role: RoleWorker, Runs: []string{"r"}},
		{Name: "x", Role: RoleWorker, Runs: []string{"default/*"}},
		{Name: "x", Role: RoleWorker, Runs: []string{"default/r", "/"}},
	} {
		if _, err := tokens.Create(t.Context(), id); err == nil {
			t.Errorf("%+v was accepted", id)
		}
	}
}

func TestDamagedTokensLetNobodyIn(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		want string
	}{
		"truncated":     {`{"tokens": [{"na`, 0o600, "is damaged"},
		"a role gone":   {`{"tokens": [{"name": "x", "role": "root", "sha256": ""}]}`, 0o600, `no role "root"`},
		"open to all":   {`{"tokens": []}`, 0o644, "others may read or change it"},
		"without bound": {strings.Repeat(" ", maxTokensFile+1), 0o600, "has more than"},
	} {
		tokens := openTestTokens(t)
		if err := os.WriteFile(tokens.path, []byte(c.text), c.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(tokens.path, c.mode); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := tokens.AuthenticateToken(t.Context(), "x"); ok || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: let in %v, %v", name, ok, err)
		}
	}
}

// TestManyWritersLoseNoToken: verbs may run at the same time.
func TestManyWritersLoseNoToken(t *testing.T) {
	state := t.TempDir()
	var wg sync.WaitGroup
	const n = 20
	for i := range n {
		wg.Go(func() {
			tokens, err := OpenTokens(state, nil)
			if err == nil {
				_, err = tokens.Create(t.Context(), Identity{Name: fmt.Sprintf("w%d", i), Role: RoleViewer})
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	tokens, err := OpenTokens(state, nil)
	if err != nil {
		t.Fatal(err)
	}
	if ids, err := tokens.List(); err != nil || len(ids) != n {
		t.Errorf("%d tokens, %v", len(ids), err)
	}
	if left, _ := filepath.Glob(filepath.Join(state, controlDir, ".new-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
