package tool

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/plugins/host"
)

// searcher is a program that shows the names of files that are not hidden, at
// most two at a time.
func searcher(files ...string) serverFunc {
	return func(_ context.Context, req host.CallRequest, _ func(string)) (Reply, error) {
		var shown []string
		for _, f := range files {
			if !slices.Contains(req.Hidden, f) && len(shown) < 2 {
				shown = append(shown, f)
			}
		}
		data, err := json.Marshal(map[string]any{"matches": len(shown), "files": shown})
		return Reply{Output: strings.Join(shown, "\n"), Metadata: data}, err
	}
}

func TestASearchLeavesOutWhatMayNotBeRead(t *testing.T) {
	secret := func(_ context.Context, _ message.ToolCall, files []string) ([]string, error) {
		return slices.DeleteFunc(slices.Clone(files), func(f string) bool { return !strings.HasPrefix(f, "s") }), nil
	}
	many := make([]string, 2*rounds+3)
	for i := range many {
		many[i] = "s" + strings.Repeat("x", i)
	}
	tests := map[string]struct {
		reason     string
		server     serverFunc
		unreadable func(context.Context, message.ToolCall, []string) ([]string, error)
		want       string
		failed     bool
	}{
		"nothing hidden": {"nothing is said where nothing is left out", searcher("a", "b"), secret, "a\nb", false},
		"some":           {"others take their place", searcher("s1", "a", "s2", "b"), secret, "a\nb\n(2 files that match were left out: the policy keeps them from this agent)", false},
		"all":            {"the count alone is told", searcher("s1"), secret, "\n(1 file that matches was left out: the policy keeps them from this agent)", false},
		"too many":       {"a search is not made for ever", searcher(many...), secret, "the result is withheld: too many of the files it finds may not be read: narrow path or include", true},
		"deaf": {"a program that shows them all the same", func(ctx context.Context, _ host.CallRequest, _ func(string)) (Reply, error) {
			return searcher("s1")(ctx, host.CallRequest{}, nil)
		}, secret, "the result is withheld: it shows files that may not be read", true},
		"no names": {"a result that does not say what it shows", func(context.Context, host.CallRequest, func(string)) (Reply, error) {
			return Reply{Output: "s1: secret"}, nil
		}, secret, "the result is withheld: the search did not say which files it has shown", true},
		"some names": {"matches without a file", func(context.Context, host.CallRequest, func(string)) (Reply, error) {
			return Reply{Output: "s1: secret", Metadata: []byte(`{"matches":1}`)}, nil
		}, secret, "the result is withheld: the search did not say which files it has shown", true},
		"no judge": {"who cannot be judged is withheld", searcher("a"), func(context.Context, message.ToolCall, []string) ([]string, error) { return nil, errors.New("broken") }, "the result is withheld: nobody can say which files may be read: broken", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := &Registry{Options: Options{Unreadable: tc.unreadable}}
			d := &Definition{Facts: Facts{Search: true}}
			got, err := r.call(t.Context(), d, message.ToolCall{Tool: "grep"}, tc.server, host.CallRequest{}, func(string) {})
			if err != nil || got.Output != tc.want || got.Failed != tc.failed {
				t.Errorf("%s: got %q, failed %t, %v; want %q", tc.reason, got.Output, got.Failed, err, tc.want)
			}
			if tc.failed && strings.Contains(string(got.Metadata), "s1") {
				t.Errorf("%s: the metadata tells: %s", tc.reason, got.Metadata)
			}
		})
	}
}

func TestOtherToolsAreNotSearches(t *testing.T) {
	r := &Registry{Options: Options{Unreadable: func(context.Context, message.ToolCall, []string) ([]string, error) {
		t.Error("a tool that is no search was asked about")
		return nil, nil
	}}}
	d := &Definition{}
	if got, err := r.call(t.Context(), d, message.ToolCall{}, searcher("s1"), host.CallRequest{}, func(string) {}); err != nil || got.Output != "s1" {
		t.Errorf("got %q, %v", got.Output, err)
	}
}
