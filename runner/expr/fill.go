package expr

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// MaxText bounds a text with its values filled in, and each value, in bytes.
const MaxText = 1 << 20

var errTooLong = fmt.Errorf("the text would have more than %d KiB", MaxText>>10)

// textOf is a value as part of a text: strings as they are, lists and maps as JSON.
func textOf(v any) (string, error) {
	v = plain(v)
	if text, ok := v.(string); ok {
		return text, nil
	}
	if f, ok := v.(float64); ok {
		return strconv.FormatFloat(f, 'f', -1, 64), nil
	}
	b, err := encode(v)
	return string(b), err
}

// plain is a value as JSON has it.
func plain(v any) any {
	switch v := v.(type) {
	case []byte:
		return string(v)
	case time.Time:
		return v.Format(time.RFC3339Nano)
	case time.Duration:
		return v.String()
	}
	return v
}

// Size is about how many bytes a value has as JSON. It stops counting above a limit: a
// short expression can name one text many times.
func Size(v any, limit int) int {
	n := 8
	switch v := v.(type) {
	case string:
		n = len(v)
	case []byte:
		n = len(v)
	case []any:
		for i := 0; i < len(v) && n <= limit; i++ {
			n += Size(v[i], limit-n)
		}
	case map[string]any:
		for k, x := range v {
			if n > limit {
				break
			}
			n += len(k) + Size(x, limit-n)
		}
	}
	return n
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// FillArgs returns the arguments of a call with every string in them, however deep, as rewrite
// returns it. Names of members are left alone. Path is where the arguments are written; nil
// arguments are an empty object.
func FillArgs(raw json.RawMessage, path string, rewrite func(path, text string) (any, error)) (string, error) {
	if len(raw) == 0 {
		return "{}", nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil || v == nil {
		return "", errors.New("must be an object")
	}
	out, err := rewriteValue(v, path, rewrite)
	if err != nil {
		return "", err
	}
	b, err := encode(out)
	return string(b), err
}

func rewriteValue(v any, path string, rewrite func(path, text string) (any, error)) (any, error) {
	var err error
	switch v := v.(type) {
	case string:
		return rewrite(path, v)
	case []any:
		for i := range v {
			if v[i], err = rewriteValue(v[i], path+"["+strconv.Itoa(i)+"]", rewrite); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if v[k], err = rewriteValue(v[k], path+"."+k, rewrite); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}
