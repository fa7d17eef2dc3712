// Package forgetest is a forge for tests: what agentctl uses of GitHub, of GitLab and of a webhook, on one server.
package forgetest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Token is the one credential that the forge accepts.
const Token = "forge-token-0123456789"

// Fault is an answer instead of the right one.
type Fault struct {
	// Method and Path are those of the requests; Path is a part of it.
	Method, Path string
	Status       int
	Header       map[string]string
	Body         string
	// Done says that the request has its effect all the same: only the answer is lost.
	Done bool
	// Cut ends the connection in place of an answer.
	Cut bool
}

// Forge keeps repositories in memory. Below /github is the API of GitHub, below /gitlab that
// of GitLab, and /hook takes webhooks.
type Forge struct {
	*httptest.Server

	mu       sync.Mutex
	faults   []Fault
	requests []string
	// Files are those of the branch main.
	Files    map[string]string
	comments []map[string]any
	pulls    []map[string]any
	branches map[string]map[string]string
	blobs    map[string]string
	trees    map[string]map[string]string
	hooks    map[string]string
}

// New starts a forge. Close it.
func New() *Forge {
	f := &Forge{
		Files: map[string]string{}, branches: map[string]map[string]string{}, blobs: map[string]string{}, trees: map[string]map[string]string{}, hooks: map[string]string{},
	}
	f.Server = httptest.NewServer(f)
	return f
}

// Fail queues faults: each is for the next request that it names.
func (f *Forge) Fail(all ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, all...)
}

// Requests are those so far: method, path, and "!" where the credential was wrong.
func (f *Forge) Requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

// Comments are the texts of all comments.
func (f *Forge) Comments() (texts []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.comments {
		texts = append(texts, c["body"].(string))
	}
	return texts
}

// Hooks are what the webhook has been sent, by the key.
func (f *Forge) Hooks() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[string]string{}
	maps.Copy(all, f.hooks)
	return all
}

// Pulls are the pull requests, with the files of their branches.
func (f *Forge) Pulls() (all []map[string]any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.pulls {
		c := map[string]any{}
		maps.Copy(c, p)
		c["files"] = f.branches[p["head"].(string)]
		all = append(all, c)
	}
	return all
}

// ServeHTTP implements http.Handler.
func (f *Forge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	path := r.URL.EscapedPath()
	line := r.Method + " " + path
	good := r.Header.Get("Authorization") == "Bearer "+Token
	if !good {
		line += " !"
	}
	f.requests = append(f.requests, line)
	at := slices.IndexFunc(f.faults, func(x Fault) bool { return x.Method == r.Method && strings.Contains(path, x.Path) })
	var fault Fault
	if at >= 0 {
		fault = f.faults[at]
		f.faults = slices.Delete(f.faults, at, at+1)
	}
	if at < 0 || fault.Done {
		rec := httptest.NewRecorder()
		if good {
			f.answer(rec, r, path)
		} else {
			fail(rec, http.StatusUnauthorized, "Bad credentials")
		}
		if at < 0 {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(rec.Code)
			_, _ = w.Write(rec.Body.Bytes())
			return
		}
	}
	if fault.Cut {
		panic(http.ErrAbortHandler)
	}
	for k, v := range fault.Header {
		w.Header().Set(k, v)
	}
	w.WriteHeader(fault.Status)
	_, _ = io.WriteString(w, fault.Body)
}

func (f *Forge) answer(w http.ResponseWriter, r *http.Request, path string) {
	var body map[string]any
	b, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(b, &body)
	if rest, ok := strings.CutPrefix(path, "/github/repos/acme/shop"); ok {
		f.github(w, r, rest, body)
		return
	}
	if rest, ok := strings.CutPrefix(path, "/gitlab/projects/acme%2Fshop"); ok {
		f.gitlab(w, r, rest, body)
		return
	}
	if path == "/hook" && r.Method == http.MethodPost {
		f.hooks[r.Header.Get("Idempotency-Key")] = string(b)
		say(w, http.StatusOK, nil)
		return
	}
	fail(w, http.StatusNotFound, "Not Found")
}

