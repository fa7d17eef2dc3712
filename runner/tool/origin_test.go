package tool

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
)

func TestResultsNameTheServerThatWasAsked(t *testing.T) {
	fetch := Definition{Name: "webfetch", Facts: Facts{URL: "url"}}
	for args, server := range map[string]string{
		`{"url":" https://Example.com/a?b"}`: "example.com", `{"url":"http://example.com:8080/"}`: "example.com:8080",
		`{"url":"http://["}`: "", `{"url":1}`: "", `{"other":"https://example.com/"}`: "", `[]`: "",
	} {
		want := &message.Origin{Kind: message.OriginServer, Name: "webfetch", Server: server}
		if server == "" {
			want.Kind = message.OriginTool
		}
		if diff := cmp.Diff(want, fetch.cameFrom(json.RawMessage(args))); diff != "" {
			t.Errorf("%s: -want +got\n%s", args, diff)
		}
	}
	remote := Definition{Name: "x", Facts: Facts{Remote: "mcp.example"}}
	if got := remote.cameFrom(json.RawMessage(`{"url":"https://example.com"}`)); got.Server != "mcp.example" {
		t.Errorf("got %+v", got)
	}
	search := Definition{Name: "websearch", Facts: Facts{Server: "https://search.example:443"}}
	if got := search.cameFrom(json.RawMessage(`{"query":"https://example.com"}`)); got.Server != "search.example:443" || got.Kind != message.OriginServer {
		t.Errorf("got %+v", got)
	}
	exec := Definition{Name: "x"}
	if got := exec.cameFrom(json.RawMessage(`{"url":"https://example.com"}`)); got.Kind != message.OriginTool {
		t.Errorf("got %+v", got)
	}
}
