package model

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// overflowBodies are refusals as the servers send them, taken from their sources
// and from reports about them.
var overflowBodies = map[string]struct {
	status int
	body   string
}{
	"OpenAI chat":           {400, `{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`},
	"OpenAI chat, no code":  {400, `{"error":{"message":"This model's maximum context length is 8192 tokens. However, you requested 9000 tokens","type":"invalid_request_error","code":"invalid_request_error"}}`},
	"OpenAI responses":      {400, `{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":null}}`},
	"OpenAI 429":            {429, `{"error":{"message":"Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 45000. The input or output tokens must be reduced in order to run successfully.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`},
	"Groq 413":              {413, `{"error":{"message":"Request too large for model x on tokens per minute (TPM): Limit 12000, Requested 20000","type":"tokens","code":"rate_limit_exceeded"}}`},
	"Groq":                  {400, `{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error"}}`},
	"Anthropic":             {400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`},
	"Anthropic, max_tokens": {400, "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000\"}}"},
	"Gemini":                {400, `{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`},
	"Gemini, by size":       {400, `{"error":{"code":400,"message":"Request payload size exceeds the limit: 20971520 bytes.","status":"INVALID_ARGUMENT"}}`},
	"xAI":                   {400, `{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}`},
	"SGLang":                {400, `{"object":"error","message":"The input (61709 tokens) is longer than the model's context length (40960 tokens).","type":"BadRequestError","param":null,"code":400}`},
	"SGLang, both":          {400, `{"object":"error","message":"Requested token count exceeds the model's maximum context length of 1000 tokens. You requested a total of 1206 tokens: 6 tokens from the input messages and 1200 tokens for the completion.","type":"BadRequestError","code":400}`},
	"SGLang, scheduler":     {400, `{"object":"error","message":"Input length (9000 tokens) exceeds the maximum allowed length (8192 tokens). Use a shorter input or enable --allow-auto-truncate.","code":400}`},
	"vLLM":                  {400, `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens","type":"BadRequestError","code":400}`},
	"vLLM, max_tokens":      {400, `{"error":{"message":"'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 65536 tokens and your request has 57879 input tokens (8192 > 65536 - 57879). None","type":"BadRequestError","param":null,"code":400}}`},
	"vLLM, negative":        {400, `{"error":{"message":"max_tokens must be at least 1, got -100.","type":"BadRequestError","code":400}}`},
	"vLLM, engine":          {400, "{\"error\":{\"message\":\"The decoder prompt (length 88049) is longer than the maximum model length of 32768. Make sure that `max_model_len` is no smaller than the number of text tokens.\",\"code\":400}}"},
	"LiteLLM over Bedrock":  {400, `{"error":{"message":"litellm.BadRequestError: litellm.ContextWindowExceededError: BedrockException: Context Window Error - {\"message\":\"Input is too long for requested model.\"}","type":null,"param":null,"code":"400"}}`},
	"Bedrock":               {400, `{"message":"Input is too long for requested model."}`},
	"Bedrock, other":        {400, `{"message":"Too many input tokens. Max input tokens: 300000, request input token count: 400000 "}`},
	"LM Studio":             {400, `{"error":"Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}`},
	"LM Studio, MLX":        {400, `{"error":"The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 13055>= n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input."}`},
	"LM Studio, stream":     {0, `{"error":{"message":"The number of tokens to keep from the initial prompt is greater than the context length"}}`},
	"TGI":                   {422, "{\"error\":\"Input validation error: `inputs` must have less than 4096 tokens. Given: 5000\",\"error_type\":\"validation\"}"},
	"TGI, both":             {422, "{\"error\":{\"message\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000 `inputs` tokens and 512 `max_new_tokens`\",\"type\":\"invalid_request_error\"}}"},
	"Ollama":                {400, `{"error":"the input length exceeds the context length"}`},
	"Ollama, maximum":       {400, `{"error":{"message":"input length exceeds maximum context length","type":"api_error"}}`},
	"Ollama cloud":          {400, `{"StatusCode":400,"Status":"400 Bad Request","error":"prompt too long; exceeded max context length by 4 tokens"}`},
	"llama.cpp":             {400, `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}`},
	"llama.cpp, 500":        {500, `{"error":{"code":500,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"server_error"}}`},
	"llama.cpp, stream":     {0, `{"error":{"code":500,"message":"context shift is disabled","type":"server_error"}}`},
	"Mistral":               {400, `{"object":"error","message":"Prompt contains 9000 tokens and 0 draft tokens, too large for model with 8192 maximum context length","type":"invalid_request_error","code":3051}`},
	"Moonshot":              {400, `{"error":{"message":"Invalid request: Your request exceeded model token limit: 8192 (requested: 9000)","type":"invalid_request_error"}}`},
	"413 without words":     {413, `<html><title>413 Request Entity Too Large</title></html>`},
}

func TestOverflowIsRecognised(t *testing.T) {
	for name, c := range overflowBodies {
		if e := Status(c.status, http.Header{}, ParseFault([]byte(c.body)), time.Time{}); e.Kind != Overflow {
			t.Errorf("%s: kind %d, want %d: %v", name, e.Kind, Overflow, e)
		}
	}
}

// Each line of the table is there for a server: a refusal above shows it, or the
// line is its own example.
func TestOverflowWordsAreInLowerCase(t *testing.T) {
	for _, w := range overflowWords {
		if w.server == "" || w.words != strings.ToLower(w.words) {
			t.Errorf("%+v: no server is named, or the words never match", w)
		}
		example := Fault{Message: "Error: " + strings.ToUpper(strings.ReplaceAll(w.words, "*", " (9000 tokens) ")) + " 4096"}
		if !example.overflow(400) {
			t.Errorf("%s: %q is not recognised", w.server, example.Message)
		}
	}
	if slices.ContainsFunc(overflowWords, func(w struct{ server, words string }) bool { return w.words == "" }) {
		t.Error("words that every refusal holds")
	}
}

func TestOtherRefusalsAreNoOverflow(t *testing.T) {
	cases := map[string]struct {
		status int
		body   string
		want   Kind
	}{
		"rate limit":        {429, `{"error":{"message":"Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 2s.","type":"tokens","code":"rate_limit_exceeded"}}`, Retryable},
		"Bedrock throttles": {429, `{"message":"Too many tokens, please wait before trying again."}`, Retryable},
		"Azure":             {429, `{"error":{"code":"429","message":"Requests to the ChatCompletions_Create Operation have exceeded token rate limit of your current OpenAI S0 pricing tier."}}`, Retryable},
		"answer too long":   {400, "{\"error\":{\"message\":\"`max_tokens` must be less than or equal to `16384`, the maximum value for `max_tokens`\",\"type\":\"invalid_request_error\"}}", Never},
		"zero":              {400, `{"error":{"message":"max_tokens must be at least 1, got 0","code":400}}`, Never},
		"temperature":       {400, `{"error":{"message":"temperature must be at least 1, got -1","code":400}}`, Never},
		"not found":         {404, `{"error":{"message":"no model whose maximum context length is 8192"}}`, Never},
		"unavailable":       {503, `{"error":{"message":"overloaded"}}`, Retryable},
	}
	for name, c := range cases {
		if e := Status(c.status, http.Header{}, ParseFault([]byte(c.body)), time.Time{}); e.Kind != c.want {
			t.Errorf("%s: kind %d, want %d: %v", name, e.Kind, c.want, e)
		}
	}
}