func (f *Forge) github(w http.ResponseWriter, r *http.Request, path string, body map[string]any) {
	get, post := r.Method == http.MethodGet, r.Method == http.MethodPost
	switch {
	case path == "/issues/7/comments" && get:
		say(w, http.StatusOK, page(f.comments, r.URL.Query()))
	case path == "/issues/7/comments" && post:
		say(w, http.StatusCreated, f.comment(body))
	case path == "/pulls" && get:
		_, head, _ := strings.Cut(r.URL.Query().Get("head"), ":")
		say(w, http.StatusOK, f.find("head", head))
	case path == "/pulls" && post:
		f.open(w, body["head"].(string), body, "body", http.StatusUnprocessableEntity)
	case strings.HasPrefix(path, "/git/ref/heads/") && get:
		name := strings.TrimPrefix(path, "/git/ref/heads/")
		if name != "main" && f.branches[name] == nil {
			fail(w, http.StatusNotFound, "Not Found")
			return
		}
		say(w, http.StatusOK, map[string]any{"object": map[string]any{"sha": "commit-of-" + name}})
	case strings.HasPrefix(path, "/git/commits/") && get:
		say(w, http.StatusOK, map[string]any{"sha": strings.TrimPrefix(path, "/git/commits/"), "tree": map[string]any{"sha": "tree-of-main"}})
	case strings.HasPrefix(path, "/contents/") && get:
		name, _ := url.PathUnescape(strings.TrimPrefix(path, "/contents/"))
		text, ok := f.Files[name]
		if !ok {
			fail(w, http.StatusNotFound, "Not Found")
			return
		}
		say(w, http.StatusOK, map[string]any{"type": "file", "encoding": "base64", "content": base64.StdEncoding.EncodeToString([]byte(text)) + "\n", "sha": "x"})
	case path == "/git/blobs" && post:
		id := fmt.Sprintf("blob-%d", len(f.blobs))
		raw, _ := base64.StdEncoding.DecodeString(body["content"].(string))
		f.blobs[id] = string(raw)
		say(w, http.StatusCreated, map[string]any{"sha": id})
	case path == "/git/trees" && post:
		files := f.main()
		for _, e := range body["tree"].([]any) {
			e := e.(map[string]any)
			if e["sha"] == nil {
				delete(files, e["path"].(string))
				continue
			}
			files[e["path"].(string)] = f.blobs[e["sha"].(string)]
		}
		id := fmt.Sprintf("tree-%d", len(f.trees))
		f.trees[id] = files
		say(w, http.StatusCreated, map[string]any{"sha": id})
	case path == "/git/commits" && post:
		say(w, http.StatusCreated, map[string]any{"sha": body["tree"]})
	case path == "/git/refs" && post:
		name := strings.TrimPrefix(body["ref"].(string), "refs/heads/")
		if f.branches[name] != nil {
			fail(w, http.StatusUnprocessableEntity, "Reference already exists")
			return
		}
		f.branches[name] = f.trees[body["sha"].(string)]
		say(w, http.StatusCreated, map[string]any{})
	default:
		fail(w, http.StatusNotFound, "Not Found")
	}
}

