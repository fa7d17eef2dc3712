package web

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// attributes of a tag that matter.
type attributes struct {
	href, src, alt, class, role, start string
	hidden                             bool
}

func read(z *html.Tokenizer, more bool) (a attributes) {
	for n := 0; more && n < 200; n++ {
		var key, value []byte
		key, value, more = z.TagAttr()
		switch string(key) {
		case "href":
			a.href = string(value)
		case "src":
			a.src = string(value)
		case "alt":
			a.alt = string(value)
		case "class":
			a.class = string(value)
		case "role":
			a.role = string(value)
		case "start":
			a.start = string(value)
		case "hidden":
			a.hidden = true
		case "style":
			a.hidden = a.hidden || hides(string(value))
		}
	}
	return a
}

// hides reports whether a style keeps an element from being seen. Styles that a page
// declares elsewhere are not looked at.
func hides(style string) bool {
	style = strings.ToLower(strings.Join(strings.Fields(style), ""))
	for {
		before, rest, ok := strings.Cut(style, "/*")
		if !ok {
			break
		}
		_, after, _ := strings.Cut(rest, "*/")
		style = before + after
	}
	for declaration := range strings.SplitSeq(style, ";") {
		name, value, _ := strings.Cut(strings.TrimSuffix(declaration, "!important"), ":")
		number := strings.TrimRight(value, "abcdefghijklmnopqrstuvwxyz%")
		zero := number != "" && strings.Trim(number, "0.") == ""
		far := strings.HasPrefix(number, "-") && len(strings.SplitN(number, ".", 2)[0]) >= 4
		switch name {
		case "display":
			if value == "none" {
				return true
			}
		case "visibility":
			if value == "hidden" || value == "collapse" {
				return true
			}
		case "opacity", "font-size", "font", "max-height", "max-width", "zoom":
			if zero {
				return true
			}
		case "text-indent", "left", "top", "right", "bottom", "margin-left", "margin-top":
			if far {
				return true
			}
		case "color":
			if value == "transparent" {
				return true
			}
		case "clip", "clip-path":
			if strings.HasPrefix(value, "rect(0") || strings.HasPrefix(value, "rect(1px,1px,1px,1px") || value == "inset(50%)" || value == "inset(100%)" {
				return true
			}
		}
	}
	return false
}

// scope are elements that end tags of those around them do not close.
func scope(tag atom.Atom) bool {
	switch tag {
	case atom.Table, atom.Td, atom.Th, atom.Caption:
		return true
	default:
	}
	return false
}

// tabular are the parts of a table: their end tags end the cells in them.
func tabular(tag atom.Atom) bool {
	switch tag {
	case atom.Table, atom.Thead, atom.Tbody, atom.Tfoot, atom.Tr, atom.Td, atom.Th, atom.Caption:
		return true
	default:
	}
	return false
}

// implied is what HTML closes by itself before a tag, and the elements beyond which it
// looks for none.
func implied(tag atom.Atom) (closes, within []atom.Atom) {
	switch tag {
	case atom.Li:
		closes, within = []atom.Atom{atom.Li}, []atom.Atom{atom.Ul, atom.Ol, atom.Menu}
	case atom.Dt, atom.Dd:
		closes, within = []atom.Atom{atom.Dt, atom.Dd}, []atom.Atom{atom.Dl}
	case atom.Td, atom.Th:
		closes, within = []atom.Atom{atom.Td, atom.Th}, []atom.Atom{atom.Tr, atom.Table}
	case atom.Tr:
		closes, within = []atom.Atom{atom.Tr}, []atom.Atom{atom.Table}
	case atom.Option:
		closes, within = []atom.Atom{atom.Option}, []atom.Atom{atom.Select}
	case atom.A:
		closes, within = []atom.Atom{atom.A}, []atom.Atom{atom.Td, atom.Th}
	case atom.P, atom.Div, atom.Ul, atom.Ol, atom.Table, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Pre, atom.Blockquote, atom.Section, atom.Article, atom.Main,
		atom.Nav, atom.Aside, atom.Header, atom.Footer, atom.Form, atom.Dl, atom.Figure, atom.Hr, atom.Details:
		closes, within = []atom.Atom{atom.P}, []atom.Atom{atom.Td, atom.Th, atom.Li, atom.Table, atom.Button, atom.Div}
	default:
	}
	return closes, within
}

// dropped are elements whose content people do not read.
func dropped(tag atom.Atom) bool {
	switch tag {
	case atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Svg, atom.Iframe, atom.Object, atom.Canvas, atom.Audio, atom.Video, atom.Select, atom.Button, atom.Textarea,
		atom.Noembed, atom.Noframes, atom.Map, atom.Datalist, atom.Annotation, atom.Xmp, atom.Plaintext, atom.Dialog, atom.Rp:
		return true
	default:
	}
	return false
}

// void are elements without content.
func void(tag atom.Atom) bool {
	switch tag {
	case atom.Area, atom.Base, atom.Br, atom.Col, atom.Embed, atom.Hr, atom.Img, atom.Input, atom.Link, atom.Meta, atom.Param, atom.Source, atom.Track, atom.Wbr, atom.Frame:
		return true
	default:
	}
	return false
}

func level(tag atom.Atom) int { return int(tag.String()[1] - '0') }

// language is that of a code block, as its class names it.
func language(class string) string {
	for word := range strings.FieldsSeq(class) {
		for _, prefix := range []string{"language-", "lang-", "highlight-source-"} {
			if name, ok := strings.CutPrefix(word, prefix); ok && len(name) < 20 && !strings.ContainsAny(name, "`~") {
				return name
			}
		}
	}
	return ""
}

// number is where an ordered list begins.
func number(start string) int {
	n := 0
	for _, c := range []byte(start) {
		if c < '0' || c > '9' || n > 1e6 {
			return 1
		}
		n = n*10 + int(c-'0')
	}
	if start == "" {
		return 1
	}
	return n
}

// kinds are the elements that HTML closes by itself, and all others.
const kinds = 8

func kindOfElement(tag atom.Atom) int {
	switch tag {
	case atom.P:
		return 1
	case atom.Li:
		return 2
	case atom.Td, atom.Th:
		return 3
	case atom.Tr:
		return 4
	case atom.A:
		return 5
	case atom.Dt, atom.Dd:
		return 6
	case atom.Option:
		return 7
	default:
		return 0
	}
}
