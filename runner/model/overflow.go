package model

import (
	"net/http"
	"slices"
	"strings"
)

// overflowWords are the messages with which servers refuse a conversation that does not
// fit into the model's window, in lower case. A * matches any text. Compatible servers
// share messages: the first server that is known to send one is named.
var overflowWords = []struct{ server, words string }{
	{"OpenAI chat, Azure, DeepSeek, OpenRouter, Mistral, vLLM", "maximum context length"},
	{"OpenAI responses", "exceeds the context window"},
	{"OpenAI, as a code", "context_length_exceeded"},
	{"Anthropic, Fireworks", "prompt is too long"},
	{"Anthropic, with the limit of the answer", "exceed context limit"},
	{"Z.ai, as a code", "context_window_exceeded"},
	{"Gemini", "exceeds the maximum number of tokens"},
	{"Gemini, by size", "request payload size exceeds"},
	{"xAI", "maximum prompt length is"},
	{"Groq, Cerebras", "reduce the length of the messages"},
	{"SGLang, the input alone", "longer than the model's context length"},
	{"SGLang, its scheduler", "input length*exceeds the maximum allowed"},
	{"vLLM, its engine", "longer than the maximum model length"},
	{"vLLM, older releases", "is too long and exceeds limit of"},
	// What is left for the answer is computed before it is checked.
	{"vLLM, with a default limit of the answer", "max_tokens must be at least 1, got -"},
	{"vLLM, with a default limit of the answer", "max_completion_tokens must be at least 1, got -"},
	{"Bedrock", "input is too long"},
	{"Bedrock, other model families", "too many input tokens"},
	{"Bedrock, older model families", "expected maxlength:"},
	{"LiteLLM", "contextwindowexceedederror"},
	{"LM Studio", "tokens when context the overflows"},
	{"LM Studio, other releases", "tokens when context overflows"},
	{"LM Studio, its MLX engine", "greater than the context length"},
	{"LM Studio, in the middle of an answer", "reached context length of"},
	{"Text Generation Inference, Together", "inputs` must have less than"},
	{"Text Generation Inference, with the limit of the answer", "inputs` tokens + `max_new_tokens` must be"},
	{"Ollama", "input length exceeds*context length"},
	{"Ollama cloud", "prompt too long; exceeded"},
	{"llama.cpp", "exceeds the available context size"},
	{"llama.cpp, as a type", "exceed_context_size_error"},
	{"llama.cpp, older releases", "context shift is disabled"},
	{"llama.cpp, older releases", "input is too large to process"},
	{"llama-cpp-python", "exceed context window of"},
	{"Mistral, older releases", "prompt is too large"},
	{"Moonshot", "exceeded model token limit"},
	{"MiniMax", "context window exceeds limit"},
	{"DashScope", "range of input length should be"},
	{"GitHub Copilot", "prompt token count of*exceeds the limit of"},
}

// overflowStatus lists the statuses that such a refusal comes with. 500 is what
// llama.cpp and gateways in front of other servers send; 0 is a fault in a stream.
var overflowStatus = []int{0, http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, http.StatusInternalServerError}

// tooLarge is how OpenAI refuses a single request that is larger than what the
// account may send in a minute. It comes as a 429 and never passes: the same
// request is too large in the next minute, too.
const tooLarge = "request too large for"

// overflow reports whether a server refused a conversation because of its length.
func (f Fault) overflow(status int) bool {
	if status == http.StatusRequestEntityTooLarge || f.Code == "context_length_exceeded" || f.Type == "exceed_context_size_error" {
		return true
	}
	if status == http.StatusTooManyRequests {
		return f.any(tooLarge)
	}
	if !slices.Contains(overflowStatus, status) {
		return false
	}
	all := f.all()
	return slices.ContainsFunc(overflowWords, func(w struct{ server, words string }) bool { return holds(all, w.words) })
}

// holds reports whether a text holds the parts of a pattern in their order.
func holds(text, pattern string) bool {
	for part := range strings.SplitSeq(pattern, "*") {
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return true
}
