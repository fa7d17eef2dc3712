package diagnose

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"agentctl.dev/agentctl/api/message"
)

// mostRead bounds the findings that are read of one output.
const mostRead = 5000

// readLines reads the lines of an output that name a place in a file, as compilers write
// them. A line counts only if its file exists, so that other lines with colons do not:
//
//	main.go:3:5: undefined: x          file, line, column
//	main.c:3: warning: unused          file, line
//	vet: ./main.go:3:5: undefined: x   the same, behind the name of the program
//	src/a.ts(3,5): error TS2322: ...   with brackets
func readLines(output, folder string) []message.Finding {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil
	}
	defer root.Close() //nolint:errcheck // nothing was written
	var all []message.Finding
	for text := range strings.Lines(output) {
		if len(all) == mostRead {
			break
		}
		text = strings.TrimRight(text, "\r\n")
		if f, ok := readLine(text, root); ok {
			all = append(all, f)
		}
	}
	return all
}

func readLine(text string, root *os.Root) (message.Finding, bool) {
	for at, char := range text {
		if at > maxPath+maxMessage {
			break
		}
		var f message.Finding
		var rest string
		var ok bool
		switch char {
		case ':':
			f.Line, f.Column, rest, ok = colons(text[at+1:])
		case '(':
			f.Line, f.Column, rest, ok = brackets(text[at+1:])
		}
		if !ok {
			continue
		}
		if f.File, ok = file(text[:at], root); !ok {
			continue
		}
		if f.Message = strings.TrimSpace(rest); f.Message == "" {
			continue
		}
		f.Severity = severity(f.Message)
		return f, true
	}
	return message.Finding{}, false
}

// colons reads "3:5: text", "3: text".
func colons(s string) (line, column int, rest string, ok bool) {
	if line, s, ok = number(s); !ok || !strings.HasPrefix(s, ":") {
		return 0, 0, "", false
	}
	s = s[1:]
	if n, after, ok := number(s); ok && strings.HasPrefix(after, ":") {
		column, s = n, after[1:]
	}
	return line, column, s, true
}

// brackets reads "3,5): text", "3): text".
func brackets(s string) (line, column int, rest string, ok bool) {
	if line, s, ok = number(s); !ok {
		return 0, 0, "", false
	}
	if n, after, isColumn := number(strings.TrimPrefix(s, ",")); isColumn && strings.HasPrefix(s, ",") {
		column, s = n, after
	}
	rest, ok = strings.CutPrefix(s, "):")
	return line, column, rest, ok
}

// number reads the digits at the beginning of a text.
func number(s string) (n int, rest string, ok bool) {
	end := 0
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(s[:end])
	return n, s[end:], err == nil && n > 0
}

// file finds a file of the workspace in what is before a place.
func file(text string, root *os.Root) (string, bool) {
	for {
		name := text
		if filepath.IsAbs(name) {
			if rel, err := filepath.Rel(root.Name(), name); err == nil {
				name = rel
			}
		}
		if name = filepath.Clean(name); text != "" && filepath.IsLocal(name) && name != "." && exists(root, name) {
			return name, true
		}
		_, after, more := strings.Cut(text, ": ")
		if !more {
			return "", false
		}
		text = after
	}
}

// severity is what a message says that it is.
func severity(text string) string {
	word := strings.ToLower(text)
	for _, s := range []struct{ begin, is string }{
		{"fatal error", "error"}, {"error", "error"}, {"warning", "warning"}, {"warn", "warning"}, {"note", "info"}, {"info", "info"}, {"hint", "hint"},
	} {
		if rest, ok := strings.CutPrefix(word, s.begin); ok && (rest == "" || strings.ContainsAny(rest[:1], ": [")) {
			return s.is
		}
	}
	return ""
}
