package openai

import (
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model/exchange"
	"agentctl.dev/agentctl/runner/model/jsonpass"
)

// tally is the server's report of what an answer took. The APIs differ in two
// names only, and servers mix them.
type tally struct {
	usage message.Usage
	// counted says that there was a report.
	counted bool
	// miscounted tells of counts that cannot be.
	miscounted []string
}

// read keeps the last report: servers that send several count up.
func (t *tally) read(c *jsonpass.Cursor) {
	if c.Next() == 'n' {
		c.Skip()
		return
	}
	*t = tally{counted: true}
	var u struct{ input, output, total, cached, written, reasoning int64 }
	count := func(into *int64) {
		name := c.Key()
		n, wrong := c.Count()
		if wrong != "" {
			t.miscounted = append(t.miscounted, exchange.Miscounted(name, wrong))
		}
		*into = n
	}
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
	t.usage = message.Usage{
		Input: max(0, u.input-u.cached-u.written), Output: u.output, Reasoning: u.reasoning,
		CacheRead: u.cached, CacheWrite: u.written,
	}
}

// into writes the report into an answer.
func (t *tally) into(out *message.Output) {
	out.Usage, out.Uncounted, out.Warnings = t.usage, exchange.Uncounted(t.counted, t.miscounted, t.usage), t.miscounted
}
