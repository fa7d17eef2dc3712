package modeltest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// functionName is what the API takes for a name.
var functionName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$`)

// geminiTypes are the files that the API reads, without sound and video.
var geminiTypes = []string{"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif", "application/pdf", "text/plain"}

type geminiRequest struct {
	Contents          []geminiContent `json:"contents"`
	SystemInstruction *geminiContent  `json:"systemInstruction"`
	Tools             []struct {
		FunctionDeclarations []struct {
			Name                 string          `json:"name"`
			Description          string          `json:"description"`
			Parameters           json.RawMessage `json:"parameters"`
			ParametersJSONSchema json.RawMessage `json:"parametersJsonSchema"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
	ToolConfig *struct {
		FunctionCallingConfig *struct {
			Mode                 string   `json:"mode"`
			AllowedFunctionNames []string `json:"allowedFunctionNames"`
		} `json:"functionCallingConfig"`
	} `json:"toolConfig"`
	GenerationConfig *geminiConfig   `json:"generationConfig"`
	SafetySettings   json.RawMessage `json:"safetySettings"`
	CachedContent    string          `json:"cachedContent"`
	ServiceTier      string          `json:"serviceTier"`
	Store            *bool           `json:"store"`
	Labels           json.RawMessage `json:"labels"`
}

type geminiConfig struct {
	Temperature        *float64        `json:"temperature"`
	TopP               *float64        `json:"topP"`
	TopK               *float64        `json:"topK"`
	CandidateCount     *int            `json:"candidateCount"`
	MaxOutputTokens    *int            `json:"maxOutputTokens"`
	StopSequences      []string        `json:"stopSequences"`
	ResponseMIMEType   string          `json:"responseMimeType"`
	ResponseSchema     json.RawMessage `json:"responseSchema"`
	ResponseJSONSchema json.RawMessage `json:"responseJsonSchema"`
	PresencePenalty    *float64        `json:"presencePenalty"`
	FrequencyPenalty   *float64        `json:"frequencyPenalty"`
	Seed               *int            `json:"seed"`
	MediaResolution    string          `json:"mediaResolution"`
	ResponseModalities []string        `json:"responseModalities"`
	ThinkingConfig     *struct {
		IncludeThoughts *bool  `json:"includeThoughts"`
		ThinkingBudget  *int   `json:"thinkingBudget"`
		ThinkingLevel   string `json:"thinkingLevel"`
	} `json:"thinkingConfig"`
}

type geminiContent struct {
	Role  string       `json:"role"`
	Parts []geminiPart `json:"parts"`
}

type geminiPart struct {
	Text             *string         `json:"text"`
	Thought          bool            `json:"thought"`
	ThoughtSignature string          `json:"thoughtSignature"`
	InlineData       *geminiData     `json:"inlineData"`
	FunctionCall     *geminiCall     `json:"functionCall"`
	FunctionResponse *geminiResponse `json:"functionResponse"`
}

type geminiData struct {
	MIMEType    string `json:"mimeType"`
	Data        string `json:"data"`
	DisplayName string `json:"displayName"`
}

type geminiCall struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type geminiResponse struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Response json.RawMessage `json:"response"`
	Parts    []struct {
		InlineData *geminiData `json:"inlineData"`
	} `json:"parts"`
}

func (gemini) Check(body []byte) error {
	var r geminiRequest
	if err := decode(body, &r); err != nil {
		return fmt.Errorf("invalid JSON payload received: %w", err)
	}
	if len(r.Contents) == 0 {
		return fmt.Errorf("contents is not specified")
	}
	if s := r.SystemInstruction; s != nil {
		for i, p := range s.Parts {
			if p.Text == nil || *p.Text == "" {
				return fmt.Errorf("systemInstruction.parts[%d] is no text", i)
			}
		}
		if len(s.Parts) == 0 {
			return fmt.Errorf("systemInstruction has no parts")
		}
	}
	if err := r.checkTools(); err != nil {
		return err
	}
	if g := r.GenerationConfig; g != nil {
		schemas := len(g.ResponseSchema) + len(g.ResponseJSONSchema)
		switch {
		case schemas > 0 && g.ResponseMIMEType != "application/json":
			return fmt.Errorf("generationConfig: a schema is only supported with the response mime type application/json")
		case len(g.ResponseSchema) > 0 && len(g.ResponseJSONSchema) > 0:
			return fmt.Errorf("generationConfig: responseSchema and responseJsonSchema exclude each other")
		case g.MaxOutputTokens != nil && *g.MaxOutputTokens < 1:
			return fmt.Errorf("generationConfig.maxOutputTokens: %d is not positive", *g.MaxOutputTokens)
		}
		if err := checkOpenAPI("generationConfig.responseSchema", g.ResponseSchema); err != nil {
			return err
		}
	}
	return checkContents(r.Contents)
}

