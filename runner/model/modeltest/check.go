package modeltest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var callName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// imageTypes are the images that every API takes.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// decode reads a value and refuses members that the API does not know.
func decode(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// members refuses an object with a member that is not named.
func members(raw []byte, names ...string) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return fmt.Errorf("the request is no JSON object: %w", err)
	}
	for name := range all {
		if !slices.Contains(names, name) {
			return fmt.Errorf("%s: there is no such member", name)
		}
	}
	return nil
}

// isObject reports whether a value is a JSON object.
func isObject(raw []byte) bool {
	var o map[string]json.RawMessage
	return json.Unmarshal(raw, &o) == nil && o != nil
}

// isSchema reports whether a value is the schema of an object.
func isSchema(raw []byte) bool {
	var s struct{ Type string }
	return json.Unmarshal(raw, &s) == nil && s.Type == "object"
}

// isClosed reports whether a schema and those inside it name all members, and require
// each, as OpenAI's strict mode demands.
func isClosed(raw []byte) bool {
	var s struct {
		Type       any
		Properties map[string]json.RawMessage
		Required   []string
		Additional *bool `json:"additionalProperties"`
		Items      json.RawMessage
	}
	if json.Unmarshal(raw, &s) != nil {
		return false
	}
	if s.Type == "object" && (s.Additional == nil || *s.Additional) {
		return false
	}
	for name, p := range s.Properties {
		if !slices.Contains(s.Required, name) || !isClosed(p) {
			return false
		}
	}
	return len(s.Items) == 0 || isClosed(s.Items)
}

// isText reports whether a value of valid JSON is a string.
func isText(content json.RawMessage) bool { return len(content) > 0 && content[0] == '"' }

// textOf returns a JSON string's text, "" if it is not a string.
func textOf(content json.RawMessage) string {
	var s string
	if json.Unmarshal(content, &s) != nil {
		return ""
	}
	return s
}

func isBase64(s string) bool {
	b, err := base64.StdEncoding.DecodeString(s)
	return err == nil && len(b) > 0
}

// dataURL returns the type of the content in a data URL.
func dataURL(s string) (mime string, ok bool) {
	mime, data, ok := strings.Cut(strings.TrimPrefix(s, "data:"), ";base64,")
	return mime, ok && strings.HasPrefix(s, "data:") && isBase64(data)
}

// jsonObject returns arguments as an object, nil if they are not one.
func jsonObject(args string) json.RawMessage {
	if args == "" {
		return json.RawMessage("{}")
	}
	if !isObject([]byte(args)) {
		return nil
	}
	return json.RawMessage(args)
}

// signCall signs a call, whatever the spelling of its arguments.
func signCall(name string, args []byte) string {
	var v any
	if json.Unmarshal(args, &v) != nil {
		v = object{}
	}
	return sign("call", name+string(encode(v)))
}