func (f *Forge) gitlab(w http.ResponseWriter, r *http.Request, path string, body map[string]any) {
	get, post := r.Method == http.MethodGet, r.Method == http.MethodPost
	switch {
	case path == "/merge_requests/7/notes" && get:
		all := slices.Clone(f.comments)
		slices.Reverse(all)
		say(w, http.StatusOK, page(all, r.URL.Query()))
	case path == "/merge_requests/7/notes" && post:
		say(w, http.StatusCreated, f.comment(body))
	case path == "/merge_requests/7" && get:
		say(w, http.StatusOK, map[string]any{"web_url": f.URL + "/acme/shop/-/merge_requests/7"})
	case path == "/merge_requests" && get:
		say(w, http.StatusOK, f.find("source_branch", r.URL.Query().Get("source_branch")))
	case path == "/merge_requests" && post:
		f.open(w, body["source_branch"].(string), body, "description", http.StatusConflict)
	case strings.HasPrefix(path, "/repository/branches/") && get:
		name, _ := url.PathUnescape(strings.TrimPrefix(path, "/repository/branches/"))
		if name != "main" && f.branches[name] == nil {
			fail(w, http.StatusNotFound, "404 Branch Not Found")
			return
		}
		say(w, http.StatusOK, map[string]any{"commit": map[string]any{"id": "commit-of-" + name}})
	case strings.HasPrefix(path, "/repository/files/") && get:
		name, _ := url.PathUnescape(strings.TrimPrefix(path, "/repository/files/"))
		text, ok := f.Files[name]
		if !ok {
			fail(w, http.StatusNotFound, "404 File Not Found")
			return
		}
		say(w, http.StatusOK, map[string]any{"content": base64.StdEncoding.EncodeToString([]byte(text))})
	case path == "/repository/commits" && post:
		files := f.main()
		for _, a := range body["actions"].([]any) {
			a := a.(map[string]any)
			name := a["file_path"].(string)
			_, there := files[name]
			if there == (a["action"] == "create") {
				fail(w, http.StatusBadRequest, "A file with this name does not fit the action")
				return
			}
			switch a["action"] {
			case "delete":
				delete(files, name)
			case "create", "update":
				raw, _ := base64.StdEncoding.DecodeString(fmt.Sprint(a["content"]))
				files[name] = string(raw)
			}
		}
		f.branches[body["branch"].(string)] = files
		say(w, http.StatusCreated, map[string]any{})
	default:
		fail(w, http.StatusNotFound, "404 Not Found")
	}
}

func (f *Forge) main() map[string]string {
	files := map[string]string{}
	maps.Copy(files, f.Files)
	return files
}

func (f *Forge) comment(body map[string]any) map[string]any {
	n := len(f.comments) + 1
	c := map[string]any{"id": n, "body": body["body"], "html_url": fmt.Sprintf("%s/acme/shop/pull/7#issuecomment-%d", f.URL, n)}
	f.comments = append(f.comments, c)
	return c
}

func (f *Forge) find(field, branch string) []map[string]any {
	all := []map[string]any{}
	for _, p := range f.pulls {
		if p[field] == branch {
			all = append(all, p)
		}
	}
	return all
}

// open makes a pull request of a branch, once.
func (f *Forge) open(w http.ResponseWriter, branch string, body map[string]any, text string, twice int) {
	if f.branches[branch] == nil {
		fail(w, http.StatusUnprocessableEntity, "head does not exist")
		return
	}
	if len(f.find("head", branch)) > 0 {
		fail(w, twice, "A pull request already exists")
		return
	}
	at := fmt.Sprintf("%s/acme/shop/pull/%d", f.URL, len(f.pulls)+8)
	p := map[string]any{"head": branch, "source_branch": branch, "title": body["title"], "body": body[text], "description": body[text], "html_url": at, "web_url": at}
	f.pulls = append(f.pulls, p)
	say(w, http.StatusCreated, p)
}

func page(all []map[string]any, q url.Values) []map[string]any {
	n, size := 1, 30
	_, _ = fmt.Sscan(q.Get("page"), &n)
	_, _ = fmt.Sscan(q.Get("per_page"), &size)
	from := min((n-1)*size, len(all))
	return append([]map[string]any{}, all[from:min(from+size, len(all))]...)
}

func say(w http.ResponseWriter, code int, v any) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v)
}

func fail(w http.ResponseWriter, code int, text string) {
	say(w, code, map[string]string{"message": text})
}