func (r *geminiRequest) checkTools() error {
	n := 0
	for i, t := range r.Tools {
		for j, f := range t.FunctionDeclarations {
			at := fmt.Sprintf("tools[%d].functionDeclarations[%d]", i, j)
			n++
			switch {
			case !functionName.MatchString(f.Name):
				return fmt.Errorf("%s: invalid name %q", at, f.Name)
			case len(f.Parameters) > 0 && len(f.ParametersJSONSchema) > 0:
				return fmt.Errorf("%s: parameters and parametersJsonSchema exclude each other", at)
			case len(f.ParametersJSONSchema) > 0 && !isSchema(f.ParametersJSONSchema):
				return fmt.Errorf("%s: parametersJsonSchema is no schema of an object", at)
			}
			if err := checkOpenAPI(at+".parameters", f.Parameters); err != nil {
				return err
			}
		}
	}
	if c := r.ToolConfig; c != nil && c.FunctionCallingConfig != nil {
		mode := c.FunctionCallingConfig.Mode
		if n == 0 {
			return fmt.Errorf("toolConfig: function calling config is set without function declarations")
		}
		if !slices.Contains([]string{"AUTO", "ANY", "NONE", "VALIDATED"}, mode) {
			return fmt.Errorf("toolConfig: unknown mode %q", mode)
		}
	}
	return nil
}

// openAPI are the words of a schema that the API knows where it does not take
// JSON Schema.
var openAPI = strings.Fields(`anyOf default description enum example format items maximum maxItems maxLength maxProperties minimum minItems
	minLength minProperties nullable pattern properties propertyOrdering required title type`)

func checkOpenAPI(at string, raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	if err := members(raw, openAPI...); err != nil {
		return fmt.Errorf("%s: unknown name: %w", at, err)
	}
	var s struct {
		Properties map[string]json.RawMessage
		Items      json.RawMessage
		AnyOf      []json.RawMessage
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	for name, p := range s.Properties {
		if err := checkOpenAPI(at+"."+name, p); err != nil {
			return err
		}
	}
	for i, p := range append(s.AnyOf, s.Items) {
		if err := checkOpenAPI(fmt.Sprintf("%s.%d", at, i), p); err != nil {
			return err
		}
	}
	return nil
}

func checkContents(contents []geminiContent) error {
	var open []*geminiCall
	before := ""
	for i, c := range contents {
		if len(c.Parts) == 0 {
			return fmt.Errorf("contents[%d].parts must not be empty", i)
		}
		var calls []*geminiCall
		var results []*geminiResponse
		for j, p := range c.Parts {
			if err := checkPart(c.Role, p); err != nil {
				return fmt.Errorf("contents[%d].parts[%d]: %w", i, j, err)
			}
			if p.FunctionCall != nil {
				calls = append(calls, p.FunctionCall)
			}
			if p.FunctionResponse != nil {
				results = append(results, p.FunctionResponse)
			}
		}
		if err := answers(open, results); err != nil {
			return fmt.Errorf("contents[%d]: %w", i, err)
		}
		if len(calls) > 0 && before != "user" {
			return fmt.Errorf("contents[%d]: a function call turn comes immediately after a user turn or after a function response turn", i)
		}
		open, before = calls, c.Role
	}
	switch {
	case contents[0].Role != "user":
		return fmt.Errorf("contents[0]: the first turn is not the user's")
	case before != "user":
		return fmt.Errorf("contents: the last turn is not the user's")
	}
	return nil
}

// answers holds the results of a turn against the calls of the one before it.
func answers(open []*geminiCall, results []*geminiResponse) error {
	if len(open) != len(results) {
		return fmt.Errorf("the number of function response parts (%d) is not equal to the number of function call parts of the function call turn (%d)", len(results), len(open))
	}
	for i, r := range results {
		if r.Name != open[i].Name || r.ID != open[i].ID {
			return fmt.Errorf("the response of %q %q answers the call of %q %q", r.Name, r.ID, open[i].Name, open[i].ID)
		}
	}
	return nil
}

func checkPart(role string, p geminiPart) error {
	n := 0
	for _, set := range []bool{p.Text != nil, p.InlineData != nil, p.FunctionCall != nil, p.FunctionResponse != nil} {
		if set {
			n++
		}
	}
	if n != 1 {
		return fmt.Errorf("required oneof field 'data' must have one initialized field, not %d", n)
	}
	c, r := p.FunctionCall, p.FunctionResponse
	switch {
	case role != "user" && role != "model":
		return fmt.Errorf("please use a valid role: user, model; not %q", role)
	case p.Text != nil && *p.Text == "" && p.ThoughtSignature == "":
		return fmt.Errorf("text is empty")
	case p.InlineData != nil && (role != "user" || !p.InlineData.valid()):
		return fmt.Errorf("inlineData is no media of the user")
	case c != nil && (role != "model" || !functionName.MatchString(c.Name) || len(c.Args) > 0 && !isObject(c.Args)):
		return fmt.Errorf("malformed function call %+v", *c)
	case r != nil && (role != "user" || !functionName.MatchString(r.Name) || !isObject(r.Response)):
		return fmt.Errorf("malformed function response %+v", *r)
	}
	return p.checkSignature(role)
}

func (d *geminiData) valid() bool {
	return isBase64(d.Data) && slices.Contains(geminiTypes, d.MIMEType)
}

func (p *geminiPart) checkSignature(role string) error {
	s := p.ThoughtSignature
	if s == "" {
		return nil
	}
	whole := genuine(s, sign("text", "")) && p.Text != nil
	if c := p.FunctionCall; c != nil {
		whole = genuine(s, signCall(c.Name, c.Args))
	}
	if role != "model" || !whole {
		return fmt.Errorf("thought signature is not valid")
	}
	return nil
}
