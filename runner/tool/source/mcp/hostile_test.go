package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/message"
)

// patience bounds every wait. Nothing is slow when it takes less: machines are busy.
const patience = time.Minute

// hostile answers a request as a server of these modes does. It reports whether it has.
func hostile(out *bufio.Writer, mode, method string, id json.RawMessage) bool {
	defer func() { _ = out.Flush() }()
	switch mode + " " + method {
	case "listless tools/list": // never answers
		_ = os.WriteFile(os.Getenv("NOTE"), []byte("asked"), 0o600)
	case "long-list tools/list":
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"f","description":"`, id)
		for range 100 {
			_, _ = out.WriteString(strings.Repeat("x", 1<<20))
		}
		_, _ = out.WriteString("\"}]}}\n")
	case "misshapen tools/call":
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"content":"not a list","isError":"perhaps"}}`+"\n", id)
	case "contradicts tools/call": // its list says that the result is an object with a number
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[],"structuredContent":{"n":"none"}}}`+"\n", id)
	case "contradicts tools/list":
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"f","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}]}}`+"\n", id)
	case "escapes tools/call":
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"resource_link","uri":"x:\u001b[2J","name":"a\u001b]0;evil\u0007","description":"b\u202e","mimeType":"c\u001b"},`+
			`{"type":"audio","mimeType":"d\u001b[2J","data":""},{"type":"image","mimeType":"image/png\u001b[2J","data":""}]}}`+"\n", id)
	case "unheard tools/call":
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"unheard-of"}]}}`+"\n", id)
	case "refuses tools/call":
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"no\u001b[2J\u202e way"}}`+"\n", id)
	case "cries tools/call":
		fmt.Fprint(os.Stderr, "help\x1b[2J\x07 me\n")
		os.Exit(3)
	default:
		return false
	}
	return true
}

// A server that starts and then says nothing about its functions is not waited for when
// the run is cancelled.
func TestAListThatNeverComesIsNotWaitedFor(t *testing.T) {
	note := filepath.Join(t.TempDir(), "note")
	b := newBed(t, "", "listless", env("NOTE="+note))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := b.pool.Several(ctx, &b.def, "")
		ended <- err
	}()
	for late := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if text, err := os.ReadFile(note); err == nil && len(text) > 0 {
			break
		}
		if time.Now().After(late) {
			t.Fatal("the server was not asked")
		}
	}
	cancel()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("it has functions")
		}
	case <-time.After(patience):
		t.Error("it is waited for")
	}
}

func TestAListWithoutEndIsNotRead(t *testing.T) {
	b := newBed(t, "", "long-list")
	if _, err := b.pool.Several(t.Context(), &b.def, ""); err == nil || !strings.Contains(err.Error(), "longer than 16 MiB") {
		t.Errorf("a list of 100 MB: %.200v", err)
	}
}

// Whatever a server answers to a call is a result for the model, without what would move a
// terminal in the words of agentctl.
func TestAnswersThatLieAreResults(t *testing.T) {
	for mode, c := range map[string]struct {
		reason, want string
		code         message.ErrorCode
	}{
		"misshapen":   {"a result that is not one", "refused the call", message.CodeTool},
		"unheard":     {"a part of a kind that is unknown", "refused the call", message.CodeTool},
		"contradicts": {"a structured result is shown as it is, whatever the server has announced", `{"n":"none"}`, ""},
		"refuses":     {"an error of the protocol", "refused the call: no<U+001B>[2J<U+202E> way", message.CodeTool},
		"cries":       {"a server that ends says why", "exit code 3, and wrote: help<U+001B>[2J<U+0007> me", message.CodeTool},
		"escapes":     {"links and media are lines", "resource mcp://s/", ""},
	} {
		t.Run(mode, func(t *testing.T) {
			r := newBed(t, "", mode).answer("f", `{}`)
			if r.Code != c.code || r.Failed != (c.code != "") || !strings.Contains(r.Output, c.want) {
				t.Errorf("%s: code %q, %q, want %q in it", c.reason, r.Code, r.Output, c.want)
			}
			if strings.ContainsAny(r.Output, "\x1b\x07\u202e") {
				t.Errorf("%s: %q moves a terminal", c.reason, r.Output)
			}
		})
	}
}
