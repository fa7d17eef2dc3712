package builtin

import "encoding/json"

// What the model reads of the tools that the runner answers itself: no program describes
// them.
const (
	aboutTodoWrite = "Replace the todo list of this run with a whole new one. Use it for work of several steps: set an entry in_progress (at most one) before you begin it, and completed as soon as it is done."
	aboutTodoRead  = "Read the todo list of this run."
	aboutQuestion  = "Ask the person behind the run what only they can decide. A question has options to choose from, or none for a free text. Where nobody can answer, the result says so."
)

var (
	todoWriteParameters = json.RawMessage(`{"type":"object","properties":{"todos":{"type":"array","maxItems":100,"items":{"type":"object","properties":{` +
		`"content":{"type":"string","minLength":1,"maxLength":500},` +
		`"status":{"type":"string","enum":["pending","in_progress","completed","cancelled"]},` +
		`"priority":{"type":"string","enum":["high","medium","low"]}},` +
		`"required":["content","status"],"additionalProperties":false}}},"required":["todos"],"additionalProperties":false}`)
	todoReadParameters = json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)
	questionParameters = json.RawMessage(`{"type":"object","properties":{"questions":{"type":"array","minItems":1,"maxItems":8,"items":{"type":"object","properties":{` +
		`"question":{"type":"string","minLength":1,"maxLength":4000},` +
		`"options":{"type":"array","maxItems":16,"items":{"type":"string","minLength":1,"maxLength":200}},` +
		`"multiple":{"type":"boolean","description":"several options may be chosen"}},` +
		`"required":["question"],"additionalProperties":false}}},"required":["questions"],"additionalProperties":false}`)
)
