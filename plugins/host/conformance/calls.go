package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentctl.dev/agentctl/plugins/host"
)

const noSuchTool = "no-such-tool"

func unknownTool(ctx context.Context, t *trial) error {
	return t.with(ctx, func(p *host.Plugin) error {
		res, err := t.call(ctx, p, noSuchTool, `{}`)
		if err != nil {
			return err
		}
		return wantCode(res, "unknown_tool")
	})
}

func wantCode(res *host.CallResult, code string) error {
	switch {
	case !res.IsError:
		return fmt.Errorf("it was no error: %s", brief(res.Text))
	case res.Code != code:
		return fmt.Errorf("the code is %q, not %q: %s", res.Code, code, brief(res.Text))
	}
	return nil
}

// brief quotes the beginning of a program's text.
func brief(s string) string {
	if r := []rune(s); len(r) > 100 {
		s = string(r[:100]) + "…"
	}
	return strconv.Quote(s)
}

const unknownField = `{"no such field":1}`

// closed reports whether a schema refuses fields it does not name.
func closed(schema []byte) bool {
	var s struct {
		AdditionalProperties *bool `json:"additionalProperties"`
	}
	return json.Unmarshal(schema, &s) == nil && s.AdditionalProperties != nil && !*s.AdditionalProperties
}

// badArguments sends what no tool may act on, chosen so that one that does not
// look finds nothing to do either.
func badArguments(ctx context.Context, t *trial) error {
	return t.with(ctx, func(p *host.Plugin) error {
		var wrong []string
		for _, tool := range t.tools {
			bad := []string{``, `{`, `[]`, `"text"`, `null`, `{} {}`}
			if closed(tool.Parameters) {
				bad = append(bad, unknownField)
			}
			for _, args := range bad {
				res, err := t.call(ctx, p, tool.Name, args)
				switch {
				case err != nil:
					return fmt.Errorf("tool %q with the arguments %q: %w", tool.Name, args, err)
				case !res.IsError:
					wrong = append(wrong, fmt.Sprintf("tool %q accepted the arguments %q", tool.Name, args))
				}
			}
		}
		return together(wrong)
	})
}

func largeRequest(ctx context.Context, t *trial) error {
	return t.with(ctx, func(p *host.Plugin) error {
		text := strings.Repeat("x", 6<<20)
		args := `{"text":"` + text + `"}`
		res, err := t.call(ctx, p, noSuchTool, args)
		if err != nil {
			return err
		}
		if !res.IsError {
			return errors.New("a tool it does not serve answered")
		}
		if !t.probes["probe_echo"] {
			return nil
		}
		res, err = t.call(ctx, p, "probe_echo", args)
		if err != nil {
			return err
		}
		if res.Text != text {
			return fmt.Errorf("of a text of %d bytes %d came back", len(text), len(res.Text))
		}
		return nil
	})
}

func parallelCalls(ctx context.Context, t *trial) error {
	tool, args, want := noSuchTool, `{}`, ""
	if t.probes["probe_wait"] {
		tool, args, want = "probe_wait", `{"ms":500}`, "begun\nrested"
	}
	const calls, most = 64, 16 * time.Second // 32 s one after the other
	return t.with(ctx, func(p *host.Plugin) error {
		var wg sync.WaitGroup
		var mu sync.Mutex
		var wrong []string
		begin := time.Now()
		for range calls {
			wg.Go(func() {
				res, err := t.call(ctx, p, tool, args)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err != nil:
					wrong = append(wrong, err.Error())
				case want != "" && res.Text != want:
					wrong = append(wrong, "an answer was "+brief(res.Text))
				}
			})
		}
		wg.Wait()
		if d := time.Since(begin); len(wrong) == 0 && d > most {
			return fmt.Errorf("%d calls of 500 ms took %s", calls, d.Round(time.Millisecond))
		}
		slices.Sort(wrong)
		return together(slices.Compact(wrong))
	})
}
