package manifest

import "bytes"

// chunk is the text of one document and the number of its first line.
type chunk struct {
	data []byte
	line int
}

// split cuts a stream into documents. YAML forbids a line that begins with "---" or "..."
// and a space inside any scalar (c-forbidden), so lines are enough to find the borders,
// and a broken document does not hide those after it, as with a decoder. "---x" is not a
// border, "--- # text" is one.
func split(data []byte) []chunk {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	var chunks []chunk
	start, startLine, line := 0, 1, 0
	opened, filled := false, false
	flush := func(end int) {
		if filled {
			chunks = append(chunks, chunk{data: data[start:end], line: startLine})
		}
		opened, filled = false, false
	}
	for pos := 0; pos < len(data); {
		line++
		next := len(data)
		if i := bytes.IndexByte(data[pos:], '\n'); i >= 0 {
			next = pos + i + 1
		}
		text := bytes.TrimRight(data[pos:next], "\r\n")
		switch {
		case border(text, "---"):
			// Comments and directives before the first border belong to what follows.
			if opened || filled {
				flush(pos)
				start, startLine = pos, line
			}
			opened = true
			filled = content(text[3:])
		case border(text, "..."):
			flush(pos)
			start, startLine = next, line+1
		case content(text) && (opened || text[0] != '%'):
			filled = true
		}
		pos = next
	}
	flush(len(data))
	return chunks
}

func border(line []byte, mark string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(mark))
	return ok && (len(rest) == 0 || rest[0] == ' ' || rest[0] == '\t')
}

// content reports whether a line holds more than blanks and a comment.
func content(line []byte) bool {
	line = bytes.TrimLeft(line, " \t")
	return len(line) > 0 && line[0] != '#'
}
