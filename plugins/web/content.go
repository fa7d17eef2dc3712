package web

import (
	"bytes"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
)

// kind is how a content is shown.
type kind int

const (
	kindOther kind = iota
	kindHTML
	kindText
	kindMedia
)

// media are shown as they are to a model that can see.
var media = []string{"image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"}

// kindOf tells how a content is shown, by the type that the server names. A server that
// names none, or the one that says nothing, is answered by the content.
func kindOf(header string, content []byte) (k kind, mediaType string) {
	mediaType, _, err := mime.ParseMediaType(header)
	if err != nil && mediaType == "" || mediaType == "application/octet-stream" {
		mediaType, _, _ = mime.ParseMediaType(http.DetectContentType(content))
	}
	major, minor, _ := strings.Cut(mediaType, "/")
	switch {
	case mediaType == "text/html", mediaType == "application/xhtml+xml":
		return kindHTML, mediaType
	case slices.Contains(media, mediaType):
		return kindMedia, mediaType
	case major == "text",
		slices.Contains([]string{"json", "xml", "javascript", "ecmascript", "yaml", "x-yaml", "toml", "x-ndjson", "ld+json"}, minor) && major == "application",
		strings.HasSuffix(minor, "+json"), strings.HasSuffix(minor, "+xml"):
		return kindText, mediaType
	}
	return kindOther, mediaType
}

// decode returns a text as UTF-8 and the name of the encoding it had: of a mark at its
// beginning, of the header, of the page itself, or a guess. An encoding that programs and
// people would read differently is not one of those that are known.
func decode(content []byte, header string) (text string, name string) {
	enc, name, certain := charset.DetermineEncoding(content, header)
	if name == "utf-8" || !certain && utf8.Valid(content) {
		content = bytes.TrimPrefix(content, []byte("\xef\xbb\xbf"))
		return strings.ToValidUTF8(string(content), "\uFFFD"), "utf-8"
	}
	decoded, err := enc.NewDecoder().Bytes(content)
	if err != nil {
		return strings.ToValidUTF8(string(content), "\uFFFD"), "utf-8"
	}
	return strings.ToValidUTF8(string(decoded), "\uFFFD"), name
}

// binary reports whether a text holds what texts do not.
func binary(text string) bool {
	head := text[:min(len(text), 8192)]
	control := 0
	for _, b := range []byte(head) {
		switch {
		case b == 0:
			return true
		case b >= ' ' && b != 0x7f, b == '\n', b == '\r', b == '\t', b == '\f', b == '\b', b == 0x1b:
		default:
			control++
		}
	}
	return control*10 > len(head)*3
}
