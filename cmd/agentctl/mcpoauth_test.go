package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpOAuth is an MCP server that demands an access token, with its own authorization
// server, at which programs and people log in. Tokens of people are renewed at each use,
// as long as there is no file named ended. It writes its address into the file that is its argument, and its function shows
// the token that it was sent.
func mcpOAuth() {
	s := mcp.NewServer(&mcp.Implementation{Name: "story", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "leak", Description: "Shows how it was called.", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "called with " + req.Extra.Header.Get("Authorization")}}}, nil
		})
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // returns at once
	if err != nil {
		os.Exit(1)
	}
	at := "http://" + l.Addr().String()
	mux := http.NewServeMux()
	inner := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer access-token-of-the-story" {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer resource_metadata=%q", at+"/.well-known/oauth-protected-resource"))
			http.Error(w, "no token", http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	})
	object := func(w http.ResponseWriter, code int, text string, args ...any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprintf(w, text, args...)
	}
	mux.HandleFunc("/.well-known/oauth-protected-resource", func(w http.ResponseWriter, _ *http.Request) {
		object(w, http.StatusOK, `{"resource":%q,"authorization_servers":[%q]}`, at+"/mcp", at)
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		object(w, http.StatusOK, `{"issuer":%q,"token_endpoint":%q,"authorization_endpoint":%q,"registration_endpoint":%q,"revocation_endpoint":%q,
			"code_challenge_methods_supported":["S256"],"authorization_response_iss_parameter_supported":true}`, at, at+"/token", at+"/authorize", at+"/register", at+"/revoke")
	})
	mux.HandleFunc("/register", func(w http.ResponseWriter, r *http.Request) {
		var meta struct {
			Redirects []string `json:"redirect_uris"`
		}
		_ = json.NewDecoder(r.Body).Decode(&meta)
		object(w, http.StatusCreated, `{"client_id":"registered","redirect_uris":[%q],"token_endpoint_auth_method":"none"}`, meta.Redirects[0])
	})
	challenge := ""
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		challenge = q.Get("code_challenge") // one person after the other
		answer := url.Values{"code": {"code-of-the-story"}, "state": {q.Get("state")}, "iss": {at}}
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+answer.Encode(), http.StatusFound)
	})
	mux.HandleFunc("/revoke", func(w http.ResponseWriter, r *http.Request) {
		if r.PostFormValue("token") == "refresh-token-of-the-story" {
			_ = os.WriteFile("ended", []byte("revoked"), 0o600)
		}
		w.WriteHeader(http.StatusOK)
	})
	person := func(w http.ResponseWriter, r *http.Request) bool {
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		_, over := os.Stat("ended")
		switch grant := r.PostFormValue("grant_type"); {
		case grant == "client_credentials":
			return false
		case grant == "authorization_code" && r.PostFormValue("code") == "code-of-the-story" && challenge == base64.RawURLEncoding.EncodeToString(sum[:]),
			grant == "refresh_token" && r.PostFormValue("refresh_token") == "refresh-token-of-the-story" && over != nil:
			object(w, http.StatusOK, `{"access_token":"access-token-of-the-story","token_type":"Bearer","expires_in":1,"refresh_token":"refresh-token-of-the-story"}`)
		default:
			object(w, http.StatusBadRequest, `{"error":"invalid_grant","error_description":"the session is over"}`)
		}
		return true
	}
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		if person(w, r) {
			return
		}
		id, secret, _ := r.BasicAuth()
		if id != "story" || secret != "secret-of-the-story" || r.PostFormValue("scope") != "files.read" {
			object(w, http.StatusUnauthorized, `{"error":"invalid_client","error_description":%q}`, "not "+secret)
			return
		}
		object(w, http.StatusOK, `{"access_token":"access-token-of-the-story","token_type":"Bearer","expires_in":3600}`)
	})
	if err := os.WriteFile(os.Args[1]+".new", []byte(at), 0o600); err != nil || os.Rename(os.Args[1]+".new", os.Args[1]) != nil {
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = server.Close() }) // the story ends it
	_ = server.Serve(l)
}

// webBrowser is a browser in which a person is logged in everywhere: it opens the address
// that is its argument. With -n it does not open the last one, and writes it instead: it
// runs on another machine.
func webBrowser() {
	client := &http.Client{Timeout: time.Minute}
	address := os.Args[len(os.Args)-1]
	if os.Args[1] == "-n" {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	resp, err := client.Get(address) //nolint:noctx // has a timeout
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = resp.Body.Close()
	fmt.Println(resp.Header.Get("Location"))
}
