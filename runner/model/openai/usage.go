package openai

import (
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model/httpapi"
	"agentctl.dev/agentctl/runner/model/jsonpass"
)

// readUsage reads a report of what an answer took. The APIs differ in two names
// only, and servers mix them. The last one counts: servers that send several count
// up.
func readUsage(c *jsonpass.Cursor, t *httpapi.Tally) {
	if c.Null() {
		return
	}
	*t = httpapi.Tally{Reported: true}
	var u struct{ input, output, total, cached, written, reasoning int64 }
	count := func(into *int64) { t.Count(c, into) }
	c.Object(func(key []byte) {
		switch string(key) {
		case "prompt_tokens", "input_tokens":
			count(&u.input)
		case "completion_tokens", "output_tokens":
			count(&u.output)
		case "total_tokens":
			count(&u.total)
		case "prompt_cache_hit_tokens":
			count(&u.cached)
		case "prompt_tokens_details", "input_tokens_details":
			c.Object(func(key []byte) {
				switch string(key) {
				case "cached_tokens":
					count(&u.cached)
				case "cache_write_tokens":
					count(&u.written)
				default:
					c.Skip()
				}
			})
		case "completion_tokens_details", "output_tokens_details":
			c.Object(func(key []byte) {
				if string(key) == "reasoning_tokens" {
					count(&u.reasoning)
					return
				}
				c.Skip()
			})
		default:
			c.Skip()
		}
	})
	// A few servers do not count reasoning as output; their total shows it.
	if u.reasoning > 0 && u.total == u.input+u.output+u.reasoning {
		u.output += u.reasoning
	}
	t.Usage = message.Usage{
		Input: max(0, u.input-u.cached-u.written), Output: u.output, Reasoning: u.reasoning,
		CacheRead: u.cached, CacheWrite: u.written,
	}
}
