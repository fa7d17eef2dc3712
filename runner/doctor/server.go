package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"
)

// server is a program that serves models on a port of this host, by the paths of OpenAI.
type server struct {
	name, baseURL string
	// start is how it is started, for who wants it.
	start string
}

const (
	serverPatience = 2 * time.Second
	maxModelList   = 1 << 20
	maxModelNames  = 100
)

// localServers are the usual ones at their usual ports.
func localServers() []server {
	return []server{
		{"Ollama", "http://" + ollamaHost(os.Getenv("OLLAMA_HOST")) + "/v1", "ollama serve"},
		{"llama.cpp", "http://127.0.0.1:8080/v1", "llama-server -m MODEL.gguf"},
		{"vLLM", "http://127.0.0.1:8000/v1", "vllm serve MODEL"},
	}
}

// ollamaHost is where Ollama listens, by the variable that it is set with: HOST, HOST:PORT
// or a URL. One that listens at all addresses is asked at this host's own.
func ollamaHost(set string) string {
	const port = "11434"
	set = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(set), "http://"), "/")
	host, at, err := net.SplitHostPort(set)
	if err != nil {
		host, at = set, port
	}
	if host == "" || host == "0.0.0.0" || host == "::" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), cmp.Or(at, port))
}

// ask asks for the models that a server has.
func (s server) ask(ctx context.Context) ModelSource {
	m := ModelSource{Name: s.name, BaseURL: s.baseURL, Models: []string{}}
	names, err := s.models(ctx)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		m.Why, m.Hint = "nothing listens at "+s.baseURL, s.start
	case err != nil:
		m.Why = err.Error()
	case len(names) == 0:
		m.Why, m.Hint = s.baseURL+" answers, but has no models", "load a model into it"
	default:
		m.OK, m.Models = true, names
		m.Why = fmt.Sprintf("%s has %s", s.baseURL, some(names, 3))
		m.Hint = m.manifest()
	}
	return m
}

func (s server) models(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, serverPatience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.baseURL+"/models", http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("ask %s for its models: %w", s.baseURL, err)
	}
	direct := &http.Transport{DisableKeepAlives: true} // no proxy: it is a server of this host
	res, err := direct.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("ask %s for its models: %w", s.baseURL, err)
	}
	defer func() { _ = res.Body.Close() }() // it was read as far as it counts
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("what listens at %s lists no models: it answers %s", s.baseURL, res.Status)
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxModelList)).Decode(&list); err != nil {
		return nil, fmt.Errorf("what listens at %s lists no models: its answer is not a list in JSON", s.baseURL)
	}
	names := []string{}
	for _, d := range list.Data {
		if d.ID != "" && len(names) < maxModelNames {
			names = append(names, d.ID)
		}
	}
	return names, nil
}
