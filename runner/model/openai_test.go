package model

import (
	"testing"
	"time"
)

// The words of OpenAI's APIs, in a refusal and inside a stream.
func TestFaultsOfOpenAI(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		status int
		fault  Fault
		want   Kind
	}{
		"server":           {"the server is to blame, and may recover", 0, Fault{Code: "server_error", Message: "An error occurred while processing your request."}, Retryable},
		"rate limit":       {"a limit of a minute passes", 0, Fault{Code: "rate_limit_exceeded", Message: "Rate limit reached for gpt-5"}, Retryable},
		"overflow":         {"a compaction helps", 0, Fault{Code: "context_length_exceeded", Message: "Your input exceeds the context window of this model."}, Overflow},
		"quota":            {"money does not come back by itself", 0, Fault{Code: "insufficient_quota", Message: "You exceeded your current quota"}, Unavailable},
		"flagged":          {"the prompt itself is refused", 400, Fault{Code: "invalid_prompt", Message: "Invalid prompt: your prompt was flagged as potentially violating our usage policy."}, Filtered},
		"invalid":          {"the same code, and nobody has flagged anything", 400, Fault{Code: "invalid_prompt", Message: "input is empty"}, Never},
		"filter":           {"the gateway's filter", 400, Fault{Code: "content_filter", Message: "The response was filtered"}, Filtered},
		"policy of images": {"a filter for pictures", 0, Fault{Code: "image_content_policy_violation", Message: "no"}, Filtered},
		"policy":           {"a filter of its own", 0, Fault{Code: "bio_policy", Message: "no"}, Filtered},
		"image":            {"a picture that is none stays none", 0, Fault{Code: "invalid_image", Message: "no"}, Never},
	} {
		if e := Status(c.status, nil, c.fault, time.Time{}); e.Kind != c.want {
			t.Errorf("%s: kind %d, want %d: %s (%v)", name, e.Kind, c.want, c.reason, e)
		}
	}
}
